"""What is found in the text of a query."""

from __future__ import annotations

import pytest

from deltafast._sql.query_text import named_tables


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT a FROM t", ["t"]),
        ("select * from a x, b.c y where d in (1, 2)", ["a", "b.c"]),
        ("SELECT extract(year FROM ts), f(b, c) FROM `my t` t LEFT JOIN (SELECT 1 FROM z, zz) q ON q.a = t.b", None),
        ("SELECT * FROM range(5) r, d ORDER BY a, b", ["d"]),
        ("SELECT 'from x', a, -- from q\n b FROM y UNION SELECT c, d FROM /* from */ z LIMIT 1", ["y", "z"]),
        ("SELECT 1", []),
    ],
)
def test_tables_that_only_a_name_says_are_found(text, names):
    found = named_tables(text)
    assert [table.name for table in found] == (["`my t`", "z", "zz"] if names is None else names)
    assert all(text[table.pos :].startswith(table.name) for table in found)
