//! Table schemas: `schemaString` (JSON) -> [`StructType`] -> Arrow.
//!
//! The type tree is the protocol's own, not Arrow's: it keeps the field metadata (column mapping,
//! generated columns, type changes) and the exact type names that Arrow would lose. Arrow is
//! derived from it at the edges.
//!
//! Protocol: "Schema Serialization Format", "Column Mapping", "Delta Data Type to Parquet Type
//! Mappings". Cost: one pass over the text.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow_schema::{
    DataType as Arrow, Field as ArrowField, Fields, Schema as ArrowSchema, SchemaRef, TimeUnit,
};
use serde_json::{Map, Value};

use crate::error::{Error, ErrorCode, Result, shown};
pub use crate::protocol::field_list::FieldList;
use crate::protocol::nested_json;

/// Metadata of a field: a JSON object, kept unchanged from the log.
pub type FieldMetadata = Map<String, Value>;

/// The deepest nesting of structs, lists and maps in a column, for readers as for writers: types and
/// values are walked by recursion, and a schema may come from anywhere.
pub const MOST_NESTED_TYPES: usize = 100;

/// The deepest nesting of a column in Arrow, where a map has two levels, in new schemas: Arrow's C++
/// library imports 64 levels, so that deeper rows could not be read. The schema is one of them, and
/// the structs around columns, such as those of bounds in file lists, are others.
pub const MOST_ARROW_LEVELS: usize = 60;

/// Extension name that marks a variant struct in Arrow.
pub const VARIANT_EXTENSION: &str = "arrow.parquet.variant";

/// A Delta data type.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum DataType {
    /// 8 bit signed integer.
    Byte,
    /// 16 bit signed integer.
    Short,
    /// 32 bit signed integer.
    Integer,
    /// 64 bit signed integer.
    Long,
    /// IEEE single precision.
    Float,
    /// IEEE double precision.
    Double,
    /// Exact decimal, precision 1 to 38, scale 0 to precision.
    Decimal(u8, i8),
    /// Boolean.
    Boolean,
    /// UTF-8 string; `char(n)` and `varchar(n)` are strings too. The collation is empty for the
    /// binary default.
    String,
    /// Bytes.
    Binary,
    /// Days since the epoch.
    Date,
    /// Microseconds since the epoch, an instant.
    Timestamp,
    /// Microseconds since the epoch, a local time.
    TimestampNtz,
    /// A semi-structured value.
    Variant,
    /// Only null.
    Void,
    /// A Spark type that the protocol does not have; read as the integer in the files, never
    /// written.
    Spark(SparkType),
    /// Fields by name.
    Struct(Arc<StructType>),
    /// Elements in order.
    Array(Arc<ArrayType>),
    /// Keys and values.
    Map(Arc<MapType>),
}

/// A type that Spark allows in schemas although the protocol does not have it, with its name in
/// `schemaString`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SparkType {
    /// Year-month interval: an `int` of months in files.
    YearMonthInterval(&'static str),
    /// Day-time interval: a `long` of microseconds in files.
    DayTimeInterval(&'static str),
    /// A time of day with this number of fractional digits: a `long` in files.
    Time(&'static str),
    /// Calendar interval of months, days and microseconds, which files cannot hold.
    CalendarInterval,
}

/// Names of the year-month intervals.
const YEAR_MONTH_INTERVALS: &[&str] =
    &["interval year", "interval month", "interval year to month"];
/// Names of the day-time intervals.
const DAY_TIME_INTERVALS: &[&str] = &[
    "interval day",
    "interval hour",
    "interval minute",
    "interval second",
    "interval day to hour",
    "interval day to minute",
    "interval day to second",
    "interval hour to minute",
    "interval hour to second",
    "interval minute to second",
];
/// Names of the times of day.
const TIMES: &[&str] = &[
    "time(0)", "time(1)", "time(2)", "time(3)", "time(4)", "time(5)", "time(6)", "time(7)",
    "time(8)", "time(9)",
];

impl SparkType {
    /// The type of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let among = |names: &[&'static str]| names.iter().copied().find(|known| *known == name);
        if name == Self::CalendarInterval.name() {
            return Some(Self::CalendarInterval);
        }
        let year_month = || among(YEAR_MONTH_INTERVALS).map(Self::YearMonthInterval);
        let day_time = || among(DAY_TIME_INTERVALS).map(Self::DayTimeInterval);
        year_month()
            .or_else(day_time)
            .or_else(|| among(TIMES).map(Self::Time))
    }

    /// Its name in `schemaString`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::YearMonthInterval(name) | Self::DayTimeInterval(name) | Self::Time(name) => name,
            Self::CalendarInterval => "interval",
        }
    }
}

