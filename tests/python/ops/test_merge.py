"""MERGE: rows, feed, figures, schema and verdicts, against a model in Python and against `deltalake`."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import random
import re
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from deltafast import CommitProperties, DeltaTable, Field, Schema, WriterProperties, write_deltalake
from deltafast._expr import UnsupportedExpressionError
from deltafast._ops.engine.duckdb import DuckDBEngine
from deltafast.exceptions import (
    CommitFailedError,
    ConcurrentAppendError,
    ConstraintViolatedError,
    InvalidArgumentError,
    SchemaMismatchError,
)
from support import one_in

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable, Iterable

deltalake = pytest.importorskip("deltalake")

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
TRACKED = {"delta.enableRowTracking": "true"}
NAMED = {"delta.columnMapping.mode": "name"}
CONFIGURATIONS: dict[str, dict[str, str]] = {
    "copies": {},
    "copies with a feed": FEED | NAMED,
    "copies with row ids": TRACKED | FEED,
    "vectors": VECTORS,
    "vectors with everything": VECTORS | FEED | TRACKED | NAMED,
}
Row = dict[str, Any]


def found(table: DeltaTable | pathlib.Path | str, key: str = "id") -> list[Row]:
    """Return the rows of a fresh handle, ordered."""
    fresh = DeltaTable(table.table_uri if isinstance(table, DeltaTable) else table)
    rows = pa.table(fresh.scan()).to_pylist()
    return sorted(rows, key=lambda row: (row[key] is None, row[key]))


def small(path: pathlib.Path, configuration: dict[str, str] | None = None, **options: Any) -> DeltaTable:
    """Make a table of two files: ids 0 to 9, texts `v0` to `v9`."""
    for start in (0, 5):
        ids = range(start, start + 5)
        data = pa.table({"id": pa.array(ids, pa.int64()), "v": [f"v{i}" for i in ids]})
        write_deltalake(path, data, mode="append", configuration=configuration if start == 0 else None, **options)
    return DeltaTable(path)


# --- a model ---------------------------------------------------------------------------------------


class Clause(NamedTuple):
    """A clause in SQL and in Python."""

    kind: str
    action: str
    sql: str | None
    holds: Callable[[Row, Row], bool]
    updates: dict[str, str] | None = None
    change: Callable[[Row, Row], Row] | None = None


def always(_t: Row, _s: Row) -> bool:
    return True


def star(t: Row, s: Row) -> Row:
    return t | s


MATCHED = [
    Clause("matched", "delete", "s.v = 'drop'", lambda _t, s: s["v"] == "drop"),
    Clause("matched", "delete", None, always),
    Clause("matched", "update", None, always, None, star),
    Clause("matched", "update", "t.n > s.n", lambda t, s: more(t["n"], s["n"]), None, star),
    Clause(
        "matched",
        "update",
        "s.n is not null and t.n is not null",
        lambda t, s: s["n"] is not None and t["n"] is not None,
        {"n": "t.n + s.n", "t.v": "t.v || '-' || s.v"},
        lambda t, s: t | {"n": t["n"] + s["n"], "v": None if None in (t["v"], s["v"]) else f"{t['v']}-{s['v']}"},
    ),
    Clause("matched", "update", "t.p = 'x'", lambda t, _s: t["p"] == "x", {"p": "'y'"}, lambda t, _s: t | {"p": "y"}),
]
NOT_MATCHED = [
    Clause("not_matched", "insert", None, always, None, lambda _t, s: dict(s)),
    Clause("not_matched", "insert", "n > 2", lambda _t, s: more(s["n"], 2), None, lambda _t, s: dict(s)),
    Clause(
        "not_matched",
        "insert",
        "s.v <> 'drop'",
        lambda _t, s: s["v"] is not None and s["v"] != "drop",
        {"id": "s.id", "v": "upper(v)", "p": "'new'"},
        lambda _t, s: {"id": s["id"], "v": s["v"].upper(), "p": "new", "n": None},
    ),
]
BY_SOURCE = [
    Clause("by_source", "delete", "n = 3", lambda t, _s: t["n"] == 3),
    Clause(
        "by_source",
        "update",
        "t.n < 3",
        lambda t, _s: t["n"] is not None and t["n"] < 3,
        {"n": "-n"},
        lambda t, _s: t | {"n": -t["n"]},
    ),
    Clause("by_source", "delete", None, always),
    Clause("by_source", "update", None, always, {"v": "'stale'"}, lambda t, _s: t | {"v": "stale"}),
]
CONDITIONS: list[tuple[str, Callable[[Row, Row], bool]]] = [
    ("t.id = s.id", lambda t, s: equal(t["id"], s["id"])),
    ("s.id <=> t.id", lambda t, s: t["id"] == s["id"]),
    ("t.id = s.id and t.p = s.p", lambda t, s: equal(t["id"], s["id"]) and equal(t["p"], s["p"])),
    ("t.id = s.id and t.n < s.n + 3", lambda t, s: equal(t["id"], s["id"]) and more(add(s["n"], 3), t["n"])),
    (
        "t.id = s.id and t.p = 'x' and s.n > 1",
        lambda t, s: equal(t["id"], s["id"]) and t["p"] == "x" and more(s["n"], 1),
    ),
    ("t.id + 1 = s.id * 1", lambda t, s: equal(add(t["id"], 1), s["id"])),
    ("t.id - s.id between 0 and 0", lambda t, s: equal(t["id"], s["id"])),
    ("false", lambda _t, _s: False),
]


def equal(a: object, b: object) -> bool:
    return a is not None and a == b


def more(a: Any, b: Any) -> bool:
    return a is not None and b is not None and a > b


def add(a: Any, b: Any) -> Any:
    return None if a is None else a + b


class AmbiguousError(Exception):
    """Several rows of the source for one of the table."""


def modelled(
    target: list[Row], source: list[Row], on: Callable[[Row, Row], bool], clauses: list[Clause]
) -> tuple[list[Row], Counter[str], list[tuple[str, Row]]]:
    """Return the rows after the merge, figures and changes."""
    of = {kind: [c for c in clauses if c.kind == kind] for kind in ("matched", "not_matched", "by_source")}
    sole_delete = len(of["matched"]) == 1 and of["matched"][0].action == "delete" and of["matched"][0].sql is None
    rows: list[Row] = []
    totals: Counter[str] = Counter()
    changes: list[tuple[str, Row]] = []
    hit: set[int] = set()
    for t in target:
        pairs = [n for n, s in enumerate(source) if on(t, s)]
        hit.update(pairs)
        if pairs:
            taken = [(n, c) for n in pairs if (c := next((c for c in of["matched"] if c.holds(t, source[n])), None))]
            if len(taken) > 1 and not sole_delete:
                raise AmbiguousError
            clause, s = (taken[0][1], source[taken[0][0]]) if taken else (None, {})
        else:
            clause, s = next((c for c in of["by_source"] if c.holds(t, {})), None), {}
        if clause is None:
            rows.append(t)
        elif clause.action == "delete":
            totals["deleted"] += 1
            changes.append(("delete", t))
        else:
            assert clause.change is not None
            new = clause.change(t, s)
            rows.append(new)
            totals["updated"] += 1
            changes += [("update_preimage", t), ("update_postimage", new)]
    for n, s in enumerate(source):
        clause = next((c for c in of["not_matched"] if c.holds({}, s)), None) if n not in hit else None
        if clause is not None:
            assert clause.change is not None
            rows.append(clause.change({}, s))
            totals["inserted"] += 1
            changes.append(("insert", rows[-1]))
    return rows, totals, changes


def run(table: Any, source: Any, on: str, clauses: Iterable[Clause], **options: Any) -> dict[str, Any]:
    """Merge with these clauses, by deltafast or by `deltalake`."""
    merger = table.merge(source, on, source_alias="s", target_alias="t", **options)
    for clause in clauses:
        name = f"when_{clause.kind if clause.kind != 'by_source' else 'not_matched_by_source'}_{clause.action}"
        if clause.action == "delete":
            merger = getattr(merger, name)(clause.sql)
        elif clause.updates is None:
            merger = getattr(merger, f"{name}_all")(clause.sql)
        else:
            merger = getattr(merger, name)(clause.updates, clause.sql)
    return merger.execute()


def random_rows(chance: random.Random, ids: Iterable[int | None]) -> list[Row]:
    return [
        {
            "id": i,
            "n": chance.choice([None, *range(6)]),
            "v": chance.choice([None, "a", "b", "drop", "naïve"]),
            "p": chance.choice(["x", "y", None]),
        }
        for i in ids
    ]


SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("v", pa.string()), ("p", pa.string())])


def counted(rows: Iterable[Row]) -> Counter[str]:
    return Counter(json.dumps(row, sort_keys=True, default=str) for row in rows)


@pytest.mark.parametrize("partitioned", one_in(2, [False, True]))
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_random_merges_do_what_the_model_does(name: str, partitioned: bool, tmp_path: pathlib.Path) -> None:
    configuration = CONFIGURATIONS[name]
    chance = random.Random(f"{name}{partitioned}")
    rows = random_rows(chance, [*range(30), None])
    chance.shuffle(rows)
    for start in range(0, 31, 8):
        write_deltalake(
            tmp_path,
            pa.Table.from_pylist(rows[start : start + 8], SCHEMA),
            mode="append",
            configuration=configuration if start == 0 else None,
            partition_by=["p"] if partitioned and start == 0 else None,
        )
    table = DeltaTable(tmp_path)
    ambiguous = 0
    for _ in range(25):
        ids = [chance.choice([None, *range(45)]) for _ in range(chance.choice([0, 1, 3, 8, 20]))]
        if chance.random() < 0.7:
            ids = list(dict.fromkeys(ids))
        source = random_rows(chance, ids)
        clauses = [
            *chance.sample(MATCHED, chance.choice([0, 1, 1, 2, 3])),
            *chance.sample(NOT_MATCHED, chance.choice([0, 1, 1, 2])),
            *chance.sample(BY_SOURCE, chance.choice([0, 0, 0, 1, 2])),
        ] or [NOT_MATCHED[0]]
        on, holds = chance.choice(CONDITIONS)
        said = (source, on, [clause[:3] for clause in clauses])
        before, version = found(table), table.version()
        ids_before = row_ids(table) if "delta.enableRowTracking" in configuration else {}
        data = pa.Table.from_pylist(source, SCHEMA)
        try:
            after, totals, changes = modelled(before, source, holds, clauses)
        except AmbiguousError:
            ambiguous += 1
            with pytest.raises(InvalidArgumentError, match="several rows of the source"):
                run(table, data, on, clauses)
            assert table.version() == version
            continue
        metrics = run(table, data, on, clauses)
        assert counted(found(table)) == counted(after), said
        assert metrics["num_source_rows"] == len(source)
        for what in ("inserted", "updated", "deleted"):
            assert metrics[f"num_target_rows_{what}"] == totals[what], (what, said)
        moved = table.version() - version
        assert moved == (1 if changes else 0), said
        if moved and "delta.enableChangeDataFeed" in configuration:
            feed = pa.table(table.load_cdf(table.version(), table.version())).drop_columns(["_commit_timestamp"])
            reported = [(row.pop("_change_type"), row) for row in feed.to_pylist()]
            for _, row in reported:
                del row["_commit_version"]
            assert counted({"k": kind, **row} for kind, row in reported) == counted(
                {"k": kind, **row} for kind, row in changes
            ), said
        if ids_before and moved:
            check_ids(table, ids_before, before, after, version)
    assert ambiguous < 20
    assert table.count() == len(found(tmp_path))


def row_ids(table: DeltaTable) -> dict[int | None, tuple[int, int]]:
    rows = pa.table(table.scan(columns=["id"], metadata_columns=["row_id", "row_commit_version"])).to_pylist()
    assert len({row["row_id"] for row in rows}) == len(rows)
    return {row["id"]: (row["row_id"], row["row_commit_version"]) for row in rows}


def check_ids(
    table: DeltaTable, ids: dict[int | None, tuple[int, int]], before: list[Row], after: list[Row], version: int
) -> None:
    """Rows keep their ids, and their versions unless they changed."""
    now = row_ids(table)
    unique = [Counter(row["id"] for row in rows) for rows in (before, after)]
    same = {json.dumps(row, sort_keys=True) for row in before}
    for row in after:
        key = row["id"]
        if key in ids and all(count[key] == 1 for count in unique):
            if json.dumps(row, sort_keys=True) in same and now[key][0] == ids[key][0]:
                assert now[key][1] in (ids[key][1], version + 1)
            assert now[key][1] == version + 1 or now[key] == ids[key]


def test_rows_that_change_keep_their_ids(tmp_path: pathlib.Path) -> None:
    for name in ("copies with row ids", "vectors with everything"):
        table = small(tmp_path / name, CONFIGURATIONS[name])
        before = row_ids(table)
        source = pa.table({"id": [2, 7, 20], "v": ["x", "y", "z"]})
        table.merge(source, "t.id = s.id", "s", "t").when_matched_update_all().when_not_matched_insert_all().execute()
        after = row_ids(table)
        assert {key: value[0] for key, value in after.items() if key in before} == {
            key: value[0] for key, value in before.items()
        }
        changed = {key for key, value in after.items() if value[1] == table.version()}
        assert changed == {2, 7, 20}
        assert after[20][0] > max(value[0] for value in before.values())


# --- the same by deltalake -------------------------------------------------------------------------


def qualified(clause: Clause) -> Clause:
    """Return the clause with the alias at every name, as `deltalake` wants it even where one side alone is there."""
    alias = "s" if clause.kind == "not_matched" else "t"
    spell = lambda sql: re.sub(r"(?<![.\w'])([nv])\b", rf"{alias}.\1", sql)  # noqa: E731
    updates = clause.updates and {name: spell(sql) for name, sql in clause.updates.items()}
    return clause._replace(sql=clause.sql and spell(clause.sql), updates=updates)


@pytest.mark.parametrize("seed", range(4))
def test_deltalake_comes_to_the_same(seed: int, tmp_path: pathlib.Path) -> None:
    chance = random.Random(seed)
    rows = random_rows(chance, range(40))
    for folder in ("ours", "theirs"):
        for start in (0, 20):
            part = pa.Table.from_pylist(rows[start : start + 20], SCHEMA)
            write_deltalake(
                tmp_path / folder, part, mode="append", partition_by=["p"] if seed % 2 and not start else None
            )
    ours, theirs = DeltaTable(tmp_path / "ours"), deltalake.DeltaTable(tmp_path / "theirs")
    for _ in range(6):
        source = random_rows(chance, chance.sample(range(60), 12))
        drawn = [
            chance.choice(MATCHED),
            chance.choice(NOT_MATCHED),
            *chance.sample(BY_SOURCE[:2], chance.choice([0, 1])),
        ]
        clauses = [qualified(clause) for clause in drawn]
        on = chance.choice(["t.id = s.id", "t.id = s.id and t.p = s.p"])
        data = pa.Table.from_pylist(source, SCHEMA)
        mine, other = run(ours, data, on, clauses), run(theirs, data, on, clauses)
        assert counted(found(ours)) == counted(found(tmp_path / "theirs")), (on, clauses)
        names = ("num_source_rows", "num_target_rows_inserted", "num_target_rows_updated", "num_target_rows_deleted")
        assert {name: mine[name] for name in names} == {name: other[name] for name in names}
        assert other.keys() >= mine.keys()
    assert deltalake.DeltaTable(tmp_path / "ours").to_pyarrow_table().num_rows == len(found(ours))


# --- clauses ---------------------------------------------------------------------------------------


def test_what_a_merge_refuses(tmp_path: pathlib.Path) -> None:
    table = small(tmp_path)
    source = pa.table({"id": [1], "v": ["x"], "w": [1]})
    merge = lambda on="t.id = s.id", **options: table.merge(source, on, "s", "t", **options)  # noqa: E731
    refused: list[tuple[Any, type[Exception], str]] = [
        (merge(), InvalidArgumentError, "at least one WHEN"),
        (merge("t.id = s.nope").when_matched_delete(), InvalidArgumentError, "nope"),
        (merge("id = 1").when_matched_delete(), InvalidArgumentError, "ambiguous"),
        (merge("t.id + s.id").when_matched_delete(), InvalidArgumentError, "BOOLEAN"),
        (merge().when_matched_update({"nope": "1"}), SchemaMismatchError, "no column `nope`"),
        (merge().when_matched_update({"v": "s.w[0]"}), InvalidArgumentError, "`v`"),
        (merge().when_matched_update({"v": "1", "t.V": "2"}), InvalidArgumentError, "twice"),
        (merge().when_not_matched_insert({"id": "t.id"}), InvalidArgumentError, "the target has no row"),
        (merge().when_not_matched_by_source_delete("s.id = 1"), InvalidArgumentError, "the source has no row"),
        (merge().when_matched_update_all(except_cols=["zzz"]), InvalidArgumentError, "zzz"),
        (merge().when_matched_update({"v": "foo(s.v)"}), UnsupportedExpressionError, "foo"),
    ]
    for merger, kind, text in refused:
        with pytest.raises(kind, match=text):
            merger.execute()
    with pytest.raises(InvalidArgumentError, match="no column"):
        merge().when_matched_update({})
    with pytest.raises(InvalidArgumentError, match="both called"):
        table.merge(source, "id = 1", "x", "X").when_matched_delete().execute()
    with pytest.raises(InvalidArgumentError, match="cannot be a int"):
        table.merge(5, "true").when_matched_delete().execute()  # type: ignore[arg-type]
    assert table.version() == 1
    write_deltalake(tmp_path / "only", pa.table({"id": [1]}), configuration={"delta.appendOnly": "true"})
    only = DeltaTable(tmp_path / "only")
    with pytest.raises(InvalidArgumentError, match="append-only"):
        only.merge(pa.table({"id": [1]}), "target.id = source.id").when_matched_delete().execute()
    only.merge(pa.table({"id": [2]}), "target.id = source.id").when_not_matched_insert_all().execute()
    assert [row["id"] for row in found(only)] == [1, 2]


def test_several_matches_are_settled_or_refused(tmp_path: pathlib.Path) -> None:
    twice = pa.table({"id": [4, 4, 5], "v": ["a", "b", "c"]})
    table = small(tmp_path)
    with pytest.raises(InvalidArgumentError, match=r"several rows of the source.*duplicate relevant WHEN MATCHED"):
        table.merge(twice, "t.id = s.id", "s", "t").when_matched_update_all().execute()
    with pytest.raises(InvalidArgumentError, match="several rows"):
        table.merge(twice, "t.id = s.id", "s", "t").when_matched_delete("s.v <> ''").execute()
    metrics = table.merge(twice, "t.id = s.id", "s", "t").when_matched_update_all("s.v <> 'a'").execute()
    assert (metrics["num_target_rows_updated"], [r["v"] for r in found(table)][4:6]) == (2, ["b", "c"])
    metrics = table.merge(twice, "t.id = s.id", "s", "t").when_matched_delete().execute()
    assert (metrics["num_target_rows_deleted"], len(found(table))) == (2, 8)
    metrics = table.merge(twice, "t.id = s.id", "s", "t").when_not_matched_insert_all().execute()
    assert (metrics["num_target_rows_inserted"], [r["v"] for r in found(table) if r["id"] == 4]) == (3, ["a", "b"])


def test_names_are_found_in_any_case_and_in_quotes(tmp_path: pathlib.Path) -> None:
    data = pa.table({"Id": [1, 2], "my col": [1, 2], "1y": ["a", "b"], "s": [{"x": 1, "Y": 2}] * 2})
    write_deltalake(tmp_path, data, configuration={"delta.columnMapping.mode": "name"})
    table = DeltaTable(tmp_path)
    source = pa.table({"ID": [2, 3], "My Col": [20, 30], "1y": ["c", "d"], "s": [{"x": 5, "Y": 6}] * 2})
    table.merge(source, 'T."Id" = S.`ID`', "S", "T").when_matched_update(
        {"`my col`": 'S."My Col"', "T.`1Y`": "upper(s.`1y`)", "t.S.X": "s.s.y + t.s.x"}
    ).when_not_matched_insert_all().execute()
    assert found(table, "Id") == [
        {"Id": 1, "my col": 1, "1y": "a", "s": {"x": 1, "Y": 2}},
        {"Id": 2, "my col": 20, "1y": "C", "s": {"x": 7, "Y": 2}},
        {"Id": 3, "my col": 30, "1y": "d", "s": {"x": 5, "Y": 6}},
    ]
    table.merge(source, "target.id = source.id").when_matched_update({"1y": "'z'", "my col": "1"}).execute()
    assert [row["1y"] for row in found(table, "Id")] == ["a", "z", "z"]


def test_the_first_clause_wins_and_errors_are_its_own(tmp_path: pathlib.Path) -> None:
    table = small(tmp_path)
    source = pa.table({"id": [0, 1, 2, 30], "v": ["0", "x", "2", "5"]})
    table.merge(source, "t.id = s.id", "s", "t").when_matched_update({"v": "'bad'"}, "s.v = 'x'").when_matched_update(
        {"v": "cast(cast(s.v as int) + 1 as string)"}, "cast(s.v as int) < 2"
    ).when_matched_delete().when_not_matched_insert({"id": "cast(s.v as long)"}, "s.id > 5").execute()
    assert [(row["id"], row["v"]) for row in found(table)][:3] == [(0, "1"), (1, "bad"), (3, "v3")]
    assert {row["v"] for row in found(table) if row["id"] == 5} == {"v5", None}
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        table.merge(source, "t.id = s.id", "s", "t").when_matched_update({"v": "cast(s.v as int)"}).execute()
    # Where the value fits no error is made, and where it does not it is null.
    numbers = pa.table({"id": [3, 4], "v": [1, 2]})
    table.merge(numbers, "t.id = s.id", "s", "t").when_matched_update_all().execute()
    assert [row["v"] for row in found(table) if row["id"] in (3, 4)] == ["1", "2"]


def test_values_that_do_not_fit_are_null_where_asked(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "n": pa.array([1, 2], pa.int32())}))
    source = pa.table({"id": [1, 3], "n": ["7", "many"]})
    table = DeltaTable(tmp_path)
    with pytest.raises(Exception, match="'many'"):
        table.merge(source, "t.id = s.id", "s", "t").when_matched_update_all().when_not_matched_insert_all().execute()
    merger = table.merge(source, "t.id = s.id", "s", "t", error_on_type_mismatch=False)
    merger.when_matched_update_all().when_not_matched_insert_all().execute()
    assert found(table) == [{"id": 1, "n": 7}, {"id": 2, "n": 2}, {"id": 3, "n": None}]


# --- keys --------------------------------------------------------------------------------------------

KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "byte": (pa.int8(), [-128, 0, 127]),
    "short": (pa.int16(), [-5, 0, 5]),
    "int": (pa.int32(), [-(2**31), 0, 2**31 - 1]),
    "long": (pa.int64(), [-(2**63), 0, 2**63 - 1]),
    "float": (pa.float32(), [0.0, 1.5, math.inf]),
    "double": (pa.float64(), [-math.inf, 0.0, 2.5]),
    "boolean": (pa.bool_(), [True, False]),
    "text": (pa.string(), ["", "a", "A", "naïve", "\N{SNOWMAN}"]),
    "bytes": (pa.binary(), [b"", b"\x00", b"\xff\x00"]),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31)]),
    "moment": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(1900, 1, 1, tzinfo=dt.UTC), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)],
    ),
    "wall": (pa.timestamp("us"), [dt.datetime(1900, 1, 1), dt.datetime(2026, 1, 1, 1)]),  # noqa: DTZ001
    "money": (pa.decimal128(38, 10), [Decimal("-1.5"), Decimal(0), Decimal("12345678901234567890.0123456789")]),
}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("safe", [False, True])
def test_keys_of_every_type(kind: str, safe: bool, tmp_path: pathlib.Path) -> None:
    data_type, values = KEYS[kind]
    target = pa.table({"k": pa.array([*values[:-1], None], data_type), "n": range(len(values))})
    source = pa.table({"k": pa.array([*values, None], data_type)})
    write_deltalake(tmp_path, target, configuration=VECTORS)
    table = DeltaTable(tmp_path)
    metrics = (
        table.merge(source, "target.k <=> source.k" if safe else "target.k = source.k")
        .when_matched_update({"n": "-1"})
        .when_not_matched_insert({"k": "source.k", "n": "100"})
        .execute()
    )
    expected = len(values) - 1 + safe
    assert (metrics["num_target_rows_updated"], metrics["num_target_rows_inserted"]) == (
        expected,
        len(values) + 1 - expected,
    )
    rows = pa.table(table.scan()).to_pylist()
    assert Counter(row["k"] for row in rows) == Counter([*values, None] if safe else [*values, None, None])


def test_zeros_and_nan_are_equal_as_keys(tmp_path: pathlib.Path) -> None:
    target = pa.table({"k": [0.0, math.nan, 1.0], "n": [1, 2, 3]})
    write_deltalake(tmp_path, target)
    table = DeltaTable(tmp_path)
    table.merge(pa.table({"k": [-0.0, -math.nan]}), "target.k = source.k").when_matched_update({"n": "0"}).execute()
    assert sorted(row["n"] for row in pa.table(table.scan()).to_pylist()) == [0, 0, 3]


def test_keys_of_different_types_meet(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, pa.table({"k": pa.array([1, 2, 3], pa.int32()), "t": ["1", "2", "x"]}))
    table = DeltaTable(tmp_path)
    table.merge(pa.table({"k": [2, 2**40]}), "target.k = source.k").when_matched_update({"t": "'long'"}).execute()
    assert [row["t"] for row in found(table, "k")] == ["1", "long", "x"]
    table.merge(pa.table({"k": [Decimal("3.00")]}), "target.k = source.k").when_matched_delete().execute()
    assert [row["k"] for row in found(table, "k")] == [1, 2]


def test_only_files_that_can_match_are_looked_at(tmp_path: pathlib.Path) -> None:
    for part in range(5):
        ids = range(part * 10, part * 10 + 10)
        write_deltalake(tmp_path, pa.table({"id": ids, "p": [part] * 10}), mode="append", partition_by=["p"])
    table = DeltaTable(tmp_path)
    totals = lambda m: (m["num_target_files_scanned"], m["num_target_files_skipped_during_scan"])  # noqa: E731
    one = table.merge(pa.table({"id": [11, 43]}), "t.id = s.id", "s", "t").when_matched_update({"id": "t.id"}).execute()
    assert totals(one) == (2, 3)
    two = table.merge(pa.table({"id": [11, 43]}), "t.id = s.id and t.p = 1", "s", "t").when_matched_delete().execute()
    assert totals(two) == (1, 4)
    none = table.merge(pa.table({"id": [99]}), "t.id = s.id", "s", "t").when_matched_delete().execute()
    assert (totals(none), none["num_target_rows_deleted"]) == ((0, 5), 0)
    many = pa.table({"id": [n for n in range(20, 30) for _ in range(1)] + [n * 1000 + 5 for n in range(1, 2000)]})
    wide = table.merge(many.slice(0, 10), "t.id = s.id", "s", "t").when_matched_delete("s.id > 25").execute()
    assert (totals(wide), wide["num_target_rows_deleted"]) == ((1, 4), 4)


# --- sources ---------------------------------------------------------------------------------------


def sources(rows: pa.Table, folder: pathlib.Path) -> dict[str, Callable[[], Any]]:
    pl, pd, duckdb = pytest.importorskip("polars"), pytest.importorskip("pandas"), pytest.importorskip("duckdb")
    write_deltalake(folder, rows)
    return {
        "table": lambda: rows,
        "batch": lambda: rows.to_batches()[0],
        "reader": rows.to_reader,
        "batches": lambda: iter(rows.to_batches(max_chunksize=2)),
        "dataset": lambda: pads.dataset(rows),
        "scanner": lambda: pads.dataset(rows).scanner(),
        "pandas": lambda: pd.DataFrame(rows.to_pydict()),
        "polars": lambda: pl.from_arrow(rows),
        "lazy": lambda: pl.from_arrow(rows).lazy(),
        "duckdb": lambda: duckdb.from_arrow(rows),
        "delta": lambda: DeltaTable(folder),
        "query": lambda: f"SELECT v, id FROM delta.`{folder}` WHERE id > 0",
        "large": lambda: rows.cast(pa.schema([("id", pa.int32()), ("v", pa.large_string())])),
        "dictionary": lambda: rows.set_column(1, "v", rows["v"].dictionary_encode()),
    }


@pytest.mark.parametrize(
    "kind",
    [
        "table",
        "batch",
        "reader",
        "batches",
        "dataset",
        "scanner",
        "pandas",
        "polars",
        "lazy",
        "duckdb",
        "delta",
        "query",
        "large",
        "dictionary",
    ],
)
def test_sources_of_every_kind(kind: str, tmp_path: pathlib.Path) -> None:
    source = sources(pa.table({"id": [3, 8, 11], "v": ["x", None, "y"]}), tmp_path / "source")[kind]()
    table = small(tmp_path / "target", VECTORS)
    table.merge(source, "t.id = s.id", "s", "t").when_matched_update_all().when_not_matched_insert_all().execute()
    assert [row["v"] for row in found(table)] == ["v0", "v1", "v2", "x", "v4", "v5", "v6", "v7", None, "v9", "y"]


def test_a_text_is_a_query(tmp_path: pathlib.Path) -> None:
    table = small(tmp_path)
    with pytest.raises(InvalidArgumentError, match="must be a query, not DELETE"):
        table.merge(f"DELETE FROM delta.`{tmp_path}`", "t.id = s.id", "s", "t")
    assert DeltaTable(tmp_path).version() == table.version()


def test_empty_sources_and_tables(tmp_path: pathlib.Path) -> None:
    table = small(tmp_path / "full")
    empty = pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.string())})
    metrics = table.merge(empty, "t.id = s.id", "s", "t").when_matched_delete().when_not_matched_insert_all().execute()
    assert (metrics["num_source_rows"], metrics["num_target_files_scanned"], table.version()) == (0, 0, 1)
    table.merge(empty, "t.id = s.id", "s", "t").when_not_matched_by_source_delete("t.id < 9").execute()
    assert [row["id"] for row in found(table)] == [9]
    DeltaTable.create(tmp_path / "none", Schema([Field("id", "long"), Field("v", "string")]))
    none = DeltaTable(tmp_path / "none")
    source = pa.table({"id": [1, 2], "v": ["a", "b"]})
    merger = none.merge(source, "t.id = s.id", "s", "t").when_matched_delete().when_not_matched_insert_all("s.id > 1")
    assert merger.execute()["num_target_rows_inserted"] == 1
    assert found(none) == [{"id": 2, "v": "b"}]


def test_a_large_source_goes_to_a_temporary_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    rows = 200_000
    data = pa.table({"id": range(rows), "v": [f"value {i}" for i in range(rows)]})
    write_deltalake(tmp_path / "t", data)
    table = DeltaTable(tmp_path / "t")
    source = pa.table({"id": range(rows // 2, rows + rows // 2), "v": [f"new {i}" for i in range(rows)]})
    with pytest.raises(InvalidArgumentError, match="max_temp_directory_size"):
        table.merge(
            source, "t.id = s.id", "s", "t", max_spill_size=1000, max_temp_directory_size=1000
        ).when_matched_delete().execute()
    merger = table.merge(source, "t.id = s.id", "s", "t", max_spill_size=1 << 20, streamed_exec=False)
    metrics = merger.when_matched_update_all("s.id % 2 = 0").when_not_matched_insert_all().execute()
    assert (metrics["num_target_rows_updated"], metrics["num_target_rows_inserted"]) == (rows // 4, rows // 2)
    after = pa.table(table.scan()).sort_by("id")
    assert after["v"][rows // 2 : rows // 2 + 2].to_pylist() == ["new 0", f"value {rows // 2 + 1}"]
    assert (after.num_rows, after["v"][-1].as_py()) == (rows * 3 // 2, f"new {rows - 1}")
    assert list(scratch.iterdir()) == []


def test_the_join_takes_the_memory_that_there_is(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int | None] = []
    make = DuckDBEngine.__init__

    def spy(engine: DuckDBEngine, memory: int | None = None, temporary: int | None = None) -> None:
        taken.append(memory)
        make(engine, memory, temporary)

    monkeypatch.setattr(DuckDBEngine, "__init__", spy)
    table = small(tmp_path)
    for limit in (None, 1 << 20):
        merger = table.merge(pa.table({"id": [1, 2], "v": ["x", "y"]}), "t.id = s.id", "s", "t", max_spill_size=limit)
        merger.when_matched_update_all().execute()
    default, given = taken
    assert given == 1 << 20
    # The budget of all streams is a quarter of the memory at most; a join takes half of it.
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert default is not None
    assert 0 < default <= (pages / 8 if "DELTAFAST_MEMORY_LIMIT" not in os.environ else default)


def test_columns_that_are_excepted_keep_their_values(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "a": [1, 2], "b": [1, 2]}))
    table = DeltaTable(tmp_path)
    source = pa.table({"id": [2, 3], "a": [20, 30], "b": [20, 30]})
    merger = table.merge(source, "t.id = s.id", "s", "t").when_matched_update_all(except_cols=["B"])
    merger.when_not_matched_insert_all(except_cols=["a"]).execute()
    assert found(table) == [{"id": 1, "a": 1, "b": 1}, {"id": 2, "a": 20, "b": 2}, {"id": 3, "a": None, "b": 30}]


# --- constraints of tables -------------------------------------------------------------------------


def test_rows_keep_the_constraints_of_the_table(tmp_path: pathlib.Path) -> None:
    identity = {"delta.identity.start": 10, "delta.identity.step": 5, "delta.identity.allowExplicitInsert": False}
    schema = Schema(
        [
            Field("id", "long", nullable=False),
            Field("n", "long", metadata={"CURRENT_DEFAULT": "7"}),
            Field("twice", "long", metadata={"delta.generationExpression": "n * 2"}),
            Field("number", "long", metadata=identity),
        ]
    )
    DeltaTable.create(tmp_path, schema, configuration=FEED | {"delta.feature.allowColumnDefaults": "supported"})
    table = DeltaTable(tmp_path)
    table.alter.add_constraint({"positive": "n > 0"})
    source = pa.table({"id": [1, 2, 3], "m": [1, 2, 3]})
    table.merge(source, "t.id = s.id", "s", "t").when_not_matched_insert(
        {"id": "s.id"}, "m < 3"
    ).when_not_matched_insert({"id": "id", "n": "m"}).execute()
    assert [tuple(row.values()) for row in found(table)] == [(1, 7, 14, 10), (2, 7, 14, 15), (3, 3, 6, 20)]
    merger = table.merge(pa.table({"id": [2, 4]}), "t.id = s.id", "s", "t").when_matched_update({"n": "t.n + 1"})
    merger.when_not_matched_insert({"id": "s.id", "n": "5"}).execute()
    assert [tuple(row.values()) for row in found(table)][1:] == [(2, 8, 16, 15), (3, 3, 6, 20), (4, 5, 10, 25)]
    feed = pa.table(table.load_cdf(table.version(), table.version())).to_pylist()
    assert [row["number"] for row in feed if row["_change_type"] == "insert"] == [25]
    version = table.version()
    again = table.merge(pa.table({"id": [2, 9]}), "t.id = s.id", "s", "t")
    with pytest.raises(ConstraintViolatedError, match="positive"):
        again.when_matched_update({"n": "-1"}).execute()
    with pytest.raises(ConstraintViolatedError, match="NOT NULL"):
        table.merge(pa.table({"id": [2]}), "t.id = s.id", "s", "t").when_matched_update({"id": "null"}).execute()
    for merger in (
        table.merge(pa.table({"id": [9]}), "t.id = s.id", "s", "t").when_not_matched_insert(
            {"id": "id", "number": "1"}
        ),
        table.merge(pa.table({"id": [2]}), "t.id = s.id", "s", "t").when_matched_update({"number": "1"}),
    ):
        with pytest.raises(InvalidArgumentError, match="identity"):
            merger.execute()
    with pytest.raises(ConstraintViolatedError, match="twice"):
        table.merge(pa.table({"id": [2]}), "t.id = s.id", "s", "t").when_matched_update({"twice": "1"}).execute()
    with pytest.raises(SchemaMismatchError, match="NOT NULL"):
        table.merge(pa.table({"id": [77]}), "t.id = s.id", "s", "t").when_not_matched_insert({"n": "1"}).execute()
    assert DeltaTable(tmp_path).version() == version
    files = {path.name for path in tmp_path.glob("*.parquet")}
    assert files == {name for name in files if name in {path.rpartition("/")[2] for path in named_files(tmp_path)}}


def named_files(folder: pathlib.Path) -> set[str]:
    """Return every data file that the log names."""
    out: set[str] = set()
    for commit in (folder / "_delta_log").glob("*.json"):
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            out |= {action[kind]["path"] for kind in ("add", "remove", "cdc") if kind in action}
    return out


def test_rows_that_vectors_deleted_stay_deleted_where_files_are_copied(tmp_path: pathlib.Path) -> None:
    table = small(tmp_path, VECTORS | FEED)
    table.delete("id in (2, 7)")
    table.alter.set_table_properties({"delta.enableDeletionVectors": "false"})
    source = pa.table({"id": [2, 3, 8], "v": ["new", "x", "y"]})
    merger = table.merge(source, "t.id = s.id", "s", "t").when_matched_update_all().when_not_matched_insert_all()
    metrics = merger.execute()
    assert (metrics["num_target_rows_copied"], metrics["num_target_rows_updated"]) == (6, 2)
    rows = [(row["id"], row["v"]) for row in found(table)]
    assert rows == [(0, "v0"), (1, "v1"), (2, "new"), (3, "x"), (4, "v4"), (5, "v5"), (6, "v6"), (8, "y"), (9, "v9")]
    # All rows of a file go: it ends without being read.
    metrics = table.merge(source, "t.id = s.id", "s", "t").when_not_matched_by_source_delete().execute()
    assert [row["id"] for row in found(table)] == [2, 3, 8]
    assert metrics["num_target_rows_deleted"] == 6


def test_a_table_in_a_python_store_and_a_source_in_python(tmp_path: pathlib.Path) -> None:
    fs = pytest.importorskip("pyarrow.fs")
    small(tmp_path, VECTORS)
    table = DeltaTable(str(tmp_path), store=fs.LocalFileSystem())

    def batches() -> Iterable[pa.RecordBatch]:
        for i in (3, 8, 30):
            yield pa.record_batch({"id": [i], "v": [f"new {i}"]})

    merger = table.merge(batches(), "t.id = s.id", "s", "t").when_matched_update_all().when_not_matched_insert_all()
    assert merger.execute()["num_target_rows_updated"] == 2
    assert [row["v"] for row in found(tmp_path) if row["v"].startswith("new")] == ["new 3", "new 8", "new 30"]


# --- schema evolution --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_columns_and_fields_are_added_where_asked(name: str, tmp_path: pathlib.Path) -> None:
    data = pa.table({"id": [1, 2, 3], "s": [{"a": 1, "b": 2}, None, {"a": 3, "b": 4}], "l": [[{"x": 1}], [], None]})
    write_deltalake(tmp_path, data, configuration=CONFIGURATIONS[name])
    table = DeltaTable(tmp_path)
    source = pa.table({"id": [1, 4], "s": [{"a": 10, "c": "n"}] * 2, "l": [[{"x": 2, "y": True}]] * 2, "w": [0.5, 1.5]})
    plain = table.merge(source.drop_columns(["s", "l"]), "t.id = s.id", "s", "t")
    plain.when_matched_update_all().execute()
    assert [field.name for field in table.schema().fields] == ["id", "s", "l"]
    with pytest.raises(UnsupportedExpressionError, match="lacks fields"):
        table.merge(source, "t.id = s.id", "s", "t").when_matched_update_all().execute()
    merger = table.merge(source, "t.id = s.id", "s", "t", merge_schema=True)
    merger.when_matched_update_all().when_not_matched_insert_all().execute()
    assert found(table) == [
        {"id": 1, "s": {"a": 10, "b": 2, "c": "n"}, "l": [{"x": 2, "y": True}], "w": 0.5},
        {"id": 2, "s": None, "l": [], "w": None},
        {"id": 3, "s": {"a": 3, "b": 4, "c": None}, "l": None, "w": None},
        {"id": 4, "s": {"a": 10, "b": None, "c": "n"}, "l": [{"x": 2, "y": True}], "w": 1.5},
    ]
    if "delta.enableChangeDataFeed" in CONFIGURATIONS[name]:
        feed = pa.table(table.load_cdf(table.version(), table.version())).to_pylist()
        assert sorted((row["_change_type"], row["id"], row["w"]) for row in feed) == [
            ("insert", 4, 1.5),
            ("update_postimage", 1, 0.5),
            ("update_preimage", 1, None),
        ]


def merged_struct(old: Any, new: Any, of_old: pa.StructType, of_new: pa.StructType) -> Any:
    """The value of UPDATE * for a struct column, whose fields are spelt alike on both sides."""
    ours, theirs = ({field.name: field.type for field in of} for of in (of_old, of_new))
    if new is None and (old is None or (ours.keys() <= theirs.keys() and not lacks(of_new, of_old))):
        return None
    fields: Row = {}
    for name in [*ours, *(name for name in theirs if name not in ours)]:
        before, after = ((value or {}).get(name) for value in (old, new))
        if name not in theirs:
            fields[name] = before
        elif name in ours and pa.types.is_struct(ours[name]):
            fields[name] = merged_struct(before, after, ours[name], theirs[name])
        else:
            fields[name] = after
    return fields


def lacks(of_new: pa.DataType, of_old: pa.DataType) -> bool:
    """Whether a struct of the source lacks a field that the table's has, at any depth."""
    if not pa.types.is_struct(of_old):
        return False
    theirs = {field.name: field.type for field in of_new}
    return any(field.name not in theirs or lacks(theirs[field.name], field.type) for field in of_old)


