"""Actions that parse as JSON and say something impossible."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tablekit import log

from .generate import MEBIBYTE, anything, case, either, error, rows

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

ALL = range(30)
TWO = range(20)
THIRD = "00000000000000000002.json"


def _edited(folder: pathlib.Path, edit: Callable[[dict[str, Any]], object]) -> log.Table:
    """Return the basic table with the third commit's add edited."""
    table = log.basic(folder)
    action = table.actions(2, 2)[0]
    edit(action["add"])
    table.commit(2, action)
    return table


def _raw(folder: pathlib.Path, old: str, new: str) -> log.Table:
    """Return the basic table with text of the third commit replaced; the text must be there."""
    table = log.basic(folder)
    text = table.commit_file(2).read_text("utf-8")
    assert old in text
    table.commit_file(2).write_text(text.replace(old, new, 1), "utf-8")
    return table


def _size(folder: pathlib.Path, value: str) -> None:
    """Replace the size by text that may be no number Python can write."""
    _edited(folder, lambda a: a.update(size=-4711))
    file = folder / "_delta_log" / THIRD
    file.write_text(file.read_text("utf-8").replace("-4711", value, 1), "utf-8")


for _name, _value, _expect in [
    ("size_negative", "-1", error("CorruptLogError", THIRD)),
    ("size_overflows", "9223372036854775808", error("CorruptLogError", THIRD)),
    ("size_of_a_thousand_digits", "1" + "0" * 1000, error("CorruptLogError", THIRD)),
    ("size_exponent", "1e400", error("CorruptLogError", THIRD)),
    ("size_of_two_zeros", "00", error("CorruptLogError", THIRD)),
    ("size_with_a_leading_zero", "0717", error("CorruptLogError", THIRD)),
    ("size_of_a_minus", "-", error("CorruptLogError", THIRD)),
    ("size_with_a_plus", "+717", error("CorruptLogError", THIRD)),
    ("size_text", '"12"', error("CorruptLogError", THIRD)),
    ("size_fraction", "1.5", error("CorruptLogError", THIRD)),
    ("size_object", '{"v":1}', error("CorruptLogError", THIRD)),
    ("size_not_a_number", "NaN", error("CorruptLogError", THIRD)),
    ("size_true", "true", error("CorruptLogError", THIRD)),
    ("size_too_large", "9000000000000000000", either(ALL, "CorruptDataError|CorruptLogError|DeltaError", "part-2")),
    ("size_too_small", "3", either(ALL, "CorruptDataError|CorruptLogError|DeltaError", "part-2")),
    ("size_off_by_one", "717", either(ALL, "CorruptDataError|CorruptLogError|DeltaError", "part-2")),
    ("size_zero", "0", either(ALL, "CorruptDataError|CorruptLogError|DeltaError", "part-2")),
]:

    @case(_name, _expect)
    def _(folder: pathlib.Path, value: str = _value) -> None:
        """A size that is wrong or no number."""
        _size(folder, value)


for _value in ["00", "-01", "1.", ".5", "1e", "1-2", "--1", "1.5.2", "0x1"]:

    @case(f"number_{_value}_in_an_unknown_field", error("CorruptLogError", THIRD))
    def _(folder: pathlib.Path, value: str = _value) -> None:
        """A number that JSON does not have, where nobody needs it."""
        _raw(folder, '"dataChange":true', f'"dataChange":true,"future":[{value}]')

    @case(f"number_{_value}_in_statistics", rows(ALL), do="filter", sql="id >= 0")
    def _(folder: pathlib.Path, value: str = _value) -> None:
        """Statistics that are no JSON are as if they were not there."""
        stats = f'{{"numRecords":10,"minValues":{{"id":{value}}},"maxValues":{{"id":{value}}},"nullCount":{{"id":0}}}}'
        _edited(folder, lambda a: a.update(stats=stats))