/// `array`: element type and whether elements may be null.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayType {
    /// Type of the elements.
    pub element: DataType,
    /// Whether an element may be null.
    pub contains_null: bool,
}

/// `map`: key and value type and whether values may be null.
#[derive(Debug, Clone, PartialEq)]
pub struct MapType {
    /// Type of the keys, which are never null.
    pub key: DataType,
    /// Type of the values.
    pub value: DataType,
    /// Whether a value may be null.
    pub value_contains_null: bool,
}

/// A column or a nested field.
#[derive(Debug, Clone, PartialEq)]
pub struct StructField {
    /// Logical (display) name.
    pub name: String,
    /// Type.
    pub data_type: DataType,
    /// Whether the field may be null.
    pub nullable: bool,
    /// Field metadata as in the log.
    pub metadata: FieldMetadata,
}

/// `struct`: fields in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StructType {
    /// The fields.
    pub fields: FieldList,
}

/// The Arrow layout of strings and binary values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StringLayout {
    /// `Utf8` and `Binary`, which every consumer supports.
    #[default]
    Plain,
    /// `Utf8View` and `BinaryView`, which cost no copy when decoded.
    View,
}

impl StructField {
    /// A field without metadata.
    pub fn new(name: impl Into<String>, data_type: DataType, nullable: bool) -> Self {
        Self {
            name: name.into(),
            data_type,
            nullable,
            metadata: FieldMetadata::new(),
        }
    }

    /// `delta.columnMapping.physicalName`, or the logical name if it is absent.
    #[must_use]
    pub fn physical_name(&self) -> &str {
        self.metadata
            .get("delta.columnMapping.physicalName")
            .and_then(Value::as_str)
            .unwrap_or(&self.name)
    }

    /// `delta.columnMapping.id`.
    #[must_use]
    pub fn field_id(&self) -> Option<i32> {
        self.metadata
            .get("delta.columnMapping.id")
            .and_then(Value::as_i64)
            .and_then(|id| i32::try_from(id).ok())
    }

    /// Whether values of this column compare by a collation, so that binary order does not apply.
    #[must_use]
    pub fn is_collated(&self) -> bool {
        self.metadata.contains_key("__COLLATIONS")
    }

    /// The collation by which values of this field, or of parts of it, compare; `None` for byte
    /// order.
    #[must_use]
    pub fn collation(&self) -> Option<&str> {
        let collations = self
            .metadata
            .get("__COLLATIONS")
            .and_then(Value::as_object)?;
        let is_binary = |name: &&str| {
            name.rsplit('.')
                .next()
                .is_some_and(|name| name.eq_ignore_ascii_case("UTF8_BINARY"))
        };
        collations
            .values()
            .filter_map(Value::as_str)
            .find(|name| !is_binary(name))
    }

    /// Refuses a field whose collation is not byte order.
    ///
    /// # Errors
    /// [`Error::Unsupported`] names the field and the collation; `what` names the operation.
    pub fn check_byte_order(&self, what: &str) -> Result<()> {
        match self.collation() {
            Some(collation) => Err(Error::unsupported_feature(
                "collations",
                format!("{what} `{}` is not supported: its strings compare by the collation {}, which deltafast does not have", self.name, shown(collation)),
            )
            .at_column(&self.name)),
            None => Ok(()),
        }
    }

    /// The Arrow field, without metadata except a variant's extension name.
    #[must_use]
    pub fn to_arrow(&self, layout: StringLayout) -> ArrowField {
        arrow_field(&self.name, &self.data_type, self.nullable, layout)
    }
}

