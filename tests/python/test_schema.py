"""Schemas read, write and compare as deltalake's do."""

import json
import pickle

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import deltafast.schema as ours
from deltafast.exceptions import InvalidArgumentError
from deltafast.schema import ArrayType, Field, MapType, PrimitiveType, Schema, StructType, VariantType

PRIMITIVES = [
    "string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date", "timestamp",
    "timestamp_ntz", "decimal(10,2)", "decimal(38,38)", "void",
]  # fmt: skip

EVERYTHING = json.dumps(
    {
        "type": "struct",
        "fields": [
            *({"name": f"c{i}", "type": t, "nullable": True, "metadata": {}} for i, t in enumerate(PRIMITIVES)),
            {
                "name": "list",
                "type": {"type": "array", "elementType": "string", "containsNull": False},
                "nullable": False,
                "metadata": {"comment": "a list"},
            },
            {
                "name": "map",
                "type": {
                    "type": "map",
                    "keyType": "string",
                    "valueType": {
                        "type": "struct",
                        "fields": [{"name": "x", "type": "long", "nullable": False, "metadata": {}}],
                    },
                    "valueContainsNull": True,
                },
                "nullable": True,
                "metadata": {},
            },
            {"name": "v", "type": "variant", "nullable": True, "metadata": {}},
        ],
    },
    separators=(",", ":"),
)


@pytest.fixture
def theirs():
    return pytest.importorskip("deltalake.schema")


class TestAgainstDeltalake:
    def test_json_repr_and_arrow_agree(self, theirs):
        mine, other = Schema.from_json(EVERYTHING), theirs.Schema.from_json(EVERYTHING)
        assert mine.to_json() == other.to_json() == EVERYTHING
        assert repr(mine) == repr(other)
        assert pa.schema(mine).equals(pa.schema(other), check_metadata=True)
        assert mine.to_arrow().equals(pa.schema(other.to_arrow()), check_metadata=True)
        assert mine.to_arrow(as_large_types=True) == pa.schema(other.to_arrow(as_large_types=True))
        assert mine.type == other.type == "struct"
        assert mine.json() == json.loads(other.to_json())
        assert mine.invariants == other.invariants == []

    def test_fields_agree(self, theirs):
        fields = zip(Schema.from_json(EVERYTHING).fields, theirs.Schema.from_json(EVERYTHING).fields, strict=True)
        for mine, other in fields:
            assert (mine.name, mine.nullable, mine.metadata) == (other.name, other.nullable, other.metadata)
            assert mine.type.type == other.type.type
            assert repr(mine.type) == repr(other.type)
            assert mine.type.to_json() == other.type.to_json()

    @pytest.mark.parametrize(
        "arrow",
        [
            pa.int8(), pa.uint8(), pa.uint64(), pa.float32(), pa.large_string(), pa.string_view(), pa.binary(4),
            pa.dictionary(pa.int32(), pa.string()), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.date64(),
            pa.null(), pa.decimal128(5, 2), pa.list_(pa.field("element", pa.int64(), nullable=False)),
            pa.list_(pa.int32(), 3), pa.map_(pa.string(), pa.int32()),
            pa.struct([pa.field("q", pa.int32(), nullable=False)]),
        ],
        ids=str,
    )  # fmt: skip
    def test_arrow_types_become_the_same_types(self, theirs, arrow):
        schema = pa.schema([pa.field("a", arrow, nullable=arrow == pa.null())])
        assert repr(Schema.from_arrow(schema)) == repr(theirs.Schema.from_arrow(schema))

    def test_the_public_names_agree(self, theirs):
        assert set(theirs.__all__) <= set(ours.__all__)


@pytest.mark.parametrize("bad", ["foo", "decimal(50,1)", "decimal(3,5)", "decimal(a,b)", "variant", "", "INTEGER"])
def test_an_unknown_primitive_type_is_refused_by_name(bad):
    with pytest.raises(InvalidArgumentError, match="invalid type string"):
        PrimitiveType(bad)


def test_old_spellings_of_decimals_are_read():
    assert PrimitiveType.from_json('"decimal"').type == "decimal(10,0)"
    with pytest.raises(ValueError, match="invalid type string: decimal"):
        PrimitiveType("decimal")
    assert PrimitiveType("decimal(10, 2)").type == "decimal(10,2)"


