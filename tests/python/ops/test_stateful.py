"""Commands in any order against a model in memory: rows and change feed of every version, row ids, time travel,
clustering columns and properties.

The model is a list of rows by version. Whatever a command does, the feed of its version must lead from the rows before
to the rows after; of DELETE, UPDATE and MERGE it is known exactly.
"""

from __future__ import annotations

import collections
import os
import re
import shutil
import tempfile
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

Row = dict[str, Any]

#: Draws that many histories anew, not the usual few.
MANY = int(os.environ.get("DELTAFAST_HISTORIES", "0"))
SCHEMA = pa.schema([("uid", pa.int64()), ("k", pa.int64()), ("n", pa.int32()), ("s", pa.string()), ("p", pa.string())])
_STATES = st.lists(
    st.tuples(
        st.none() | st.integers(0, 6),
        st.none() | st.integers(-1, 2),
        st.sampled_from([None, "", "a", "zz"]),
        st.sampled_from([None, "x", "y z"]),
    ),
    max_size=5,
)


def _known(value: Any, test: Callable[[Any], bool]) -> bool:
    return value is not None and test(value)


#: SQL, and the same of a row.
PREDICATES: list[tuple[str, Callable[[Row], bool]]] = [
    ("k >= 3", lambda r: _known(r["k"], lambda v: v >= 3)),
    ("k = 2 or n is null", lambda r: r["k"] == 2 or r["n"] is None),
    ("n = 1 and s is not null", lambda r: r["n"] == 1 and r["s"] is not None),
    ("s <=> 'a'", lambda r: r["s"] == "a"),
    ("p = 'x'", lambda r: r["p"] == "x"),
    ("p is null or p = 'y z'", lambda r: r["p"] in (None, "y z")),
    ("not (k in (1, 5))", lambda r: _known(r["k"], lambda v: v not in (1, 5))),
    ("uid % 2 = 0", lambda r: r["uid"] % 2 == 0),
    ("true", lambda _: True),
    ("k > 100", lambda _: False),
]
#: Assignments, and the same of a row.
UPDATES: list[tuple[dict[str, str], Callable[[Row], Row]]] = [
    ({"n": "n + 1"}, lambda r: {"n": None if r["n"] is None else r["n"] + 1}),
    ({"s": "concat(coalesce(s, ''), '!')"}, lambda r: {"s": (r["s"] or "") + "!"}),
    ({"p": "'x'"}, lambda _: {"p": "x"}),
    ({"p": "s", "s": "p"}, lambda r: {"p": r["s"], "s": r["p"]}),
    ({"k": "null", "n": "7"}, lambda _: {"k": None, "n": 7}),
]
#: Properties that change how commands work, not what they leave.
PROPERTIES = {
    "delta.enableDeletionVectors": ("true", "false"),
    "delta.targetFileSize": ("1kb", "1gb"),
    "delta.parquet.compression.codec": ("zstd", "uncompressed"),
    "delta.checkpoint.writeStatsAsStruct": ("true", "false"),
    "my.key": ("a", "b c"),
}


def _key(row: Row) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, repr(value)) for name, value in row.items()))


def _bag(rows: list[Row]) -> collections.Counter[Any]:
    return collections.Counter(map(_key, rows))