fn arrow_field(
    name: &str,
    data_type: &DataType,
    nullable: bool,
    layout: StringLayout,
) -> ArrowField {
    let field = ArrowField::new(
        name,
        data_type.to_arrow(layout),
        nullable
            || matches!(
                data_type,
                DataType::Void | DataType::Spark(SparkType::CalendarInterval)
            ),
    );
    if matches!(data_type, DataType::Variant) {
        return field.with_metadata([
            (
                "ARROW:extension:name".to_owned(),
                VARIANT_EXTENSION.to_owned(),
            ),
            ("ARROW:extension:metadata".to_owned(), String::new()),
        ]);
    }
    field
}

impl DataType {
    /// The integers that stand for the values of a whole number, a date (days since the epoch) or a
    /// timestamp (microseconds since the epoch); `None` for any other type.
    #[must_use]
    pub fn integer_range(&self) -> Option<RangeInclusive<i64>> {
        Some(match self {
            Self::Byte => i64::from(i8::MIN)..=i64::from(i8::MAX),
            Self::Short => i64::from(i16::MIN)..=i64::from(i16::MAX),
            Self::Integer | Self::Date => i64::from(i32::MIN)..=i64::from(i32::MAX),
            Self::Long | Self::Timestamp | Self::TimestampNtz => i64::MIN..=i64::MAX,
            _ => return None,
        })
    }

    /// The Arrow type: structs keep field order; timestamps are microseconds, `timestamp` in UTC; a
    /// variant is `struct<metadata: binary, value: binary>`; `void` is `Null`.
    #[must_use]
    pub fn to_arrow(&self, layout: StringLayout) -> Arrow {
        match self {
            Self::Byte => Arrow::Int8,
            Self::Short => Arrow::Int16,
            Self::Integer => Arrow::Int32,
            Self::Long => Arrow::Int64,
            Self::Float => Arrow::Float32,
            Self::Double => Arrow::Float64,
            Self::Decimal(precision, scale) => Arrow::Decimal128(*precision, *scale),
            Self::Boolean => Arrow::Boolean,
            Self::String => match layout {
                StringLayout::Plain => Arrow::Utf8,
                StringLayout::View => Arrow::Utf8View,
            },
            Self::Binary => match layout {
                StringLayout::Plain => Arrow::Binary,
                StringLayout::View => Arrow::BinaryView,
            },
            Self::Date => Arrow::Date32,
            Self::Timestamp => Arrow::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::TimestampNtz => Arrow::Timestamp(TimeUnit::Microsecond, None),
            Self::Variant => {
                let bytes = match layout {
                    StringLayout::Plain => Arrow::Binary,
                    StringLayout::View => Arrow::BinaryView,
                };
                Arrow::Struct(Fields::from(vec![
                    ArrowField::new("metadata", bytes.clone(), false),
                    ArrowField::new("value", bytes, true),
                ]))
            }
            Self::Void | Self::Spark(SparkType::CalendarInterval) => Arrow::Null,
            Self::Spark(SparkType::YearMonthInterval(_)) => Arrow::Int32,
            Self::Spark(SparkType::DayTimeInterval(_) | SparkType::Time(_)) => Arrow::Int64,
            Self::Struct(s) => Arrow::Struct(s.arrow_fields(layout)),
            Self::Array(a) => Arrow::List(Arc::new(arrow_field(
                "element",
                &a.element,
                a.contains_null,
                layout,
            ))),
            Self::Map(m) => {
                let entries = Fields::from(vec![
                    arrow_field("key", &m.key, false, layout),
                    arrow_field("value", &m.value, m.value_contains_null, layout),
                ]);
                Arrow::Map(
                    Arc::new(ArrowField::new("key_value", Arrow::Struct(entries), false)),
                    false,
                )
            }
        }
    }

