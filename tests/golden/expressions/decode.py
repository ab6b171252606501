"""The golden file as Python and Arrow: schema, edge rows, and every expression's outcomes.

The format is told in `dev/make_expression_golden.py`.
"""

import decimal
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

HERE = Path(__file__).parent
#: The modes of every expression, in the order of its `m`: ANSI, zone.
MODES = [(True, "UTC"), (True, "America/New_York"), (False, "UTC"), (False, "America/New_York")]

_SIMPLE = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}


@dataclass(frozen=True)
class Raised:
    """Spark raised an error of this class, for a row or for the whole expression."""

    condition: str


@dataclass(frozen=True)
class Outcome:
    """What Spark answered in one mode: one value or error a row, or an error for all."""

    type: str
    rows: tuple[Any, ...] | Raised


@dataclass(frozen=True)
class Golden:
    """One expression with its four outcomes."""

    text: str
    outcomes: tuple[Outcome, ...]


@cache
def goldens() -> tuple[Golden, ...]:
    """Every expression of the golden file."""
    out = []
    for line in (HERE / "golden.jsonl").read_text(encoding="utf-8").splitlines():
        raw = json.loads(line)
        outcomes = []
        for mode, index in enumerate(raw["m"]):
            answer = raw["r"][index]
            kind = raw["t"][-1 if not MODES[mode][0] else 0] if raw["t"] else ""
            rows = Raised(answer["!"]) if isinstance(answer, dict) else tuple(_cell(v) for v in answer)
            outcomes.append(Outcome(kind, rows))
        out.append(Golden(raw["e"], tuple(outcomes)))
    return tuple(out)


def _cell(value: Any) -> Any:
    return Raised(value["!"]) if isinstance(value, dict) else value


@cache
def schema() -> dict[str, Any]:
    """The schema of the edge rows, as in a Delta log."""
    return _raw_rows()["schema"]


@cache
def rows() -> pa.Table:
    """The edge rows."""
    columns = _raw_rows()["columns"]
    arrays = {f["name"]: array(columns[f["name"]], arrow_type(f["type"])) for f in schema()["fields"]}
    return pa.table(arrays)


@cache
def _raw_rows() -> dict[str, Any]:
    return json.loads((HERE / "rows.json").read_text(encoding="utf-8"))


def arrow_type(kind: Any) -> pa.DataType:  # noqa: PLR0911 - one line a type
    """The Arrow type of a Spark type, by its simple name or in a schema's JSON."""
    if isinstance(kind, dict):
        if kind["type"] == "array":
            return pa.list_(arrow_type(kind["elementType"]))
        if kind["type"] == "map":
            return pa.map_(arrow_type(kind["keyType"]), arrow_type(kind["valueType"]))
        return pa.struct([(f["name"], arrow_type(f["type"])) for f in kind["fields"]])
    kind = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}.get(kind, kind)
    if kind.startswith("decimal("):
        precision, scale = kind[8:-1].split(",")
        return pa.decimal128(int(precision), int(scale))
    if kind.startswith("array<"):
        return pa.list_(arrow_type(kind[6:-1]))
    if kind.startswith("map<"):
        key, value = _parts(kind[4:-1])
        return pa.map_(arrow_type(key), arrow_type(value))
    if kind.startswith("struct<"):
        fields = [part.partition(":") for part in _parts(kind[7:-1])]
        return pa.struct([(name, arrow_type(t)) for name, _, t in fields])
    return _SIMPLE[kind]


def _parts(text: str) -> list[str]:
    """Split at the commas that are outside brackets."""
    out, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            out.append(text[start:i])
            start = i + 1
    return [*out, text[start:]]


def array(values: Any, kind: pa.DataType) -> pa.Array:
    """Golden values as Arrow. Errors must have been taken out."""
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    if pa.types.is_date32(kind):
        return pa.array(values, pa.int32()).cast(kind)
    return pa.array([plain(v, kind) for v in values], kind)


def plain(value: Any, kind: pa.DataType) -> Any:  # noqa: PLR0911 - one line a type
    """One golden value as the Python object that pyarrow makes an array of."""
    if value is None:
        return None
    if pa.types.is_decimal(kind):
        return decimal.Decimal(value)
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_binary(kind):
        return bytes.fromhex(value)
    if pa.types.is_list(kind):
        return [plain(v, kind.value_type) for v in value]
    if pa.types.is_map(kind):
        return [(plain(k, kind.key_type), plain(v, kind.item_type)) for k, v in value]
    if pa.types.is_struct(kind):
        return {f.name: plain(v, f.type) for f, v in zip(kind, value, strict=True)}
    return value


def comparable(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Values in a form in which `==` is what a test wants: NaN equals NaN, 0.0 is not -0.0, instants are numbers."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        return values.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).to_pylist()
    if pa.types.is_date32(kind):
        return values.cast(pa.int32()).to_pylist()
    if pa.types.is_floating(kind):
        return [None if v is None else repr(v) for v in values.to_pylist()]
    if pa.types.is_nested(kind):
        return [nested(v, kind) for v in values.to_pylist()]
    return values.to_pylist()


def nested(value: Any, kind: pa.DataType) -> Any:
    """The same for what is inside a value. Maps have no order: the golden file lost Spark's."""
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [nested(v, kind.value_type) for v in value]
    if pa.types.is_map(kind):
        return sorted(([nested(k, kind.key_type), nested(v, kind.item_type)] for k, v in value), key=repr)
    if pa.types.is_struct(kind):
        return {field.name: nested(value[field.name], field.type) for field in kind}
    return repr(value) if pa.types.is_floating(kind) else value