class Histories(RuleBasedStateMachine):
    """A table and what should be in it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="history-")
        self.uids = 0
        self.columns = list(SCHEMA.names)
        self.versions: list[list[Row]] = []
        self.schemas: list[list[str]] = []
        #: Clustering columns and properties, now and of every version.
        self.clustering: list[str] = []
        self.properties: dict[str, str] = {}
        self.settings: list[tuple[list[str], dict[str, str]]] = []
        #: What each version's feed must be, where it is known.
        self.feeds: list[collections.Counter[Any] | None] = []
        #: From which version on files are there still.
        self.kept = 0
        self.row_ids: dict[int, int] = {}

    def teardown(self) -> None:
        try:
            if self.versions:
                for version in range(self.kept, len(self.versions)):
                    self.check_version(version)
                self.check_feed(min(self.kept + 1, len(self.versions) - 1), len(self.versions) - 1)
        finally:
            shutil.rmtree(self.folder)

    # --- the model

    @property
    def rows(self) -> list[Row]:
        return self.versions[-1]

    def made(self, rows: list[Row], feed: list[tuple[str, Row]] | None = None) -> None:
        """A version was made, if the table says so; else nothing may have changed."""
        if self.table.version() == len(self.versions) - 1:
            assert _bag(rows) == _bag(self.rows)
            return
        self.version_of(rows)
        self.feeds.append(None if feed is None else collections.Counter((kind, _key(row)) for kind, row in feed))

    def version_of(self, rows: list[Row]) -> None:
        self.versions.append(rows)
        self.schemas.append(list(self.columns))
        self.settings.append((list(self.clustering), dict(self.properties)))

    def drawn(self, values: list[tuple[Any, ...]]) -> list[Row]:
        """Rows that are unlike all others."""
        out = []
        for value in values:
            row: Row = dict.fromkeys(self.columns)
            row |= {"uid": self.uids} | dict(zip(SCHEMA.names[1:], value, strict=True))
            self.uids += 1
            out.append(row)
        return out

    def data(self, rows: list[Row]) -> pa.Table:
        return pa.Table.from_pylist(rows, SCHEMA)

    # --- what is done

    @initialize(
        values=_STATES,
        partitioned=st.booleans(),
        vectors=st.booleans(),
        mapped=st.booleans(),
        tracked=st.booleans(),
        often=st.booleans(),
    )
    def create(self, values: Any, partitioned: bool, vectors: bool, mapped: bool, tracked: bool, often: bool) -> None:
        configuration = {"delta.enableChangeDataFeed": "true"}
        if vectors:
            configuration["delta.enableDeletionVectors"] = "true"
        if mapped:
            configuration["delta.columnMapping.mode"] = "name"
        if tracked:
            configuration["delta.enableRowTracking"] = "true"
        if often:
            configuration |= {"delta.checkpointInterval": "3", "delta.checkpointPolicy": "v2"}
        self.tracked, self.partitioned, self.mapped = tracked, partitioned, mapped
        self.properties = {key: value for key, value in configuration.items() if key in PROPERTIES}
        rows = self.drawn(values)
        write_deltalake(
            self.folder, self.data(rows), configuration=configuration, partition_by=["p"] if partitioned else None
        )
        self.table = DeltaTable(self.folder)
        self.made(rows, [("insert", row) for row in rows])

    @rule(values=_STATES)
    def append(self, values: Any) -> None:
        rows = self.drawn(values)
        write_deltalake(self.table, self.data(rows), mode="append")
        self.made(self.rows + rows, [("insert", row) for row in rows])

    @rule(values=_STATES, which=st.none() | st.sampled_from(PREDICATES))
    def overwrite(self, values: Any, which: Any) -> None:
        sql, holds = which or (None, lambda _: True)
        rows = [row for row in self.drawn(values) if holds(row)]
        gone = [row for row in self.rows if holds(row)]
        write_deltalake(self.table, self.data(rows), mode="overwrite", predicate=sql)
        feed = [("delete", row) for row in gone] + [("insert", row) for row in rows]
        self.made([row for row in self.rows if not holds(row)] + rows, feed)

    @rule(which=st.none() | st.sampled_from(PREDICATES))
    def delete(self, which: Any) -> None:
        sql, holds = which or (None, lambda _: True)
        gone = [row for row in self.rows if holds(row)]
        assert self.table.delete(sql).get("num_deleted_rows") in (len(gone), None)
        self.made([row for row in self.rows if not holds(row)], [("delete", row) for row in gone])

    @rule(which=st.none() | st.sampled_from(PREDICATES), how=st.sampled_from(UPDATES))
    def update(self, which: Any, how: Any) -> None:
        sql, holds = which or (None, lambda _: True)
        values, new = how
        old = [row for row in self.rows if holds(row)]
        changed = [self.partitions(row | new(row)) for row in old]
        metrics = self.table.update(values, predicate=sql)
        assert metrics["num_updated_rows"] in (len(old), None)
        feed = [("update_preimage", row) for row in old] + [("update_postimage", row) for row in changed]
        self.made([row for row in self.rows if not holds(row)] + changed, feed)

    def partitions(self, row: Row) -> Row:
        """A row as the table gives it back: an empty text in a partition column is a null."""
        return row | {"p": row["p"] or None} if self.partitioned else row

    @rule(
        values=_STATES,
        taken=st.none() | st.sampled_from(PREDICATES),
        deletes=st.booleans(),
        inserts=st.booleans(),
        by_source=st.none() | st.sampled_from(PREDICATES),
    )
    def merge(self, values: Any, taken: Any, deletes: bool, inserts: bool, by_source: Any) -> None:
        source = {row["k"]: row for row in self.drawn(values)}
        merger = self.table.merge(self.data(list(source.values())), "t.k = s.k", source_alias="s", target_alias="t")
        sql, holds = taken or (None, lambda _: True)
        condition = sql and _qualified(sql)
        if deletes:
            merger = merger.when_matched_delete(condition)
        else:
            merger = merger.when_matched_update({"n": "s.n", "s": "concat(t.s, s.s)"}, condition)
        if inserts:
            merger = merger.when_not_matched_insert_all("s.n is not null")
        if by_source is not None:
            merger = merger.when_not_matched_by_source_update({"s": "'gone'"}, _qualified(by_source[0]))
        merger.execute()
        other = by_source[1] if by_source is not None else lambda _: False
        self.made(*self.merged(source, holds, other, deletes=deletes, inserts=inserts))

    def merged(
        self, source: dict[Any, Row], holds: Any, by_source: Any, *, deletes: bool, inserts: bool
    ) -> tuple[list[Row], list[tuple[str, Row]]]:
        """What a MERGE leaves, and what it tells."""
        feed: list[tuple[str, Row]] = []
        out: list[Row] = []
        for row in self.rows:
            match = None if row["k"] is None else source.get(row["k"])
            if match is not None and holds(row):
                if deletes:
                    feed.append(("delete", row))
                    continue
                text = None if row["s"] is None or match["s"] is None else row["s"] + match["s"]
                new = row | {"n": match["n"], "s": text}
            elif match is None and by_source(row):
                new = row | {"s": "gone"}
            else:
                out.append(row)
                continue
            feed += [("update_preimage", row), ("update_postimage", new)]
            out.append(new)
        keys = {row["k"] for row in self.rows if row["k"] is not None}
        if inserts:
            fresh = [row for key, row in source.items() if key not in keys and row["n"] is not None]
            out += fresh
            feed += [("insert", row) for row in fresh]
        return out, feed

    @rule()
    def compact(self) -> None:
        self.table.optimize.compact()
        self.made(self.rows, [])

    @rule()
    def z_order(self) -> None:
        # Also where it is clustered no longer, as in delta-spark.
        if "clustering" in (self.table.protocol().writer_features or ()):
            with pytest.raises(InvalidArgumentError, match="Z-order"):
                self.table.optimize.z_order(["k", "n"])
            return
        self.table.optimize.z_order(["k", "n"])
        self.made(self.rows, [])

    @precondition(lambda self: not self.partitioned)
    @rule(data=st.data())
    def cluster_by(self, data: Any) -> None:
        columns = data.draw(st.lists(st.sampled_from(self.columns), max_size=3, unique=True))
        self.table.alter.cluster_by(columns or None)
        self.clustering = columns
        self.made(self.rows, [])

    @precondition(lambda self: bool(self.clustering))
    @rule(full=st.booleans())
    def cluster(self, full: bool) -> None:
        self.table.optimize.cluster(full=full)
        self.made(self.rows, [])

    @rule()
    def purge(self) -> None:
        self.table.optimize.purge()
        self.made(self.rows, [])
        # Nothing is left to purge.
        self.table.optimize.purge()
        assert self.table.version() == len(self.versions) - 1

    @rule()
    def checkpoint(self) -> None:
        self.table.create_checkpoint()

    @rule()
    def vacuum_in_name_only(self) -> None:
        self.table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=True)
        self.made(self.rows, [])

    @rule()
    def vacuum(self) -> None:
        self.table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        # Two commits that say that it began and ended, or none.
        while self.table.version() > len(self.versions) - 1:
            self.version_of(self.rows)
            self.feeds.append(collections.Counter())
            self.kept = self.table.version()

    @precondition(lambda self: self.kept < len(self.versions) - 1)
    @rule(data=st.data())
    def restore(self, data: Any) -> None:
        version = data.draw(st.integers(self.kept, len(self.versions) - 2))
        self.table.restore(version)
        self.columns = list(self.schemas[version])
        self.clustering, self.properties = list(self.settings[version][0]), dict(self.settings[version][1])
        self.made(list(self.versions[version]))

    @precondition(lambda self: len(self.columns) < 7)
    @rule()
    def add_column(self) -> None:
        from deltafast import Field

        name = next(name for n in range(9) if (name := f"x{n}") not in self.columns)
        self.table.alter.add_columns([Field(name, "integer")])
        self.columns.append(name)
        self.made([row | {name: None} for row in self.rows], [])

    @property
    def added(self) -> list[str]:
        """Columns that no predicate or assignment names."""
        return [name for name in self.columns if name not in SCHEMA.names]

    @precondition(lambda self: bool(self.added))
    @rule(data=st.data())
    def fill(self, data: Any) -> None:
        name = data.draw(st.sampled_from(self.added))
        sql, holds = data.draw(st.sampled_from(PREDICATES))
        old = [row for row in self.rows if holds(row)]
        changed = [row | {name: row["uid"] * 2} for row in old]
        self.table.update({name: "cast(uid * 2 as int)"}, predicate=sql)
        feed = [("update_preimage", row) for row in old] + [("update_postimage", row) for row in changed]
        self.made([row for row in self.rows if not holds(row)] + changed, feed)

    @precondition(lambda self: self.mapped and bool(self.added))
    @rule(data=st.data())
    def rename_column(self, data: Any) -> None:
        old = data.draw(st.sampled_from(self.added))
        # One that was dropped before may come again as another's.
        new = data.draw(st.sampled_from([name for name in ("y", "Y z", "x1", "x2") if name not in self.columns]))
        self.table.alter.rename_column(old, new)
        self.columns = [new if name == old else name for name in self.columns]
        self.clustering = [new if name == old else name for name in self.clustering]
        self.made([{new if name == old else name: value for name, value in row.items()} for row in self.rows], [])

    @precondition(lambda self: self.mapped and bool(self.added))
    @rule(data=st.data())
    def drop_column(self, data: Any) -> None:
        name = data.draw(st.sampled_from(self.added))
        if name in self.clustering:
            with pytest.raises(InvalidArgumentError, match="cluster"):
                self.table.alter.drop_columns([name])
            return
        self.table.alter.drop_columns([name])
        self.columns.remove(name)
        self.made([{key: value for key, value in row.items() if key != name} for row in self.rows], [])

    @rule(data=st.data())
    def set_property(self, data: Any) -> None:
        key = data.draw(st.sampled_from(sorted(PROPERTIES)))
        value = data.draw(st.sampled_from(PROPERTIES[key]))
        self.table.alter.set_table_properties({key: value}, raise_if_not_exists=False)
        self.properties[key] = value
        self.made(self.rows, [])

    @precondition(lambda self: bool(self.properties))
    @rule(data=st.data())
    def unset_property(self, data: Any) -> None:
        key = data.draw(st.sampled_from(sorted(self.properties)))
        self.table.alter.unset_table_properties([key])
        del self.properties[key]
        self.made(self.rows, [])

    @rule()
    def open_again(self) -> None:
        self.table = DeltaTable(self.folder)

    # --- what must hold

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        if self.versions:
            self.check_version(len(self.versions) - 1, self.table)

    @invariant()
    def row_ids_stay(self) -> None:
        if self.versions and self.tracked:
            found = pa.table(self.table.scan(columns=["uid"], metadata_columns=["row_id"])).to_pylist()
            ids = {row["uid"]: row["row_id"] for row in found}
            assert len(set(ids.values())) == len(self.rows)
            assert all(self.row_ids.setdefault(uid, number) == number for uid, number in ids.items())

    @precondition(lambda self: bool(self.versions))
    @rule(data=st.data())
    def travel(self, data: Any) -> None:
        version = data.draw(st.integers(self.kept, len(self.versions) - 1))
        self.check_version(version)
        last = data.draw(st.integers(version, len(self.versions) - 1))
        if version > self.kept:
            self.check_feed(version, last)

    def check_version(self, version: int, table: DeltaTable | None = None) -> None:
        table = table or DeltaTable(self.folder, version=version)
        assert table.version() == version
        found = pa.table(table.scan())
        assert found.column_names == self.schemas[version]
        assert _bag(found.to_pylist()) == _bag(self.versions[version])
        configuration = table.metadata().configuration
        clustering = table.detail()["clusteringColumns"]
        assert (clustering, {k: v for k, v in configuration.items() if k in PROPERTIES}) == self.settings[version]

    def check_feed(self, first: int, last: int) -> None:
        """The feed leads from each version to the next; where a column came or went in between, it is not asked for."""
        if first < 1 or any(self.schemas[n] != self.schemas[last] for n in range(first - 1, last)):
            return
        # A newer handle would give the feed its newer columns.
        found = pa.table(DeltaTable(self.folder, version=last).load_cdf(first, last)).to_pylist()
        by_version: dict[int, list[tuple[str, Row]]] = collections.defaultdict(list)
        for row in found:
            del row["_commit_timestamp"]
            by_version[row.pop("_commit_version")].append((row.pop("_change_type"), row))
        for version in range(first, last + 1):
            reported = by_version[version]
            now = _bag(self.versions[version - 1])
            now.subtract(_bag([row for kind, row in reported if kind in ("delete", "update_preimage")]))
            now.update(_bag([row for kind, row in reported if kind in ("insert", "update_postimage")]))
            assert +now == _bag(self.versions[version])
            assert not -now
            expected = self.feeds[version]
            if expected is not None:
                assert collections.Counter((kind, _key(row)) for kind, row in reported) == expected


def _qualified(sql: str) -> str:
    """The same of columns of the table in a MERGE."""
    return re.sub(r"(?<![\w.'])(uid|k|n|s|p)(?![\w'])", r"t.\1", sql)


@pytest.mark.slow
@pytest.mark.timeout(0 if MANY else 300)
def test_commands_in_any_order_do_what_the_model_does() -> None:
    chosen = settings(
        max_examples=MANY or 25,
        stateful_step_count=40 if MANY else 14,
        derandomize=not MANY,
        deadline=None,
        database=None,
        # No shrinking: on tables it takes minutes.
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Histories, settings=chosen)