    /// The Delta type of an Arrow type, if one has exactly the same meaning (any string layout or
    /// time unit is accepted).
    #[must_use]
    pub fn from_arrow(arrow: &Arrow) -> Option<Self> {
        Some(match arrow {
            Arrow::Int8 => Self::Byte,
            Arrow::Int16 => Self::Short,
            Arrow::Int32 => Self::Integer,
            Arrow::Int64 => Self::Long,
            Arrow::Float32 => Self::Float,
            Arrow::Float64 => Self::Double,
            Arrow::Decimal32(p, s) | Arrow::Decimal64(p, s) | Arrow::Decimal128(p, s)
                if u8::try_from(*s).is_ok_and(|scale| scale <= *p) =>
            {
                Self::Decimal(*p, *s)
            }
            Arrow::Boolean => Self::Boolean,
            Arrow::Utf8 | Arrow::LargeUtf8 | Arrow::Utf8View => Self::String,
            Arrow::Binary | Arrow::LargeBinary | Arrow::BinaryView | Arrow::FixedSizeBinary(_) => {
                Self::Binary
            }
            Arrow::Date32 => Self::Date,
            Arrow::Timestamp(_, Some(_)) => Self::Timestamp,
            Arrow::Timestamp(_, None) => Self::TimestampNtz,
            Arrow::Null => Self::Void,
            Arrow::Dictionary(_, value) => Self::from_arrow(value)?,
            Arrow::Struct(fields) => Self::Struct(Arc::new(StructType {
                fields: fields
                    .iter()
                    .map(|f| from_arrow_field(f))
                    .collect::<Option<_>>()?,
            })),
            Arrow::List(f)
            | Arrow::LargeList(f)
            | Arrow::ListView(f)
            | Arrow::FixedSizeList(f, _) => {
                let element = from_arrow_field(f)?;
                Self::Array(Arc::new(ArrayType {
                    element: element.data_type,
                    contains_null: element.nullable,
                }))
            }
            Arrow::Map(entries, _) => match entries.data_type() {
                Arrow::Struct(kv) => {
                    let [key, value] = kv.as_ref() else {
                        return None;
                    };
                    let (key, value) = (from_arrow_field(key)?, from_arrow_field(value)?);
                    Self::Map(Arc::new(MapType {
                        key: key.data_type,
                        value: value.data_type,
                        value_contains_null: value.nullable,
                    }))
                }
                _ => return None,
            },
            _ => return None,
        })
    }

    /// True for types that are not nested.
    #[must_use]
    pub fn is_primitive(&self) -> bool {
        !matches!(
            self,
            Self::Struct(_) | Self::Array(_) | Self::Map(_) | Self::Variant
        )
    }

    /// Parses a type of `schemaString`: a name, or an object for structs, arrays and maps.
    ///
    /// # Errors
    /// [`Error::Corrupt`] names the invalid text; [`Error::Unsupported`] names a type that
    /// deltafast does not support.
    pub fn from_json(value: &Value) -> Result<Self> {
        match value {
            Value::String(name) => Self::from_name(name),
            Value::Object(object) => match object.get("type").and_then(Value::as_str) {
                Some("struct") => Ok(Self::Struct(Arc::new(StructType::from_object(object)?))),
                Some("array") => {
                    let element = object
                        .get("elementType")
                        .ok_or_else(|| Error::corrupt("schema: an array has no `elementType`"))?;
                    Ok(Self::Array(Arc::new(ArrayType {
                        element: Self::from_json(element)?,
                        contains_null: flag(object, "containsNull"),
                    })))
                }
                Some("map") => {
                    let part = |name: &str| {
                        object
                            .get(name)
                            .ok_or_else(|| Error::corrupt(format!("schema: a map has no `{name}`")))
                    };
                    Ok(Self::Map(Arc::new(MapType {
                        key: Self::from_json(part("keyType")?)?,
                        value: Self::from_json(part("valueType")?)?,
                        value_contains_null: flag(object, "valueContainsNull"),
                    })))
                }
                // A user-defined type is stored as its `sqlType`.
                Some("udt") => match object.get("sqlType") {
                    Some(inner) => Self::from_json(inner),
                    None => Err(Error::corrupt(
                        "schema: a user-defined type has no `sqlType`",
                    )),
                },
                Some(other) => Self::from_name(other),
                None => Err(Error::corrupt("schema: a type object has no `type`")),
            },
            other => Err(Error::corrupt(format!(
                "schema: a type must be a name or an object, found {}",
                shown(&other.to_string())
            ))),
        }
    }

    /// How many structs, lists and maps are nested in the type, itself included.
    fn nesting(&self) -> usize {
        match self {
            Self::Struct(inner) => 1 + inner.nesting(),
            Self::Array(array) => 1 + array.element.nesting(),
            Self::Map(map) => 1 + map.key.nesting().max(map.value.nesting()),
            _ => 0,
        }
    }