def drawn_struct(draw: random.Random, depth: int) -> tuple[pa.StructType, pa.StructType]:
    """Two struct types that share some fields."""
    ours, theirs = [], []
    for name in "abcd"[: draw.randint(2, 4)]:
        of: tuple[pa.DataType, pa.DataType] = (pa.int64(), pa.int64())
        if depth and draw.random() < 0.4:
            of = drawn_struct(draw, depth - 1)
        side = draw.choice(["both", "both", "ours", "theirs"])
        ours += [(name, of[0])] if side != "theirs" else []
        theirs += [(name, of[1])] if side != "ours" else []
    return pa.struct([("z", pa.int64()), *ours]), pa.struct([("z", pa.int64()), *theirs])


def drawn_value(draw: random.Random, of: pa.DataType) -> Any:
    if draw.random() < 0.35:
        return None
    if pa.types.is_struct(of):
        return {field.name: drawn_value(draw, field.type) for field in of}
    return draw.randint(0, 9)


@pytest.mark.parametrize("seed", range(6))
def test_an_update_of_all_columns_keeps_a_struct_null_that_both_sides_have_null(
    seed: int, tmp_path: pathlib.Path
) -> None:
    draw = random.Random(seed)
    of_old, of_new = drawn_struct(draw, 2)
    ids = list(range(20))
    old, new = ([drawn_value(draw, of) for _ in ids] for of in (of_old, of_new))
    write_deltalake(tmp_path, pa.table({"id": ids, "s": pa.array(old, of_old)}))
    source = pa.table({"id": ids, "s": pa.array(new, of_new)})
    merger = DeltaTable(tmp_path).merge(source, "t.id = s.id", "s", "t", merge_schema=True)
    merger.when_matched_update_all().execute()
    expected = [merged_struct(*values, of_old, of_new) for values in zip(old, new, strict=True)]
    assert [row["s"] for row in found(tmp_path)] == expected


