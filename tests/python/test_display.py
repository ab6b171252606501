"""What notebooks show."""

from __future__ import annotations

import pickle
import re

from deltafast import DeltaTable, Field, Schema, write_deltalake


def cells(html):
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", html)]


def test_a_table_shows_facts_schema_and_commits(tmp_path):
    write_deltalake(tmp_path, {"id": [1, 2], "<p>": ["a", "b"]}, partition_by="<p>")
    table = DeltaTable(tmp_path)
    table.delete("id = 1")
    html = table._repr_html_()
    facts = dict(row for row in cells(html) if len(row) == 2)
    assert (facts["version"], facts["files"], facts["partition columns"]) == ("1", "1", "&lt;p&gt;")
    assert re.fullmatch(r"\d+ B", facts["size"])
    assert ["id", "long", "True", ""] in cells(html)
    assert [row[2] for row in cells(html) if len(row) == 5] == ["operation", "DELETE", "WRITE"]
    assert "<p>" not in html


def test_a_schema_shows_the_fields_of_structs():
    schema = Schema.from_json(
        '{"type":"struct","fields":[{"name":"s","type":{"type":"struct","fields":[{"name":"x","type":{"type":"array",'
        '"elementType":"integer","containsNull":true},"nullable":false,"metadata":{"comment":"a & b"}}]},'
        '"nullable":true,"metadata":{}},{"name":"m","type":{"type":"map","keyType":"string","valueType":{"type":'
        '"struct","fields":[{"name":"y","type":"decimal(5,2)","nullable":true,"metadata":{}}]},'
        '"valueContainsNull":true},"nullable":true,"metadata":{}}]}'
    )
    assert cells(schema._repr_html_())[1:] == [
        ["s", "struct", "True", ""],
        ["s.x", "array&lt;integer&gt;", "False", "a &amp; b"],
        ["m", "map&lt;string, struct&lt;y: decimal(5,2)&gt;&gt;", "True", ""],
    ]
    wide = Schema([Field(f"c{n}", "long") for n in range(1200)])
    assert cells(wide._repr_html_())[-1] == ["and 1,150 more"]


def test_histories_and_details_are_lists_and_dicts(tmp_path):
    write_deltalake(tmp_path, {"id": [1]}, configuration={"delta.appendOnly": "false"})
    table = DeltaTable(tmp_path)
    history, detail = table.history(), table.detail()
    assert history == list(history)
    assert detail == dict(detail)
    assert pickle.loads(pickle.dumps(history)) == history
    assert cells(history._repr_html_())[1][2] == "WRITE"
    assert ["properties", "delta.appendOnly: false"] in cells(detail._repr_html_())


def test_findings_show_their_remedies(tmp_path):
    from deltafast.doctor import examine

    for n in range(8):
        write_deltalake(tmp_path, {"id": [n]}, mode="append")
    found = examine(tmp_path)
    rows = cells(found._repr_html_())
    assert rows[0] == ["level", "finding", "message", "remedy"]
    assert [row[:2] for row in rows[1:]] == [[finding.level, finding.what] for finding in found]
    assert ["advice", "small-files"] in [row[:2] for row in rows]