    /// The levels of the type in Arrow, see [`MOST_ARROW_LEVELS`].
    fn arrow_levels(&self) -> usize {
        match self {
            Self::Struct(inner) => {
                let of_fields = inner
                    .fields
                    .iter()
                    .map(|field| field.data_type.arrow_levels());
                1 + of_fields.max().unwrap_or(0)
            }
            Self::Array(array) => 1 + array.element.arrow_levels(),
            Self::Map(map) => 2 + map.key.arrow_levels().max(map.value.arrow_levels()),
            Self::Variant => 1,
            _ => 0,
        }
    }

    /// Parses the name of a primitive type.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for an unknown name, [`Error::Corrupt`] for impossible decimal
    /// parameters.
    pub fn from_name(name: &str) -> Result<Self> {
        Ok(match name {
            "byte" | "tinyint" => Self::Byte,
            "short" | "smallint" => Self::Short,
            "integer" | "int" => Self::Integer,
            "long" | "bigint" => Self::Long,
            "float" | "real" => Self::Float,
            "double" => Self::Double,
            "boolean" => Self::Boolean,
            "string" => Self::String,
            "binary" => Self::Binary,
            "date" => Self::Date,
            "timestamp" => Self::Timestamp,
            "timestamp_ntz" => Self::TimestampNtz,
            "variant" => Self::Variant,
            "void" | "null" => Self::Void,
            "decimal" => Self::Decimal(10, 0),
            _ => {
                if let Some(inner) = name
                    .strip_prefix("decimal(")
                    .and_then(|r| r.strip_suffix(')'))
                {
                    return decimal(inner)
                        .ok_or_else(|| Error::corrupt(format!("schema: `{}` is not a decimal type (precision 1 to 38, scale 0 to precision)", shown(name))));
                }
                if let Some(inner) = name
                    .strip_prefix("char(")
                    .or_else(|| name.strip_prefix("varchar("))
                    .and_then(|r| r.strip_suffix(')'))
                    && inner.trim().parse::<u32>().is_ok()
                {
                    return Ok(Self::String);
                }
                if name.starts_with("string collate ") {
                    return Ok(Self::String);
                }
                if let Some(spark) = SparkType::from_name(name) {
                    return Ok(Self::Spark(spark));
                }
                return Err(Error::unsupported(format!(
                    "the type `{}` in the table's schema is not supported; a newer deltafast may know it",
                    shown(name)
                )));
            }
        })
    }

    /// The type as JSON, as in `schemaString`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Struct(s) => s.to_json(),
            Self::Array(a) => {
                serde_json::json!({"type": "array", "elementType": a.element.to_json(), "containsNull": a.contains_null})
            }
            Self::Map(m) => {
                serde_json::json!({"type": "map", "keyType": m.key.to_json(), "valueType": m.value.to_json(), "valueContainsNull": m.value_contains_null})
            }
            primitive => Value::String(primitive.to_string()),
        }
    }

    fn push_json(&self, out: &mut String) {
        let flag = |out: &mut String, name: &str, value: bool| {
            let _ = std::fmt::Write::write_fmt(out, format_args!(",\"{name}\":{value}}}"));
        };
        match self {
            Self::Struct(inner) => inner.push_json(out),
            Self::Array(array) => {
                out.push_str("{\"type\":\"array\",\"elementType\":");
                array.element.push_json(out);
                flag(out, "containsNull", array.contains_null);
            }
            Self::Map(map) => {
                out.push_str("{\"type\":\"map\",\"keyType\":");
                map.key.push_json(out);
                out.push_str(",\"valueType\":");
                map.value.push_json(out);
                flag(out, "valueContainsNull", map.value_contains_null);
            }
            primitive => out.push_str(&Value::String(primitive.to_string()).to_string()),
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Byte => "byte",
            Self::Short => "short",
            Self::Integer => "integer",
            Self::Long => "long",
            Self::Float => "float",
            Self::Double => "double",
            Self::Decimal(precision, scale) => return write!(f, "decimal({precision},{scale})"),
            Self::Boolean => "boolean",
            Self::String => "string",
            Self::Binary => "binary",
            Self::Date => "date",
            Self::Timestamp => "timestamp",
            Self::TimestampNtz => "timestamp_ntz",
            Self::Variant => "variant",
            Self::Void => "void",
            Self::Spark(spark) => spark.name(),
            Self::Struct(s) => {
                f.write_str("struct<")?;
                for (n, field) in s.fields.iter().enumerate() {
                    write!(
                        f,
                        "{}{}:{}",
                        if n == 0 { "" } else { "," },
                        field.name,
                        field.data_type
                    )?;
                }
                return f.write_str(">");
            }
            Self::Array(a) => return write!(f, "array<{}>", a.element),
            Self::Map(m) => return write!(f, "map<{},{}>", m.key, m.value),
        };
        f.write_str(name)
    }
}