@pytest.mark.parametrize("nested", ["plain", "in a struct", "in a list", "in a map"])
@pytest.mark.parametrize("write", ["update all", "insert all", "assignment", "append"])
def test_no_write_with_new_fields_expands_a_null_struct(nested: str, write: str, tmp_path: pathlib.Path) -> None:
    def wrapped(of: Any) -> Any:
        kinds = {"in a struct": pa.struct({"q": of}), "in a list": pa.list_(of), "in a map": pa.map_(pa.string(), of)}
        return kinds.get(nested, of)

    null: Any = {"in a struct": {"q": None}, "in a list": [None], "in a map": [("k", None)]}.get(nested)
    ours = wrapped(pa.struct({"x": pa.int64(), "y": pa.int64()}))
    theirs = wrapped(pa.struct({"x": pa.int64(), "w": pa.int64()}))
    write_deltalake(tmp_path, pa.table({"id": [1], "s": pa.array([null], ours)}))
    source = pa.table({"id": [2 if write in ("insert all", "append") else 1], "s": pa.array([null], theirs)})
    if write == "append":
        write_deltalake(tmp_path, source, mode="append", schema_mode="merge")
    else:
        merger = DeltaTable(tmp_path).merge(source, "t.id = s.id", "s", "t", merge_schema=True)
        clauses = {
            "update all": merger.when_matched_update_all,
            "insert all": merger.when_not_matched_insert_all,
            "assignment": lambda: merger.when_matched_update({"s": "s.s"}),
        }
        clauses[write]().execute()
    assert all(row["s"] == null for row in found(tmp_path))


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_fields_are_added_that_a_clause_assigns(name: str, tmp_path: pathlib.Path) -> None:
    data = pa.table({"id": [1, 2], "s": [{"a": 1}, {"a": 2}]})
    write_deltalake(tmp_path, data, configuration=CONFIGURATIONS[name])
    table = DeltaTable(tmp_path)
    source = pa.table({"id": [2, 3], "s": [{"a": 20, "B": "x", "c": {"d": 5, "e": 6}}] * 2, "B": [7, 7]})
    with pytest.raises(SchemaMismatchError, match=r"no column `s\.b`"):
        table.merge(source, "t.id = q.id", "q", "t").when_matched_update({"s.b": "q.s.b"}).execute()
    with pytest.raises(SchemaMismatchError, match=r"no column `s\.n`"):
        table.merge(source, "t.id = q.id", "q", "t", merge_schema=True).when_matched_update({"s.n": "1"}).execute()
    # The field alone, not what stands beside it in the source, nor the column of its name.
    table.merge(source, "t.id = q.id", "q", "t", merge_schema=True).when_matched_update({"s.b": "q.s.b"}).execute()
    assert found(table) == [{"id": 1, "s": {"a": 1, "B": None}}, {"id": 2, "s": {"a": 2, "B": "x"}}]
    merger = table.merge(source, "t.id = q.id", "q", "t", merge_schema=True)
    merger.when_matched_update({"t.s.c.d": "q.s.c.d + 1"}).when_not_matched_insert({"id": "q.id"}).execute()
    assert found(table) == [
        {"id": 1, "s": {"a": 1, "B": None, "c": None}},
        {"id": 2, "s": {"a": 2, "B": "x", "c": {"d": 6}}},
        {"id": 3, "s": None},
    ]