@pytest.mark.parametrize(
    "text",
    [
        "{", "[]", "3", '{"type":"struct"}', '{"type":"struct","fields":[{"name":"x"}]}', '{"type":"blob"}',
        '{"type":"struct","fields":[{"name":3,"type":"long"}]}', '{"type":"array"}',
        "[" * 100_000,
        '{"type":"array","elementType":' * 5000 + '"long"' + "}" * 5000,
    ],
    ids=lambda text: text[:30],
)  # fmt: skip
def test_bad_schema_text_is_one_clear_error(text):
    with pytest.raises(InvalidArgumentError):
        Schema.from_json(text)


def test_a_type_that_is_no_struct_is_no_schema():
    with pytest.raises(TypeError, match="StructType"):
        Schema.from_json('"integer"')


@pytest.mark.parametrize("make", [lambda: Schema([1]), lambda: StructType(["a"])])
def test_fields_must_be_fields(make):
    with pytest.raises(TypeError, match="Field"):
        make()


@pytest.mark.parametrize("make", [lambda: Field("x", 1), lambda: ArrayType(3), lambda: MapType("long", None)])
def test_types_must_be_types(make):
    with pytest.raises(InvalidArgumentError, match="not a Delta type"):
        make()


@pytest.mark.parametrize("arrow", [pa.float16(), pa.time32("s"), pa.duration("s"), pa.decimal256(50, 2)], ids=str)
def test_an_arrow_type_without_an_equal_is_refused(arrow):
    with pytest.raises(InvalidArgumentError, match="no type for Arrow"):
        Schema.from_arrow(pa.schema([("a", arrow)]))


def test_fields_without_metadata_have_an_empty_one_in_arrow():
    assert Schema([Field("a", "long")]).to_arrow().field("a").metadata == {}


def test_equality_is_by_meaning():
    one, two = Schema.from_json(EVERYTHING), Schema.from_json(EVERYTHING)
    assert one == two == StructType(one.fields)
    assert hash(one) == hash(two)
    assert one != Schema(one.fields[1:])
    assert one != EVERYTHING
    assert Field("a", "long") != Field("a", "long", metadata={"x": 1})
    assert VariantType() == VariantType()


def test_invariants_are_found_at_any_depth():
    held = {"delta.invariants": '{"expression":{"expression":"x > 3"}}'}
    inner = StructType([Field("y", "long", metadata=held)])
    schema = Schema([Field("x", "long", metadata=held), Field("l", ArrayType(inner)), Field("s", inner)])
    assert schema.invariants == [("x", "x > 3"), ("l.element.y", "x > 3"), ("s.y", "x > 3")]


def test_an_unreadable_invariant_names_its_column():
    schema = Schema([Field("x", "long", metadata={"delta.invariants": "x > 3"})])
    with pytest.raises(InvalidArgumentError, match="invariant of x"):
        _ = schema.invariants


def test_void_is_nullable_in_arrow_even_where_the_schema_says_otherwise():
    schema = Schema([Field("v", "void", nullable=False), Field("l", ArrayType("void", contains_null=False))])
    assert schema.to_arrow().field("v").nullable


# Arrow's C interface ends names at a zero.
strings = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=6)


def types() -> st.SearchStrategy:
    return st.recursive(
        st.sampled_from([name for name in PRIMITIVES if name != "void"]).map(PrimitiveType),
        lambda inner: st.one_of(
            st.builds(ArrayType, inner, st.booleans()),
            st.builds(MapType, inner, inner, st.booleans()),
            st.lists(fields_of(inner), min_size=1, max_size=3, unique_by=lambda f: f.name).map(StructType),
        ),
        max_leaves=6,
    )


def fields_of(kinds: st.SearchStrategy) -> st.SearchStrategy:
    metadata = st.dictionaries(strings, strings, max_size=2)
    return st.builds(Field, strings, kinds, st.booleans(), metadata)


schemas = st.lists(fields_of(types()), max_size=5).map(Schema)


# The time that making a schema takes says nothing about it.
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(schemas)
def test_json_and_pickle_keep_a_schema(schema):
    assert Schema.from_json(schema.to_json()) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema
    for field in schema.fields:
        assert Field.from_json(field.to_json()) == field
        assert type(field.type).from_json(field.type.to_json()) == field.type


@given(schemas)
def test_arrow_keeps_a_schema(schema):
    assert Schema.from_arrow(schema.to_arrow()) == schema
    assert Schema.from_arrow(schema) == schema
    for field in schema.fields:
        assert Field.from_arrow(field.to_arrow()) == field
        assert type(field.type).from_arrow(field.type.to_arrow()) == field.type