fn decimal(inner: &str) -> Option<DataType> {
    let (precision, scale) = inner.split_once(',').unwrap_or((inner, "0"));
    let (precision, scale) = (
        precision.trim().parse::<u8>().ok()?,
        scale.trim().parse::<i8>().ok()?,
    );
    ((1..=38).contains(&precision) && scale >= 0 && scale.unsigned_abs() <= precision)
        .then_some(DataType::Decimal(precision, scale))
}

/// Flags default to true: a reader that unnecessarily expects nulls is correct, one that wrongly
/// excludes them is not.
fn flag(object: &Map<String, Value>, name: &str) -> bool {
    object.get(name).and_then(Value::as_bool).unwrap_or(true)
}

fn from_arrow_field(field: &ArrowField) -> Option<StructField> {
    let data_type = if field
        .metadata()
        .get("ARROW:extension:name")
        .map(String::as_str)
        == Some(VARIANT_EXTENSION)
    {
        DataType::Variant
    } else {
        DataType::from_arrow(field.data_type())?
    };
    Some(StructField {
        metadata: from_arrow_metadata(field),
        ..StructField::new(field.name(), data_type, field.is_nullable())
    })
}

/// The key of a field's metadata for its declared type, such as `varchar(10)`.
pub(crate) const DECLARED_TYPE: &str = "__CHAR_VARCHAR_TYPE_STRING";

/// The parts of an Arrow field's metadata that are Delta's and valid for any table. Ids and
/// physical names belong to one table, and other libraries store their own keys there.
fn from_arrow_metadata(field: &ArrowField) -> FieldMetadata {
    const TEXTS: [&str; 5] = [
        "comment",
        "CURRENT_DEFAULT",
        "delta.generationExpression",
        "delta.invariants",
        DECLARED_TYPE,
    ];
    const VALUES: [&str; 3] = [
        "delta.identity.start",
        "delta.identity.step",
        "delta.identity.allowExplicitInsert",
    ];
    let entry = |key: &str, value: Value| (key.to_owned(), value);
    let texts = TEXTS.iter().filter_map(|key| {
        Some(entry(
            key,
            Value::String(field.metadata().get(key)?.clone()),
        ))
    });
    let values = VALUES.iter().filter_map(|key| {
        Some(entry(
            key,
            serde_json::from_str(field.metadata().get(key)?).ok()?,
        ))
    });
    texts.chain(values).collect()
}

/// Checks the levels of a column in Arrow.
///
/// # Errors
/// [`Error::Unsupported`] names the column.
fn check_arrow_levels(column: &str, levels: usize) -> Result<()> {
    if levels <= MOST_ARROW_LEVELS {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "types are nested {levels} deep (a map counts twice), more than the {MOST_ARROW_LEVELS} levels that Arrow's libraries exchange; flatten the structs, lists or maps"
    ))
    .at_column(column))
}

fn nested_too_deep() -> Error {
    Error::unsupported(format!(
        "types are nested more than {MOST_NESTED_TYPES} deep; flatten the structs, lists or maps"
    ))
}

impl StructType {
    /// Parses `schemaString`.
    ///
    /// ```
    /// use deltafast::protocol::schema::{DataType, StructType};
    ///
    /// let schema = StructType::parse(
    ///     r#"{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}"#,
    /// )?;
    /// assert_eq!(schema.field("id").map(|field| &field.data_type), Some(&DataType::Long));
    /// # Ok::<(), deltafast::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Corrupt`] for text that is not a schema, [`Error::Unsupported`] for unknown types.
    pub fn parse(schema_string: &str) -> Result<Self> {
        // A struct has three levels in JSON. Metadata of fields has few.
        const MOST_LEVELS: usize = 3 * MOST_NESTED_TYPES + 64;
        if nested_json::levels(schema_string) > MOST_LEVELS {
            return Err(nested_too_deep());
        }
        let value = nested_json::parse(schema_string)
            .map_err(|e| Error::corrupt(format!("`schemaString` is not JSON: {e}")))?;
        let schema = match value.as_object() {
            Some(object) if object.get("type").and_then(Value::as_str) == Some("struct") => {
                Self::from_object(object)?
            }
            _ => return Err(Error::corrupt("`schemaString` is not a struct type")),
        };
        schema.check_nesting()?;
        Ok(schema)
    }