def test_only_what_clauses_assign_is_added(tmp_path: pathlib.Path) -> None:
    table = small(tmp_path)
    source = pa.table({"id": [1, 20], "v": ["x", "y"], "a": [1, 2], "b": [3, 4], "c": [5, 6]})
    merger = table.merge(source, "t.id = s.id", "s", "t", merge_schema=True)
    merger.when_matched_update({"a": "s.a + 1"}).when_not_matched_insert_all(except_cols=["c"]).execute()
    assert [field.name for field in table.schema().fields] == ["id", "v", "a", "b"]
    rows = {row["id"]: row for row in found(table)}
    assert (rows[1]["a"], rows[1]["b"], rows[20]["a"], rows[20]["b"], rows[2]["a"]) == (2, None, 2, 4, None)
    with pytest.raises(SchemaMismatchError, match="no column `c`"):
        table.merge(source, "t.id = s.id", "s", "t").when_matched_update({"c": "s.c"}).execute()


def test_types_widen_where_the_table_lets_them(tmp_path: pathlib.Path) -> None:
    for widens in (True, False):
        folder = tmp_path / str(widens)
        data = pa.table({"id": pa.array([1, 2], pa.int64()), "n": pa.array([1, 2], pa.int32())})
        write_deltalake(folder, data, configuration={"delta.enableTypeWidening": "true"} if widens else None)
        table = DeltaTable(folder)
        merger = table.merge(pa.table({"id": [2, 3], "n": [2**40, 5]}), "t.id = s.id", "s", "t", merge_schema=True)
        merger.when_matched_update_all().when_not_matched_insert_all()
        if widens:
            merger.execute()
            assert [row["n"] for row in found(table)] == [1, 2**40, 5]
        else:
            with pytest.raises(Exception, match="OVERFLOW"):
                merger.execute()


