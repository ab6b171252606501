"""Rows -> a digest that does not depend on their order, and Delta types -> the Arrow types a reader may give.

The digest is the corpus' own (its README says how a value is written as text): every row becomes one line of text,
its SHA-256 is taken, the hashes are sorted and hashed again. The text is built column by column, because a table of
a million rows would otherwise take minutes.
"""

from __future__ import annotations

import collections
import hashlib
import json
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from . import variant

if TYPE_CHECKING:
    from collections.abc import Iterable

DeltaType: TypeAlias = str | dict[str, Any]

_INTEGERS = {"byte": pa.int8(), "short": pa.int16(), "integer": pa.int32(), "long": pa.int64()}
_FLOATS = {"float": pa.float32(), "double": pa.float64()}
_NAN = {"float": 0x7FC00000, "double": 0x7FF8000000000000}
_QUOTE = json.encoder.encode_basestring_ascii  # type: ignore[attr-defined]


def type_name(data_type: DeltaType) -> str:
    """Return the name of a Delta type without its parameters."""
    return data_type.split("(")[0] if isinstance(data_type, str) else data_type["type"]


def _is_variant(arrow: pa.DataType) -> bool:
    """Say whether an Arrow type is how variants are handed over: metadata and value, both binary."""
    if isinstance(arrow, pa.BaseExtensionType):
        arrow = arrow.storage_type
    if not pa.types.is_struct(arrow) or {f.name for f in arrow} != {"metadata", "value"}:
        return False
    return all(_is_binary(f.type) for f in arrow)


def _is_binary(arrow: pa.DataType) -> bool:
    return pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow) or pa.types.is_binary_view(arrow)


def _is_string(arrow: pa.DataType) -> bool:
    return pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow)


def _is_list(arrow: pa.DataType) -> bool:
    return pa.types.is_list(arrow) or pa.types.is_large_list(arrow)


def _scalar_fits(arrow: pa.DataType, name: str) -> bool:  # noqa: C901, PLR0911 - one line a type
    """Say whether an Arrow type is the right one for a Delta type without parts."""
    if name in _INTEGERS:
        return arrow == _INTEGERS[name]
    if name in _FLOATS:
        return arrow == _FLOATS[name]
    match name:
        case "string":
            return _is_string(arrow)
        case "binary":
            return _is_binary(arrow)
        case "boolean":
            return pa.types.is_boolean(arrow)
        case "date":
            return pa.types.is_date32(arrow)
        case "timestamp":
            return pa.types.is_timestamp(arrow) and arrow.unit == "us" and arrow.tz == "UTC"
        case "timestamp_ntz":
            return pa.types.is_timestamp(arrow) and arrow.unit == "us" and arrow.tz is None
        case "void":
            return pa.types.is_null(arrow)
        case "variant":
            return _is_variant(arrow)
        case _:
            message = f"the corpus has no type {name}"
            raise ValueError(message)


def type_problems(arrow: pa.DataType, data_type: DeltaType, place: str) -> Iterable[str]:
    """Yield what is wrong with an Arrow type that should hold the Delta type `data_type`."""
    name = type_name(data_type)
    if isinstance(data_type, str):
        if name == "decimal":
            precision, scale = (int(part) for part in data_type[8:-1].split(","))
            fits = arrow == pa.decimal128(precision, scale)
        else:
            fits = _scalar_fits(arrow, name)
        if not fits:
            yield f"{place}: {arrow} for {data_type}"
    elif name == "struct":
        if not pa.types.is_struct(arrow):
            yield f"{place}: {arrow} for a struct"
            return
        yield from fields_problems(list(arrow), data_type["fields"], place + ".")
    elif name == "array":
        if not _is_list(arrow):
            yield f"{place}: {arrow} for an array"
            return
        yield from type_problems(arrow.value_type, data_type["elementType"], place + ".element")
    else:
        if not pa.types.is_map(arrow):
            yield f"{place}: {arrow} for a map"
            return
        yield from type_problems(arrow.key_type, data_type["keyType"], place + ".key")
        yield from type_problems(arrow.item_type, data_type["valueType"], place + ".value")