@case("size_missing", either(ALL, "CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """An add without size."""
    _edited(folder, lambda a: a.pop("size"))


for _name, _value in [("missing", None), ("null", "null"), ("number", "7"), ("list", '["a"]'), ("empty", '""')]:

    @case(f"path_{_name}", error("CorruptLogError|InvalidArgumentError", THIRD))
    def _(folder: pathlib.Path, value: str | None = _value) -> None:
        """An add whose path is not a string."""
        _raw(folder, '"path":"part-2.parquet",', "" if value is None else f'"path":{value},')


@case("remove_without_path", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """A remove that does not say of what."""
    log.basic(folder).commit(2, '{"remove":{"deletionTimestamp":1,"dataChange":true}}')


@case("add_is_a_string", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """Text where the add's fields should be."""
    log.basic(folder).commit(2, '{"add":"part-2.parquet"}')


@case("add_is_a_list", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """A list where the add's fields should be."""
    log.basic(folder).commit(2, '{"add":[{"path":"part-2.parquet"}]}')


@case("modification_time_missing", either(ALL, "CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """An add without modification time."""
    _edited(folder, lambda a: a.pop("modificationTime"))


@case("modification_time_far_away", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """A modification time at the end of 64 bits."""
    _edited(folder, lambda a: a.update(modificationTime=9223372036854775807))


@case("modification_time_text", either(ALL, "CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """A modification time as text."""
    _edited(folder, lambda a: a.update(modificationTime="yesterday"))


@case("data_change_missing", either(ALL, "CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """An add without dataChange."""
    _edited(folder, lambda a: a.pop("dataChange"))


@case("data_change_text", either(ALL, "CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """A dataChange as text."""
    _edited(folder, lambda a: a.update(dataChange="true"))


@case("tags_deep", either(ALL, "CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """Tags that are nested arrays."""
    _raw(folder, '"dataChange":true', '"dataChange":true,"tags":' + "[" * 50_000 + "]" * 50_000)


@case("tags_null_values", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """Tags without values."""
    _edited(folder, lambda a: a.update(tags={"a": None, "b": "c"}))


@case("add_without_partition_values", either(ALL, "CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """No partitionValues in a table without partitions."""
    _edited(folder, lambda a: a.pop("partitionValues"))


@case("partition_values_list", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """Partition values as a list."""
    _edited(folder, lambda a: a.update(partitionValues=["a"]))


# Statistics: never a reason to lose the table.

_STATS: list[tuple[str, Any]] = [
    ("not_json", "no statistics"),
    ("truncated", '{"numRecords":10,"minValues":{"id":20'),
    ("empty", ""),
    ("null_text", "null"),
    ("number", 7),
    ("object", {"numRecords": 10}),
    ("array", "[1,2,3]"),
    ("nan", '{"numRecords":10,"minValues":{"id":NaN},"maxValues":{"id":Infinity},"nullCount":{"id":0}}'),
    (
        "wrong_types",
        '{"numRecords":"ten","minValues":{"id":"a","name":5},"maxValues":{"id":[1]},"nullCount":{"id":"0"}}',
    ),
    ("wrong_shape", '{"numRecords":[10],"minValues":[1],"maxValues":"x","nullCount":7}'),
    ("null_values", '{"numRecords":null,"minValues":null,"maxValues":{"id":null},"nullCount":{"id":null}}'),
    ("negative", '{"numRecords":-5,"nullCount":{"id":-1}}'),
    ("overflow", '{"numRecords":99999999999999999999,"minValues":{"id":-1e999},"maxValues":{"id":1e999}}'),
    ("fraction", '{"numRecords":10.5,"minValues":{"id":20.7},"maxValues":{"id":29.2},"nullCount":{"id":0.5}}'),
    (
        "nested_for_flat",
        '{"numRecords":10,"minValues":{"id":{"x":1}},"maxValues":{"id":{"x":2}},"nullCount":{"id":{"x":0}}}',
    ),
    (
        "duplicate_keys",
        '{"numRecords":10,"minValues":{"id":25,"id":20},"maxValues":{"id":24,"id":29},"nullCount":{"id":0}}',
    ),
    ("unknown_columns", '{"numRecords":10,"minValues":{"no":1},"maxValues":{"no":1},"nullCount":{"no":1}}'),
    ("trailing_text", '{"numRecords":10} and more'),
    ("deep", '{"numRecords":10,"x":' + "[" * 100_000 + "]" * 100_000 + "}"),
    ("invalid_escape", '{"numRecords":10,"minValues":{"name":"\\q"}}'),
    ("lone_surrogate", '{"numRecords":10,"minValues":{"name":"\\ud800"},"maxValues":{"name":"\\udfff"}}'),
    (
        "min_above_max",
        '{"numRecords":10,"minValues":{"id":29,"name":"z"},"maxValues":{"id":20,"name":"a"},"nullCount":{"id":0}}',
    ),
]
for _name, _value in _STATS:

    @case(f"stats_{_name}", rows(ALL))
    def _(folder: pathlib.Path, value: object = _value) -> None:
        """Invalid statistics are ignored, never an error."""
        _edited(folder, lambda a: a.update(stats=value))


# Statistics that cannot be trusted must not prune; these hold no usable bounds for `id`.
for _name in ["not_json", "truncated", "wrong_types", "null_values", "nested_for_flat", "array"]:

    @case(f"stats_{_name}_filtered", rows(range(25, 30)), do="filter", sql="id >= 25")
    def _(folder: pathlib.Path, value: object = dict(_STATS)[_name]) -> None:
        """A filter keeps a file whose statistics are invalid."""
        _edited(folder, lambda a: a.update(stats=value))


@case("stats_null_count_without_num_records", rows(range(25, 30)), do="filter", sql="id >= 25 and id is not null")
def _(folder: pathlib.Path) -> None:
    """A null count alone proves nothing."""
    _edited(folder, lambda a: a.update(stats='{"nullCount":{"id":10}}'))


@case("stats_of_16_mebibytes", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """A maximum of 16 MiB."""
    stats = json.dumps({"numRecords": 10, "maxValues": {"name": "z" * (16 * MEBIBYTE)}})
    _edited(folder, lambda a: a.update(stats=stats))


@case("stats_lie_about_rows", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """Statistics that claim another number of rows do not change what is read."""
    _edited(folder, lambda a: a.update(stats='{"numRecords":1000000}'))


# Two actions that cannot stand in one commit.


@case("two_metadata_in_a_commit", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """Two metaData actions in one commit."""
    table = log.basic(folder)
    table.commit(2, log.metadata(), log.metadata(name="other"), *table.actions(2, 2))


@case("two_protocols_in_a_commit", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """Two protocol actions in one commit."""
    table = log.basic(folder)
    table.commit(2, log.protocol(1, 2), log.protocol(1, 1), *table.actions(2, 2))


@case("add_and_remove_in_a_commit", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """An add and a remove of the same path and deletion vector."""
    table = log.basic(folder)
    table.commit(2, *table.actions(2, 2), log.remove("part-2.parquet"))


@case("remove_and_add_in_a_commit", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """The same in the other order."""
    table = log.basic(folder)
    table.commit(2, log.remove("part-2.parquet"), *table.actions(2, 2))


@case("add_and_remove_of_equal_paths_in_a_commit", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """The same, one path percent-encoded: equal once decoded."""
    table = log.basic(folder)
    table.commit(2, *table.actions(2, 2), log.remove("part%2D2.parquet"))


@case("two_adds_in_a_commit", either(ALL, "CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """Two adds of one path: the rows must not be doubled."""
    table = log.basic(folder)
    table.commit(2, *table.actions(2, 2), *table.actions(2, 2))


@case("two_removes_in_a_commit", either(range(10, 30), "CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """Two removes of one path."""
    table = log.basic(folder)
    table.commit(2, *table.actions(2, 2), log.remove("part-0.parquet"), log.remove("part-0.parquet"))


@case("add_again_in_a_later_commit", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """An add of a file that is there already: the newer one counts, once."""
    table = log.basic(folder)
    table.commit(3, *table.actions(1, 1))


@case("two_transactions_in_a_commit", either(ALL, "CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """Two versions of one application in a commit."""
    table = log.basic(folder)
    txn = [{"txn": {"appId": "app", "version": v}} for v in (1, 2)]
    table.commit(2, *txn, *table.actions(2, 2))


@case("two_domains_in_a_commit", either(ALL, "CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """Two states of one domain in a commit."""
    table = log.basic(folder)
    domain = [{"domainMetadata": {"domain": "d", "configuration": str(v), "removed": False}} for v in (1, 2)]
    table.commit(2, *domain, *table.actions(2, 2))


@case("domain_without_removed", either(ALL, "CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """A domainMetadata without its flag."""
    table = log.basic(folder)
    table.commit(2, '{"domainMetadata":{"domain":"d","configuration":"{}"}}', *table.actions(2, 2))


@case("domain_without_name", either(ALL, "CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """A domainMetadata without its name."""
    table = log.basic(folder)
    table.commit(2, '{"domainMetadata":{"configuration":"{}","removed":false}}', *table.actions(2, 2))


@case("transaction_version_text", either(ALL, "CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """A transaction whose version is text."""
    table = log.basic(folder)
    table.commit(2, '{"txn":{"appId":"a","version":"1"}}', *table.actions(2, 2))


@case("remove_of_unknown_file", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """A remove of a file that was never added."""
    table = log.basic(folder)
    table.commit(3, log.remove("never.parquet"))


@case("remove_without_timestamp", rows(TWO))
def _(folder: pathlib.Path) -> None:
    """A remove without deletion time."""
    log.basic(folder).commit(3, log.remove("part-2.parquet", deletionTimestamp=None))


@case("remove_timestamp_far_away", rows(TWO))
def _(folder: pathlib.Path) -> None:
    """A remove at the end of time."""
    log.basic(folder).commit(3, log.remove("part-2.parquet", deletionTimestamp=9223372036854775807))


@case("commit_info_of_any_shape", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """Commit information is free text: a list, a number, null."""
    table = log.basic(folder)
    table.commit(3, '{"commitInfo":[1,{"timestamp":"x"}]}')
    table.commit(4, '{"commitInfo":7}')
    table.commit(5, '{"commitInfo":{"timestamp":"never","operation":5,"operationParameters":"text"}}')


@case("history_of_any_shape", anything(), do="history")
def _(folder: pathlib.Path) -> None:
    """The history of such commits."""
    table = log.basic(folder)
    table.commit(3, '{"commitInfo":[1,{"timestamp":"x"}]}')
    table.commit(4, '{"commitInfo":{"timestamp":1e300,"operation":null,"operationParameters":[[]]}}')


# Partition values.


def _partitioned(folder: pathlib.Path, kind: str, value: object) -> None:
    """Write a table partitioned by `p` of a type, with one odd value."""
    table = log.Table(folder)
    table.commit(
        0,
        log.protocol(),
        log.metadata([*log.ID_NAME, ("p", kind)], ["p"]),
        table.ids("a.parquet", 0, 10, add_partitionValues={"p": None}),
    )
    values = {} if value is _ABSENT else {"p": value}
    table.commit(1, table.ids("b.parquet", 10, 20, add_partitionValues=values))


_ABSENT = object()
for _name, _kind, _value, _expect in [
    ("text_for_integer", "integer", "abc", either(TWO)),
    ("overflow_for_integer", "integer", "99999999999", either(TWO)),
    ("fraction_for_integer", "integer", "1.5", either(TWO)),
    ("text_for_date", "date", "2021-02-30", either(TWO)),
    ("text_for_timestamp", "timestamp", "noon", either(TWO)),
    ("text_for_boolean", "boolean", "perhaps", either(TWO)),
    ("text_for_decimal", "decimal(5,2)", "12345678.999", either(TWO)),
    ("year_out_of_range", "date", "999999999-01-01", either(TWO)),
    ("nan_for_double", "double", "NaN", rows(TWO)),
    ("number_for_text", "string", 7, either(TWO, "CorruptLogError")),
    ("list_for_text", "string", ["a"], error("CorruptLogError", "00000000000000000001.json")),
    ("missing", "string", _ABSENT, either(TWO, "CorruptLogError")),
    ("empty", "integer", "", rows(TWO)),
    ("of_8_mebibytes", "string", "x" * (8 * MEBIBYTE), rows(TWO)),
    ("with_escape_codes", "integer", "\x1b[31mred\x1b[0m\n\r\x07", either(TWO)),
]:

    @case(f"partition_value_{_name}", _expect)
    def _(folder: pathlib.Path, kind: str = _kind, value: object = _value) -> None:
        """A partition value that does not fit its type: null, as the reference reads it, or a clear error."""
        _partitioned(folder, kind, value)


@case("partition_values_of_unknown_columns", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """Values for columns that are no partition columns."""
    _edited(folder, lambda a: a.update(partitionValues={f"x{i}": "1" for i in range(1000)}))


@case("partition_column_unknown", error("CorruptLogError|SchemaMismatchError", "nowhere"))
def _(folder: pathlib.Path) -> None:
    """A partition column that the schema lacks."""
    log.basic(folder, partition_by=["nowhere"])


@case("partition_column_twice", error("CorruptLogError|SchemaMismatchError"))
def _(folder: pathlib.Path) -> None:
    """A partition column named twice."""
    log.basic(folder, partition_by=["id", "id"])


@case("partition_column_is_a_struct", error("CorruptLogError|SchemaMismatchError|DeltaProtocolError"))
def _(folder: pathlib.Path) -> None:
    """A partition column that cannot be one."""
    kind = {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}]}
    log.basic(folder, columns=[*log.ID_NAME, ("p", kind)], partition_by=["p"])


@case("partition_columns_not_a_list", error("CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """Partition columns as text."""
    log.basic(folder, partitionColumns="id")
