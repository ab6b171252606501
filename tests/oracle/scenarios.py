"""Tables that delta-spark writes: what is done to each, and what is asked of it afterwards.

In statements and settings `{t}` stands for the table, `{src}` for a second one beside it.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: A step that is not SQL: a checkpoint of the newest version.
CHECKPOINT = "checkpoint"
#: A step that is not SQL: a log compaction file over all commits but the first and the last.
COMPACT_LOG = "compact log"

FEED = "'delta.enableChangeDataFeed' = 'true'"
VECTORS = "'delta.enableDeletionVectors' = 'true'"


@dataclasses.dataclass(frozen=True)
class Scenario:
    """A table's life."""

    steps: Sequence[str]
    #: Spark SQL conditions for its newest version.
    where: Sequence[str] = ()
    #: The first version from which its change data feed is asked for; None if it has none.
    feed: int | None = None
    #: Settings of the session while it is written.
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: Whether rows have ids.
    row_ids: bool = False


def ten(columns: str, start: int = 0, files: int = 2) -> str:
    """Return an INSERT of ten ids from `start` in so many files, with these expressions over `id`."""
    return f"insert into {{t}} select {columns} from range({start}, {start + 10}, 1, {files})"


SCENARIOS = {
    "every type": Scenario(
        steps=[
            """create table {t} (id bigint, by tinyint, sh smallint, i int, f float, d double, b boolean, s string,
            bin binary, day date, ts timestamp, ntz timestamp_ntz, small decimal(9,2), large decimal(18,6),
            huge decimal(38,10), st struct<x: int, y: struct<z: string>>, arr array<int>, nested array<struct<k: int>>,
            m map<string, int>, v void) using delta""",
            """insert into {t} values
            (1, 1Y, 2S, 3, 1.5F, 2.5D, true, 'abc', X'0102', date'2024-02-29', timestamp'2024-03-10 12:34:56.789012',
            timestamp_ntz'2024-03-10 02:30:00', 1.25, 123456.654321, 9999999999999999999999999999.9999999999,
            named_struct('x', 1, 'y', named_struct('z', 'q')), array(1, null, 3), array(named_struct('k', 1)),
            map('a', 1, 'b', null), null),
            (2, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
            null, null)""",
            """insert into {t} values
            (3, 127Y, -32768S, 2147483647, float('NaN'), double('-Infinity'), false, '', X'', date'0001-01-01',
            timestamp'1582-10-04 00:00:00', timestamp_ntz'9999-12-31 23:59:59.999999', -0.01, -1.000001, -0.0000000001,
            named_struct('x', null, 'y', null), array(), array(null), map(), null),
            (4, 0Y, 0S, 0, -0.0F, 0.0D, false, 'straße 日本', X'FF', date'9999-12-31', timestamp'1969-12-31 23:59:59.5Z',
            timestamp_ntz'1969-12-31 23:59:59', 0, 0, 0, named_struct('x', 7, 'y', named_struct('z', null)), null,
            array(named_struct('k', null)), map('日', 0), null)""",
        ],
        where=[
            "by > 1",
            "sh <= 2S",
            "i = 3 or i is null",
            # Other writers leave NaN out of statistics, so bounds of floating columns prune a little less than Spark's.
            "isnan(f) or f > 1e30",
            "d < 0",
            "not b",
            "s >= 'b'",
            "s like 'str%'",
            "bin = X'FF'",
            "day between '0001-01-01' and '2024-01-01'",
            "ts > '2024-03-10 12:34:56.789011'",
            "ntz < timestamp_ntz'1970-01-01 00:00:00'",
            "small = 1.25",
            "huge > 1e20",
            "st.x = 7",
            "st.y.z is null",
            "by <=> null",
            "year(day) = 2024",
            "id in (1, 4) and s is not null",
        ],
    ),
    "partitions": Scenario(
        steps=[
            """create table {t} (id bigint, p string, n int, day date, at timestamp) using delta
            partitioned by (p, n, day, at)""",
            """insert into {t} select id, element_at(array('a b', 'x/y=z', '%20', 'ü', '', null), cast(id % 6 + 1 as int)),
            if(id % 4 = 0, null, id % 4), date_add(date'2024-02-28', cast(id % 3 as int)),
            timestamp_micros(id % 2 * 1234567) from range(0, 12, 1, 1)""",
            "insert overwrite {t} partition (p = 'ü', n = 3, day = '2024-02-28', at = '2024-01-01 00:00:00') select 100",
            "insert into {t} replace where n = 1 select 200, 'new', 1, date'2030-01-01', timestamp'2030-01-01 00:00:00'",
            "delete from {t} where p = 'a b'",
        ],
        where=[
            "p = 'x/y=z'",
            "p is null",
            "p = ''",
            "n > 1 and day < '2024-03-01'",
            "at = timestamp'1970-01-01 00:00:01.234567'",
            "n is null or p >= 'x'",
            "day in ('2024-02-29', '2030-01-01') and id > 5",
        ],
    ),
    "deletion vectors and change feed": Scenario(
        steps=[
            f"create table {{t}} (id bigint, x int, p int) using delta partitioned by (p) tblproperties ({FEED}, {VECTORS})",
            ten("id, cast(id as int), cast(id % 2 as int)"),
            ten("id, cast(id as int), cast(id % 2 as int)", 10),
            "delete from {t} where id in (3, 14)",
            "update {t} set x = x + 100 where id % 5 = 0",
            """merge into {t} using (select * from values (1, 1000), (30, 3000) as s(id, x)) s on {t}.id = s.id
            when matched then update set x = s.x when not matched then insert (id, x, p) values (s.id, s.x, 0)
            when not matched by source and {t}.id > 17 then delete""",
            "delete from {t} where p = 1 and id < 10",
            "optimize {t}",
            "delete from {t} where id = 30",
            "reorg table {t} apply (purge)",
            "delete from {t}",
        ],
        where=["x > 100", "p = 0 and x between 5 and 104", "id = 14"],
        feed=0,
    ),
    "change feed without vectors": Scenario(
        steps=[
            "create table {t} (id bigint, x int) using delta",
            ten("id, 1"),
            f"alter table {{t}} set tblproperties ({FEED})",
            "update {t} set x = 2 where id < 3",
            "delete from {t} where id >= 0",
            "alter table {t} add column (y string)",
            ten("id, 3, 'y'", 20, 1),
            "insert overwrite {t} select id, 4, 'z' from range(2)",
        ],
        where=["x = 3", "y is null"],
        feed=2,
    ),
    "column mapping by name": Scenario(
        steps=[
            """create table {t} (id bigint, ab string, st struct<x: int, yz: string>, gone int, p int) using delta
            partitioned by (p)""",
            ten("id, concat('s', id), struct(cast(id as int), 'q'), 1, cast(id % 2 as int)"),
            "alter table {t} set tblproperties ('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')",
            "alter table {t} rename column ab to `c,;{{}}()=`",
            "alter table {t} rename column st.x to renamed",
            "alter table {t} rename column st.yz to `y.z`",
            "alter table {t} rename column p to part",
            ten("id, concat('t', id), struct(cast(id as int), 'r'), 2, cast(id % 3 as int)", 10),
            "alter table {t} drop column gone",
            "alter table {t} add column (gone string after id)",
            ten("id, 'back', concat('u', id), struct(cast(id as int), 's'), 7", 20, 1),
            "optimize {t}",
        ],
        where=["st.renamed > 12", "part = 1", "`c,;{}()=` = 't15'", "gone is not null", "st.`y.z` = 'q'"],
    ),
    "column mapping by id": Scenario(
        steps=[
            f"""create table {{t}} (id bigint, a string, st struct<x: int>, l array<struct<e: int>>, m map<string, struct<v: int>>)
            using delta tblproperties ('delta.columnMapping.mode' = 'id', {FEED}, {VECTORS})""",
            ten("id, 'a', struct(cast(id as int)), array(struct(cast(id as int))), map('k', struct(1))"),
            "alter table {t} rename column a to b",
            "alter table {t} rename column l.element.e to f",
            "alter table {t} add column (m.value.w string)",
            ten("id, 'b', struct(cast(id as int)), array(struct(2)), map('k', struct(2, 'w'))", 10),
            "delete from {t} where st.x in (3, 12)",
            "alter table {t} drop column m",
        ],
        where=["st.x >= 15", "b = 'a'"],
    ),
    "type widening": Scenario(
        steps=[
            """create table {t} (id bigint, i tinyint, f float, de decimal(5,2), day date, di int, st struct<x: smallint>,
            l array<int>, p smallint) using delta partitioned by (p) tblproperties ('delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported')""",
            """insert into {t} select id, cast(id as tinyint), float(id) / 3, id / 7, date_add(date'2020-01-01', cast(id as int)),
            cast(id as int), named_struct('x', cast(id as smallint)), array(cast(id as int)), cast(id % 2 as smallint)
            from range(10)""",
            "alter table {t} alter column i type int",
            "alter table {t} alter column f type double",
            "alter table {t} alter column de type decimal(10,4)",
            "alter table {t} alter column day type timestamp_ntz",
            "alter table {t} alter column di type double",
            "alter table {t} alter column st.x type bigint",
            "alter table {t} alter column l.element type bigint",
            "alter table {t} alter column p type int",
            """insert into {t} values (10, 100000, 0.1, 12345.6789, timestamp_ntz'2020-01-03 01:02:03', 1e300,
            named_struct('x', 5000000000), array(5000000000), 70000)""",
        ],
        where=["i > 5", "f < 1", "de >= 1.1428", "day < timestamp_ntz'2020-01-04 00:00:00'", "di = 3", "p = 1"],
    ),
    "variants": Scenario(
        steps=[
            "create table {t} (id bigint, v variant, st struct<v: variant>, l array<variant>) using delta",
            """insert into {t} select id, v, named_struct('v', v), array(v, null) from (select id, parse_json(
            element_at(array('{{"a": 1, "b": [1, 2.5, "x", null]}}', '[]', 'null', '"text"', '12345678901234567890'),
            cast(id as int) + 1)) as v from range(0, 5, 1, 1))""",
            "insert into {t} values (5, to_variant_object(named_struct('d', date'2024-01-01', 'b', X'01')), null, null)",
            "insert into {t} values (6, null, named_struct('v', null), array())",
        ],
        where=["id > 3", "id > 5 and v is null"],
    ),
    "shredded variants": Scenario(
        steps=[
            "create table {t} (id bigint, v variant) using delta tblproperties ('delta.enableVariantShredding' = 'true')",
            """insert into {t} select id, parse_json(if(id % 4 = 3, '[1]', concat('{{"a": ', id, ', "b": {{"c": "x', id,
            '"}}, "rest', id, '": [', id, ']}}'))) from range(0, 12, 1, 1)""",
        ],
        where=["id < 4"],
        settings={
            "spark.sql.variant.writeShredding.enabled": "true",
            "spark.sql.variant.forceShreddingSchemaForTest": "a int, b struct<c: string>",
        },
    ),
    "V2 checkpoints in Parquet": Scenario(
        steps=[
            f"""create table {{t}} (id bigint, p int) using delta partitioned by (p)
            tblproperties ('delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '100', {VECTORS})""",
            ten("id, cast(id % 3 as int)"),
            "delete from {t} where id = 4",
            CHECKPOINT,
            ten("id, 5", 10, 1),
            "delete from {t} where p = 1",
            CHECKPOINT,
            "delete from {t} where id = 11",
        ],
        where=["p = 5", "id > 12"],
        settings={
            "spark.databricks.delta.checkpointV2.topLevelFileFormat": "parquet",
            "spark.databricks.delta.checkpoint.partSize": "2",
        },
    ),
    "V2 checkpoints in JSON": Scenario(
        steps=[
            """create table {t} (id bigint, p int) using delta partitioned by (p)
            tblproperties ('delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '2')""",
            *[ten("id, cast(id % 3 as int)", 10 * n, 1) for n in range(3)],
            "delete from {t} where id % 10 = 4",
        ],
        where=["p = 2 and id < 20"],
        settings={
            "spark.databricks.delta.checkpointV2.topLevelFileFormat": "json",
            "spark.databricks.delta.checkpoint.partSize": "3",
        },
    ),
    "classic checkpoints in parts": Scenario(
        steps=[
            """create table {t} (id bigint, s string, p date) using delta partitioned by (p)
            tblproperties ('delta.checkpointInterval' = '3', 'delta.checkpoint.writeStatsAsStruct' = 'true',
            'delta.checkpoint.writeStatsAsJson' = 'false')""",
            *[ten("id, concat('s', id), date_add(date'2024-01-01', cast(id % 4 as int))", 10 * n, 1) for n in range(3)],
            "delete from {t} where p = '2024-01-03'",
            "update {t} set s = 'updated' where id = 21",
            "optimize {t} where p >= '2024-01-02'",
        ],
        where=["p = '2024-01-02'", "s = 'updated'", "id between 8 and 12"],
        settings={"spark.databricks.delta.checkpoint.partSize": "3"},
    ),
    "row tracking": Scenario(
        steps=[
            f"create table {{t}} (id bigint, x int) using delta tblproperties ({VECTORS})",
            ten("id, 1"),
            "alter table {t} set tblproperties ('delta.enableRowTracking' = 'true')",
            ten("id, 2", 10),
            "update {t} set x = 3 where id in (4, 15)",
            "delete from {t} where id = 5",
            "optimize {t}",
            """merge into {t} using (select 7L as id union all select 99L) s on {t}.id = s.id
            when matched then update set x = 4 when not matched then insert (id, x) values (s.id, 5)""",
        ],
        where=["x = 3"],
        row_ids=True,
    ),
    "in-commit timestamps": Scenario(
        steps=[
            "create table {t} (id bigint) using delta",
            ten("id", 0, 1),
            "alter table {t} set tblproperties ('delta.enableInCommitTimestamps' = 'true')",
            ten("id", 10, 1),
            CHECKPOINT,
            ten("id", 20, 1),
        ],
        where=["id = 15"],
    ),
    "liquid clustering": Scenario(
        steps=[
            "create table {t} (id bigint, a int, b string) using delta cluster by (a)",
            ten("id, cast(id % 3 as int), 'x'"),
            ten("id, cast(id % 3 as int), 'y'", 10),
            "optimize {t} full",
            "alter table {t} cluster by (b, id)",
            ten("id, 9, 'z'", 20, 1),
            "alter table {t} cluster by none",
        ],
        where=["a = 9", "b > 'x' and id > 18"],
    ),
    "generated, identity, default and checked columns": Scenario(
        steps=[
            """create table {t} (id bigint generated always as identity (start with 10 increment by 5), ts timestamp,
            day date generated always as (cast(ts as date)), s string default 'none', c char(4), vc varchar(5) not null)
            using delta partitioned by (day) tblproperties ('delta.feature.allowColumnDefaults' = 'supported')""",
            "alter table {t} add constraint short check (length(s) < 10)",
            # A shorter CHAR is stored as it is; Spark's reader, and no other, fills it with spaces.
            "insert into {t} (ts, c, vc) values (timestamp'2024-01-01 10:00:00', 'abcd', 'x'), (timestamp'2024-01-02 00:00:00', 'efgh', 'y')",
            "insert into {t} (ts, s, c, vc) values (timestamp'2024-01-01 23:59:59.999999', default, null, 'z'), (null, 'null', 'wxyz', 'z')",
            "alter table {t} alter column s set default 'other'",
        ],
        where=["ts > timestamp'2024-01-01 12:00:00'", "day is null", "s = 'none'", "c = 'abcd'", "id > 15"],
    ),
    "a shallow clone": Scenario(
        steps=[
            f"create table {{src}} (id bigint, p string) using delta partitioned by (p) tblproperties ({VECTORS})",
            "insert into {src} select id, concat('a b', id % 2) from range(0, 10, 1, 1)",
            "delete from {src} where id = 2",
            "create table {t} shallow clone {src}",
            "delete from {t} where id in (3, 4)",
            ten("id, 'own'", 10, 1),
            "update {t} set p = 'moved' where id = 8",
        ],
        where=["p = 'a b0'", "id > 7"],
    ),
    "restored and emptied": Scenario(
        steps=[
            f"create table {{t}} (id bigint, x int) using delta tblproperties ({VECTORS}, {FEED})",
            ten("id, 1"),
            "delete from {t} where id < 3",
            "insert overwrite {t} select id, 2 from range(5)",
            "restore table {t} to version as of 2",
            "truncate table {t}",
            "vacuum {t} retain 100000 hours",
        ],
        where=["id < 5"],
        feed=0,
    ),
    "compacted log": Scenario(
        steps=[
            f"create table {{t}} (id bigint, p int) using delta partitioned by (p) tblproperties ({VECTORS})",
            *[ten("id, cast(id % 2 as int)", 10 * n, 1) for n in range(3)],
            "delete from {t} where id in (4, 25)",
            "delete from {t} where p = 0 and id < 10",
            COMPACT_LOG,
            ten("id, 1", 40, 1),
        ],
        where=["p = 1", "id >= 25"],
    ),
    "a dropped feature": Scenario(
        steps=[
            f"create table {{t}} (id bigint) using delta tblproperties ({VECTORS})",
            ten("id", 0, 1),
            "delete from {t} where id = 4",
            "alter table {t} drop feature deletionVectors",
        ],
        where=["id > 3"],
    ),
    "merges that change the schema": Scenario(
        steps=[
            f"create table {{t}} (id bigint, st struct<a: int>) using delta tblproperties ({FEED})",
            ten("id, struct(cast(id as int))"),
            """merge with schema evolution into {t} using (select 3L as id, named_struct('a', 30, 'b', 'new') as st, 'extra' as e
            union all select 50L, named_struct('a', 50, 'b', 'x'), null) s on {t}.id = s.id
            when matched then update set * when not matched then insert *""",
        ],
        where=["st.b = 'x'", "e = 'extra'", "st.a < 4"],
        feed=0,
    ),
}