    /// Checks that types are not nested too deep, see [`MOST_NESTED_TYPES`].
    ///
    /// # Errors
    /// [`Error::Unsupported`] names the column.
    pub fn check_nesting(&self) -> Result<()> {
        let too_deep = |field: &&StructField| field.data_type.nesting() > MOST_NESTED_TYPES;
        match self.fields.iter().find(too_deep) {
            Some(field) => Err(nested_too_deep().at_column(&field.name)),
            None => Ok(()),
        }
    }

    /// Checks that rows of a new schema can be read, see [`MOST_ARROW_LEVELS`].
    ///
    /// # Errors
    /// [`Error::Unsupported`] names the column.
    pub fn check_arrow_levels(&self) -> Result<()> {
        for field in &self.fields {
            check_arrow_levels(&field.name, field.data_type.arrow_levels())?;
        }
        Ok(())
    }

    /// How many structs, lists and maps are nested in one column at most.
    #[must_use]
    pub fn nesting(&self) -> usize {
        let of_fields = self.fields.iter().map(|field| field.data_type.nesting());
        of_fields.max().unwrap_or(0)
    }

    fn from_object(object: &Map<String, Value>) -> Result<Self> {
        let fields = object
            .get("fields")
            .and_then(Value::as_array)
            .ok_or_else(|| Error::corrupt("schema: a struct has no `fields` array"))?;
        let fields = fields
            .iter()
            .map(Self::field_from_json)
            .collect::<Result<Vec<_>>>()?;
        let mut seen = rustc_hash::FxHashSet::default();
        for field in &fields {
            if !seen.insert(field.name.to_lowercase()) {
                return Err(Error::corrupt(format!(
                    "schema: the field name `{}` occurs twice (names are compared without case)",
                    shown(&field.name)
                ))
                .with_code(
                    ErrorCode::DuplicateFieldInSchema,
                    &[("column", &field.name)],
                ));
            }
        }
        Ok(Self {
            fields: fields.into(),
        })
    }

    fn field_from_json(value: &Value) -> Result<StructField> {
        let object = value
            .as_object()
            .ok_or_else(|| Error::corrupt("schema: a field is not an object"))?;
        let name = object
            .get("name")
            .and_then(Value::as_str)
            .ok_or_else(|| Error::corrupt("schema: a field has no `name`"))?;
        let data_type = object.get("type").ok_or_else(|| {
            Error::corrupt(format!("schema: field `{}` has no `type`", shown(name)))
        })?;
        Ok(StructField {
            name: name.to_owned(),
            data_type: DataType::from_json(data_type).map_err(|e| e.at_column(name))?,
            nullable: flag(object, "nullable"),
            metadata: object
                .get("metadata")
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default(),
        })
    }

