"""`python -m deltafast`: the command line."""

from __future__ import annotations

import sys

from deltafast.cli import main

sys.exit(main())
