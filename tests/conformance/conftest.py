"""Makes failed comparisons in the helpers show both sides."""

import pytest

pytest.register_assert_rewrite("conformance.compare", "conformance.corpus", "conformance.logs")