def test_fields_of_structs_are_set(tmp_path: pathlib.Path) -> None:
    data = pa.table({"id": [1, 2], "s": [{"a": 1, "in": {"x": 1, "y": "k"}}, None]})
    write_deltalake(tmp_path, data)
    table = DeltaTable(tmp_path)
    source = pa.table({"id": [1, 2], "n": [5, 6]})
    merger = table.merge(source, "t.id = s.id", "s", "t")
    merger.when_matched_update({"t.s.in.x": "s.n", "s.a": "t.s.a + 1"}).execute()
    assert [row["s"] for row in found(table)] == [
        {"a": 2, "in": {"x": 5, "y": "k"}},
        {"a": None, "in": {"x": 6, "y": None}},
    ]


# --- commits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_columns_that_all_updates_replace_are_distinguished_from_those_that_make_values(
    name: str, tmp_path: pathlib.Path
) -> None:
    """`b` is in the values of one clause only, `c` in none, `s` loses one of its fields, `twice` follows `a`."""
    both = pa.struct([("x", pa.int64()), ("y", pa.string())])
    schema = pa.schema([("id", pa.int64()), *((c, pa.int64()) for c in "abc"), ("s", both), ("twice", pa.int64())])
    twice = Field("twice", "long", metadata={"delta.generationExpression": "a * 2"})
    old = Schema.from_arrow(pa.schema([field for field in schema if field.name != "twice"]))
    DeltaTable.create(tmp_path, Schema([*old.fields, twice]), configuration=CONFIGURATIONS[name])
    rows = [{"id": i, "a": i, "b": 10 * i, "c": 100 * i, "s": {"x": i, "y": f"y{i}"}, "twice": 2 * i} for i in range(8)]
    write_deltalake(tmp_path, pa.Table.from_pylist(rows, schema), mode="append")
    source = pa.table({"id": pa.array([1, 2, 3, 9], pa.int64()), "a": pa.array([-1, -2, -3, -9], pa.int64())})
    merger = DeltaTable(tmp_path).merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    merger.when_matched_update({"a": "s.a", "b": "s.a", "c": "7", "s.x": "s.a"}, predicate="s.a > -3")
    merger.when_matched_update({"a": "s.a", "b": "t.b + 1", "c": "8"})
    merger.when_not_matched_by_source_update({"a": "0", "b": "5", "c": "9"}, predicate="t.id > 5")
    merger.execute()
    expected = [dict(row, s=dict(row["s"])) for row in rows]
    for i in (1, 2):
        expected[i] |= {"a": -i, "b": -i, "c": 7, "s": {"x": -i, "y": f"y{i}"}, "twice": -2 * i}
    expected[3] |= {"a": -3, "b": 31, "c": 8, "twice": -6}
    for i in (6, 7):
        expected[i] |= {"a": 0, "b": 5, "c": 9, "twice": 0}
    assert found(DeltaTable(tmp_path)) == expected


