//! The kinds of columns, each with its own conversion to JSON. The physical and the logical type
//! of a column determine its kind. A type whose values JSON cannot represent exactly is refused
//! with an error that names it.

use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::schema::types::Type;
use proto::{Error, ErrorCode, Result};

use super::moment::Unit;

/// The kinds of columns: how the values of a column are converted to JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All values are null.
    Nothing,
    Bool,
    /// An integer with this number of bits.
    Signed(u8),
    Unsigned(u8),
    Float,
    Half,
    /// A decimal number, stored as an integer, with this number of digits after the point.
    Decimal(usize),
    /// Text, and bytes without a declared meaning, which must be UTF-8.
    Text,
    Uuid,
    Date,
    Time(Unit),
    /// A timestamp with its unit; true if it is in UTC, false if it has no time zone.
    Timestamp(Unit, bool),
    /// The old timestamp of 96 bits, without a time zone.
    Int96,
}

impl Kind {
    /// Returns the kind of a column of a primitive type; an error if the type is not supported.
    pub fn of(column: &Type) -> Result<Self> {
        let info = column.get_basic_info();
        let physical = column.get_physical_type();
        let kind = match info.logical_type_ref() {
            Some(logical) => Self::of_logical(logical, physical),
            None => Self::of_converted(info.converted_type(), column),
        };
        let is_whole = !matches!(kind, Some(Self::Uuid | Self::Half)) || has_length(column, kind);
        kind.filter(|_| is_whole).ok_or_else(|| unsupported_type_error(column))
    }

    fn of_logical(logical: &LogicalType, physical: Physical) -> Option<Self> {
        use Physical::{BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT32, INT64};
        Some(match (logical, physical) {
            (LogicalType::Unknown, _) => Self::Nothing,
            (LogicalType::String | LogicalType::Enum | LogicalType::Json, BYTE_ARRAY) => Self::Text,
            (LogicalType::Decimal(decimal), INT32 | INT64 | BYTE_ARRAY | FIXED_LEN_BYTE_ARRAY) => {
                Self::Decimal(usize::try_from(decimal.scale).ok()?)
            }
            (LogicalType::Date, INT32) => Self::Date,
            (LogicalType::Time(time), INT32 | INT64) => {
                let unit = unit_of(&time.unit);
                ((unit == Unit::Millis) == (physical == INT32)).then_some(Self::Time(unit))?
            }
            (LogicalType::Timestamp(at), INT64) => {
                Self::Timestamp(unit_of(&at.unit), at.is_adjusted_to_u_t_c)
            }
            (LogicalType::Integer(integer), INT32 | INT64) => {
                let bits = u8::try_from(integer.bit_width).ok()?;
                ((bits == 64) == (physical == INT64)).then_some(())?;
                if integer.is_signed { Self::Signed(bits) } else { Self::Unsigned(bits) }
            }
            (LogicalType::Uuid, FIXED_LEN_BYTE_ARRAY) => Self::Uuid,
            (LogicalType::Float16, FIXED_LEN_BYTE_ARRAY) => Self::Half,
            _ => return None,
        })
    }

    /// Returns the kind of a column with a converted type, which older writers use instead of a
    /// logical type. Timestamps of such columns are in UTC.
    fn of_converted(converted: ConvertedType, column: &Type) -> Option<Self> {
        use Physical::{BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT32, INT64};
        Some(match (converted, column.get_physical_type()) {
            (ConvertedType::NONE, Physical::BOOLEAN) => Self::Bool,
            (ConvertedType::NONE, INT32) => Self::Signed(32),
            (ConvertedType::NONE, INT64) => Self::Signed(64),
            (ConvertedType::NONE, Physical::INT96) => Self::Int96,
            (ConvertedType::NONE, Physical::FLOAT | Physical::DOUBLE) => Self::Float,
            (ConvertedType::NONE, BYTE_ARRAY | FIXED_LEN_BYTE_ARRAY) => Self::Text,
            (ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON, BYTE_ARRAY) => {
                Self::Text
            }
            (ConvertedType::DECIMAL, INT32 | INT64 | BYTE_ARRAY | FIXED_LEN_BYTE_ARRAY) => {
                Self::Decimal(usize::try_from(column.get_scale()).ok()?)
            }
            (ConvertedType::DATE, INT32) => Self::Date,
            (ConvertedType::TIME_MILLIS, INT32) => Self::Time(Unit::Millis),
            (ConvertedType::TIME_MICROS, INT64) => Self::Time(Unit::Micros),
            (ConvertedType::TIMESTAMP_MILLIS, INT64) => Self::Timestamp(Unit::Millis, true),
            (ConvertedType::TIMESTAMP_MICROS, INT64) => Self::Timestamp(Unit::Micros, true),
            (ConvertedType::INT_8, INT32) => Self::Signed(8),
            (ConvertedType::INT_16, INT32) => Self::Signed(16),
            (ConvertedType::INT_32, INT32) => Self::Signed(32),
            (ConvertedType::INT_64, INT64) => Self::Signed(64),
            (ConvertedType::UINT_8, INT32) => Self::Unsigned(8),
            (ConvertedType::UINT_16, INT32) => Self::Unsigned(16),
            (ConvertedType::UINT_32, INT32) => Self::Unsigned(32),
            (ConvertedType::UINT_64, INT64) => Self::Unsigned(64),
            _ => return None,
        })
    }
}

fn unit_of(unit: &TimeUnit) -> Unit {
    match unit {
        TimeUnit::MILLIS => Unit::Millis,
        TimeUnit::MICROS => Unit::Micros,
        TimeUnit::NANOS => Unit::Nanos,
    }
}

/// Returns true if a column of fixed length has the length that its kind requires.
fn has_length(column: &Type, kind: Option<Kind>) -> bool {
    let wanted = if kind == Some(Kind::Uuid) { 16 } else { 2 };
    matches!(column, Type::PrimitiveType { type_length, .. } if *type_length == wanted)
}

/// The error for a column of a type that is not supported.
pub fn unsupported_type_error(column: &Type) -> Error {
    let info = column.get_basic_info();
    let physical = match column.is_primitive() {
        true => format!("{} ", column.get_physical_type()),
        false => String::new(),
    };
    let logical = match (info.logical_type_ref(), info.converted_type()) {
        (Some(logical), _) => format!("{logical:?}"),
        (None, converted) => converted.to_string(),
    };
    let what = format!(
        "column {:?} has type {physical}{logical}, which JSON cannot keep exactly",
        info.name()
    );
    Error::new(ErrorCode::Unsupported, what).with_hint(
        "write the column as text, a number, a date, a time or a timestamp, or leave it out",
    )
}