    /// The schema as JSON, as in `schemaString`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let fields: Vec<Value> = self
            .fields
            .iter()
            .map(|f| serde_json::json!({"name": f.name, "type": f.data_type.to_json(), "nullable": f.nullable, "metadata": Value::Object(f.metadata.clone())}))
            .collect();
        serde_json::json!({"type": "struct", "fields": fields})
    }

    /// The schema as `schemaString`, with keys in the same order as other writers.
    #[must_use]
    pub fn to_json_string(&self) -> String {
        let mut out = String::new();
        self.push_json(&mut out);
        out
    }

    fn push_json(&self, out: &mut String) {
        out.push_str("{\"type\":\"struct\",\"fields\":[");
        for (n, field) in self.fields.iter().enumerate() {
            if n > 0 {
                out.push(',');
            }
            out.push_str("{\"name\":");
            out.push_str(&Value::from(field.name.as_str()).to_string());
            out.push_str(",\"type\":");
            field.data_type.push_json(out);
            out.push_str(if field.nullable {
                ",\"nullable\":true,\"metadata\":"
            } else {
                ",\"nullable\":false,\"metadata\":"
            });
            out.push_str(&Value::Object(field.metadata.clone()).to_string());
            out.push('}');
        }
        out.push_str("]}");
    }

    /// The field of this logical name; exact case first, then without case.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&StructField> {
        self.fields.get(self.fields.position_ignoring_case(name)?)
    }

    /// The fields in Arrow.
    #[must_use]
    pub fn arrow_fields(&self, layout: StringLayout) -> Fields {
        self.fields.iter().map(|f| f.to_arrow(layout)).collect()
    }

    /// The schema in Arrow.
    #[must_use]
    pub fn to_arrow(&self, layout: StringLayout) -> SchemaRef {
        Arc::new(ArrowSchema::new(self.arrow_fields(layout)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NESTED: &str = r#"{"type":"struct","fields":[
        {"name":"a","type":"integer","nullable":false,"metadata":{"delta.columnMapping.id":4,"delta.columnMapping.physicalName":"col-1"}},
        {"name":"b","type":{"type":"array","elementType":{"type":"struct","fields":[{"name":"d","type":"decimal(12,3)","nullable":false,"metadata":{}}]},"containsNull":true},"nullable":true,"metadata":{}},
        {"name":"f","type":{"type":"map","keyType":"string","valueType":"timestamp_ntz","valueContainsNull":false},"nullable":true,"metadata":{}}]}"#;

    #[test]
    fn a_schema_survives_the_round_trip() {
        let schema = StructType::parse(NESTED).unwrap();
        assert_eq!(
            StructType::parse(&schema.to_json().to_string()).unwrap(),
            schema
        );
        assert_eq!(StructType::parse(&schema.to_json_string()).unwrap(), schema);
        assert_eq!(schema.fields[0].physical_name(), "col-1");
        assert_eq!(schema.fields[0].field_id(), Some(4));
        assert_eq!(
            schema.field("B").unwrap().data_type.to_string(),
            "array<struct<d:decimal(12,3)>>"
        );
    }

    #[test]
    fn unknown_types_are_refused_by_name() {
        let error = DataType::from_name("geometry(0)").unwrap_err();
        assert!(
            matches!(error, Error::Unsupported { .. }) && error.to_string().contains("geometry(0)"),
            "{error}"
        );
        assert!(matches!(
            DataType::from_name("decimal(39,1)"),
            Err(Error::Corrupt { .. })
        ));
    }

    #[test]
    fn types_of_spark_keep_their_names() {
        let layout = StringLayout::Plain;
        for name in YEAR_MONTH_INTERVALS
            .iter()
            .chain(DAY_TIME_INTERVALS)
            .chain(TIMES)
            .chain(&["interval"])
        {
            let spark = DataType::from_name(name).unwrap();
            assert!(
                matches!(spark, DataType::Spark(_)) && spark.to_string() == *name,
                "{spark:?}"
            );
        }
        assert_eq!(
            DataType::from_name("interval year to month")
                .unwrap()
                .to_arrow(layout),
            Arrow::Int32
        );
        assert_eq!(
            DataType::from_name("interval day to second")
                .unwrap()
                .to_arrow(layout),
            Arrow::Int64
        );
        assert_eq!(
            DataType::from_name("time(6)").unwrap().to_arrow(layout),
            Arrow::Int64
        );
        for name in ["time", "time(10)", "interval second to day", "Interval"] {
            assert!(
                matches!(DataType::from_name(name), Err(Error::Unsupported { .. })),
                "{name}"
            );
        }
    }

    #[test]
    fn names_that_differ_only_in_case_are_corrupt() {
        let text =
            r#"{"type":"struct","fields":[{"name":"a","type":"long"},{"name":"A","type":"long"}]}"#;
        assert!(
            StructType::parse(text)
                .unwrap_err()
                .to_string()
                .contains("`A` occurs twice")
        );
    }

    #[test]
    fn arrow_types_come_back() {
        let schema = StructType::parse(NESTED).unwrap();
        for field in &schema.fields {
            for layout in [StringLayout::Plain, StringLayout::View] {
                assert_eq!(
                    DataType::from_arrow(&field.data_type.to_arrow(layout))
                        .unwrap()
                        .to_string(),
                    field.data_type.to_string()
                );
            }
        }
    }
}