def test_the_commit_says_what_was_done(tmp_path: pathlib.Path) -> None:
    table = small(tmp_path, VECTORS)
    source = pa.table({"id": [1, 20], "v": ["x", "y"]})
    merger = table.merge(
        source,
        "t.id = s.id",
        "s",
        "t",
        writer_properties=WriterProperties(compression="SNAPPY"),
        commit_properties=CommitProperties(custom_metadata={"userName": "x"}),
    )
    merger.when_matched_update({"v": "s.v"}, "s.v > 'a'").when_matched_delete().when_not_matched_insert_all().execute()
    commit = table.history(1)[0]
    assert (commit["operation"], commit["userName"]) == ("MERGE", "x")
    assert commit["operationParameters"] == {
        "predicate": '["t.id = s.id"]',
        "matchedPredicates": '[{"actionType":"update","predicate":"s.v > \'a\'"},{"actionType":"delete"}]',
        "notMatchedPredicates": '[{"actionType":"insert"}]',
        "notMatchedBySourcePredicates": "[]",
    }
    metrics = {key: int(value) for key, value in commit["operationMetrics"].items()}
    assert metrics["numTargetRowsMatchedUpdated"] == metrics["numTargetRowsUpdated"] == 1
    assert (metrics["numTargetDeletionVectorsAdded"], metrics["numOutputRows"]) == (1, 2)