def fields_problems(arrow: list[pa.Field], fields: list[dict[str, Any]], place: str = "") -> Iterable[str]:
    """Yield what is wrong with Arrow fields that should be the Delta fields: names, order, types."""
    got, want = [f.name for f in arrow], [f["name"] for f in fields]
    if got != want:
        yield f"{place or 'columns'}: {got} for {want}"
        return
    for field, delta in zip(arrow, fields, strict=True):
        yield from type_problems(field.type, delta["type"], place + field.name)


def _one_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    return column


def _plain(array: pa.Array) -> pa.Array:
    """Return the array without dictionary or extension type."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _unscaled(array: pa.Array) -> list[int]:
    """Return the unscaled integers of a decimal array; what stands at a null is any number."""
    buffer = array.buffers()[1]
    width = array.type.byte_width
    data = memoryview(buffer)[array.offset * width : (array.offset + len(array)) * width]
    return [int.from_bytes(data[i : i + width], "little", signed=True) for i in range(0, len(data), width)]


def _scalar_strings(array: pa.Array, data_type: str) -> list[str]:  # noqa: PLR0911 - one line a type
    """Return the text of each value of a flat array, without regard to nulls."""
    name = type_name(data_type)
    if name in _INTEGERS:
        return pc.cast(pc.fill_null(array, 0), pa.string()).to_pylist()
    if name in _FLOATS:
        mark, digits = ("f", 8) if name == "float" else ("d", 16)
        bits = pc.fill_null(array, 0.0).to_numpy(zero_copy_only=False).view("u4" if digits == 8 else "u8").tolist()
        nan = pc.fill_null(pc.is_nan(array), False).to_pylist()
        return [f"{mark}:{_NAN[name] if n else b:0{digits}x}" for b, n in zip(bits, nan, strict=True)]
    match name:
        case "boolean":
            return ["true" if v else "false" for v in array.to_pylist()]
        case "string":
            return [_QUOTE(v or "") for v in array.to_pylist()]
        case "binary":
            return [f"x:{(v or b'').hex()}" for v in array.to_pylist()]
        case "decimal":
            scale = array.type.scale
            return [f"n:{v}e-{scale}" for v in _unscaled(array)]
        case "date":
            return [f"day:{v}" for v in pc.fill_null(array.cast(pa.int32()), 0).to_pylist()]
        case "timestamp" | "timestamp_ntz":
            mark = "us" if name == "timestamp" else "ntz"
            micros = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
            return [f"{mark}:{v}" for v in pc.fill_null(micros, 0).to_pylist()]
        case "variant":
            values = array.to_pylist()
            return ["null" if v is None else canonical_json(variant.decode(v["metadata"], v["value"])) for v in values]
        case _:
            return ["null"] * len(array)


def strings(array: pa.Array, data_type: DeltaType) -> list[str]:
    """Return the digest text of each value of a column."""
    array = _plain(array)
    name = type_name(data_type)
    if isinstance(data_type, str):
        few = None
        if name in {"string", "decimal", "date", "timestamp"} and len(array) > 10_000:
            few = pc.dictionary_encode(array.cast(pa.large_string()) if name == "string" else array)
        if few is not None and len(few.dictionary) * 4 < len(array):
            words = [*_scalar_strings(few.dictionary, data_type), "null"]
            return [words[i] for i in pc.fill_null(few.indices, len(words) - 1).to_pylist()]
        out = _scalar_strings(array, data_type)
    elif name == "struct":
        fields = data_type["fields"]
        columns = [strings(_struct_field(array, f["name"]), f["type"]) for f in fields]
        out = _rows(columns, [f["name"] for f in fields], len(array))
    elif name == "array":
        values = strings(array.values, data_type["elementType"])
        starts = array.offsets.to_pylist()
        out = [f"[{','.join(values[starts[i] : starts[i + 1]])}]" for i in range(len(array))]
    else:
        keys, items = strings(array.keys, data_type["keyType"]), strings(array.items, data_type["valueType"])
        pairs = [f"{k}:{v}" for k, v in zip(keys, items, strict=True)]
        starts = array.offsets.to_pylist()
        out = [f"{{{','.join(sorted(pairs[starts[i] : starts[i + 1]]))}}}" for i in range(len(array))]
    if array.null_count:
        out = [t if ok else "null" for t, ok in zip(out, array.is_valid().to_pylist(), strict=True)]
    return out


def _struct_field(array: pa.StructArray, name: str) -> pa.Array:
    """Return a child of a struct, with the struct's own offset applied."""
    return array.field(array.type.get_field_index(name))