def test_writers_alongside_a_merge(tmp_path: pathlib.Path) -> None:
    def cell(name: str, theirs: Callable[[DeltaTable], object], on: str = "t.id = s.id") -> DeltaTable:
        table = small(tmp_path / name)
        theirs(DeltaTable(tmp_path / name))
        source = pa.table({"id": [3, 20], "v": ["x", "y"]})
        table.merge(source, on, "s", "t").when_matched_update_all().when_not_matched_insert_all().execute()
        return table

    row = lambda i: pa.table({"id": [i], "v": ["other"]})  # noqa: E731
    append = lambda i: lambda t: write_deltalake(t, row(i), mode="append")  # noqa: E731
    merge = lambda i: lambda t: t.merge(row(i), "t.id = s.id", "s", "t").when_matched_update_all().execute()  # noqa: E731
    table = cell("far append", append(500))
    assert len(found(table)) == 12
    with pytest.raises(ConcurrentAppendError):
        cell("near append", append(20))
    with pytest.raises(ConcurrentAppendError):
        cell("any append", append(500), "t.id - s.id = 0")
    table = cell("merge elsewhere", merge(8))
    assert [row["v"] for row in found(table)][8:] == ["other", "v9", "y"]
    with pytest.raises(CommitFailedError):
        cell("merge of the same file", merge(2))
    with pytest.raises(CommitFailedError):
        cell("delete of what matched", lambda t: t.delete("id = 3"))
    # A row that was matched and is gone would have been inserted.
    table = small(tmp_path / "insert only")
    DeltaTable(tmp_path / "insert only").delete("id = 3")
    both = pa.concat_tables([row(3), row(50)])
    with pytest.raises(CommitFailedError):
        table.merge(both, "t.id = s.id", "s", "t").when_not_matched_insert_all().execute()