def _rows(columns: list[list[str]], names: list[str], count: int) -> list[str]:
    """Return the text of each row, given the texts of its columns."""
    if not columns:
        return ["()"] * count
    form = "(" + ",".join(_QUOTE(n).replace("%", "%%") + "=%s" for n in names) + ")"
    return [form % row for row in zip(*columns, strict=True)]


def row_strings(table: pa.Table, fields: list[dict[str, Any]]) -> list[str]:
    """Return each row's text; `fields` are the Delta fields, in the order of the digest."""
    columns = [strings(_one_chunk(table.column(f["name"])), f["type"]) for f in fields]
    return _rows(columns, [f["name"] for f in fields], table.num_rows)


def alike(one: pa.Table, other: pa.Table) -> bool:
    """Whether both surely hold the same rows, whatever their order; False says nothing.

    Much faster than texts. Nested columns and NaN are for those.
    """
    if one.schema != other.schema or one.num_rows != other.num_rows:
        return False
    if one.equals(other):
        return True
    if any(pa.types.is_nested(field.type) or pa.types.is_null(field.type) for field in one.schema):
        return False
    plain = pa.schema([(field.name, _sortable(field.type)) for field in one.schema])
    keys = [(name, "ascending") for name in one.column_names]
    left, right = (table.cast(plain).sort_by(keys) for table in (one, other))
    return left.equals(right)


def _sortable(data_type: pa.DataType) -> pa.DataType:
    """Return a type of the same values that pyarrow sorts."""
    if pa.types.is_dictionary(data_type):
        return _sortable(data_type.value_type)
    if pa.types.is_string_view(data_type):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary_view(data_type) else data_type


def digest(rows: list[str]) -> str:
    """Return the digest of rows, whatever their order."""
    # Sorted as bytes, which is the order of their hexadecimal digits.
    hashes = sorted([hashlib.sha256(row.encode()).digest() for row in rows])
    return "sha256:" + hashlib.sha256("\n".join(map(bytes.hex, hashes)).encode()).hexdigest()


def difference(got: list[str], want: list[str], limit: int = 6) -> str:
    """Return a few rows that one side has and the other lacks."""
    left, right = collections.Counter(got), collections.Counter(want)
    extra, missing = list((left - right).elements()), list((right - left).elements())
    lines = [f"{len(got)} rows for {len(want)}; {len(extra)} unexpected, {len(missing)} missing"]
    lines += [f"  unexpected {row[:400]}" for row in extra[:limit]]
    lines += [f"  missing    {row[:400]}" for row in missing[:limit]]
    return "\n".join(lines)


def json_strings(array: pa.Array, data_type: DeltaType) -> list[str]:
    """Return a column that holds variants as canonical JSON text, the way the corpus compares it."""
    values = _plain(array).to_pylist()
    return [canonical_json(None if v is None else _json_value(v, data_type)) for v in values]


def canonical_json(value: Any) -> str:
    """Return one text for equal JSON values."""
    return json.dumps(value, sort_keys=True, default=lambda d: int(d) if d == int(d) else float(d))


def _json_value(value: Any, data_type: DeltaType) -> Any:
    """Return a value as Spark's `to_json` shows it: a null field of a struct is left out."""
    if value is None:
        return None
    match type_name(data_type):
        case "variant":
            return variant.decode(value["metadata"], value["value"])
        case "struct":
            fields = data_type["fields"]  # type: ignore[index]
            return {f["name"]: _json_value(value[f["name"]], f["type"]) for f in fields if value[f["name"]] is not None}
        case "array":
            return [_json_value(v, data_type["elementType"]) for v in value]  # type: ignore[index]
        case "map":
            return {str(k): _json_value(v, data_type["valueType"]) for k, v in value}  # type: ignore[index]
        case _:
            return value