def test_a_failed_merge_leaves_nothing_behind(tmp_path: pathlib.Path) -> None:
    table = small(tmp_path, VECTORS | FEED)
    write_deltalake(DeltaTable(tmp_path), pa.table({"id": [3], "v": ["z"]}), mode="append")
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    source = pa.table({"id": [3, 20], "v": ["x", "y"]})
    with pytest.raises(CommitFailedError):
        table.merge(source, "t.id = s.id", "s", "t").when_matched_update_all().when_not_matched_insert_all().execute()
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == before
    assert table.version() == 1


def test_a_merge_runs_once(tmp_path: pathlib.Path) -> None:
    table = small(tmp_path)
    merger = table.merge(iter([pa.record_batch({"id": [3]})]), "t.id = s.id", "s", "t").when_matched_delete()
    merger.execute()
    with pytest.raises(InvalidArgumentError):
        merger.execute()
    with pytest.warns(DeprecationWarning, match="by keyword"):
        table.merge(pa.table({"id": [4]}), "t.id = s.id", "s", "t", False, True, None, True, None, None, None)


@pytest.mark.parametrize("configuration", [{}, VECTORS | FEED], ids=["copies", "vectors with a feed"])
def test_a_merge_that_lost_runs_again_when_asked_to(tmp_path: pathlib.Path, configuration: dict[str, str]) -> None:
    stale = small(tmp_path, configuration)
    DeltaTable(tmp_path).update({"v": "concat(v, '!')"}, predicate="id in (3, 4)")
    DeltaTable(tmp_path).delete("id = 5")
    changes = pa.table({"id": [3, 5, 20], "v": ["a", "b", "c"]})

    def merged(table: DeltaTable, **options: Any) -> dict[str, Any]:
        # A stream: what it gave is not asked for again.
        merger = table.merge(changes.to_reader(), "t.id = s.id", "s", "t", **options)
        return merger.when_matched_update({"v": "concat(t.v, s.v)"}).when_not_matched_insert_all().execute()

    with pytest.raises(CommitFailedError):
        merged(DeltaTable(tmp_path, version=1))
    totals = merged(stale, max_conflict_retries=1)
    assert (totals["num_target_rows_updated"], totals["num_target_rows_inserted"]) == (1, 2)
    assert totals["num_source_rows"] == 3
    assert stale.version() == 4
    expected = {i: f"v{i}" for i in range(10)} | {3: "v3!a", 4: "v4!", 5: "b", 20: "c"}
    assert {row["id"]: row["v"] for row in found(tmp_path)} == expected
    # Nothing that matched then does now.
    stale = DeltaTable(tmp_path)
    DeltaTable(tmp_path).delete("id = 3")
    (stale.merge(changes, "t.id = s.id and t.id = 3", "s", "t", max_conflict_retries=2).when_matched_delete().execute())
    assert stale.version() == 5
    # What the table is has changed.
    stale = DeltaTable(tmp_path)
    DeltaTable(tmp_path).delete("id = 20")
    DeltaTable(tmp_path).alter.set_table_properties({"k": "v"})
    with pytest.raises(CommitFailedError):
        merged(stale, max_conflict_retries=5)
    with pytest.raises(InvalidArgumentError, match="max_conflict_retries"):
        stale.merge(changes, "t.id = s.id", max_conflict_retries=-1)
    assert len(list(tmp_path.glob("*.parquet"))) == len(set(files_of_log(tmp_path)))


def files_of_log(folder: pathlib.Path) -> Iterable[str]:
    """Names of all data files that the log ever named."""
    for commit in sorted((folder / "_delta_log").glob("*.json")):
        for line in commit.read_text().splitlines():
            if (add := json.loads(line).get("add")) is not None:
                yield add["path"]


def test_a_hot_counter_that_is_merged_loses_nothing(tmp_path: pathlib.Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    write_deltalake(tmp_path, pa.table({"id": [1, 2], "n": [0, 0]}), configuration=VECTORS)

    def count(_: int) -> None:
        for _ in range(4):
            merger = DeltaTable(tmp_path).merge(pa.table({"id": [1]}), "t.id = s.id", "s", "t", max_conflict_retries=30)
            merger.when_matched_update({"n": "t.n + 1"}).execute()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, range(4)))
    assert found(tmp_path) == [{"id": 1, "n": 16}, {"id": 2, "n": 0}]
