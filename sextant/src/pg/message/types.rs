//! Types in PostgreSQL's protocol: their numbers (OIDs), and the values of parameters.

use bytes::Bytes;
use pgwire::api::Type;
use proto::expr::ColumnType;
use proto::expr::cast::CastFailure;
use proto::value::{Number, Value};
use proto::{Error, ErrorCode, Result};

use crate::rows::format::Format;
use crate::rows::value::numeric_from_binary;
use crate::sql::error::unsupported;

/// Returns the OID of a column's type.
pub(in crate::pg) fn oid(column_type: ColumnType) -> u32 {
    wire_type(column_type).oid()
}

/// Returns the type of the protocol for a column's type.
fn wire_type(column_type: ColumnType) -> Type {
    match column_type {
        ColumnType::Text => Type::TEXT,
        ColumnType::Bool => Type::BOOL,
        ColumnType::Int4 => Type::INT4,
        ColumnType::Int8 => Type::INT8,
        ColumnType::Float8 => Type::FLOAT8,
        ColumnType::Numeric => Type::NUMERIC,
    }
}

/// Returns the size of a type's binary form in bytes; -1 if it varies.
pub(in crate::pg) fn size(column_type: ColumnType) -> i16 {
    match column_type {
        ColumnType::Bool => 1,
        ColumnType::Int4 => 4,
        ColumnType::Int8 | ColumnType::Float8 => 8,
        ColumnType::Text | ColumnType::Numeric => -1,
    }
}

/// Returns the OID of a parameter's type: the type that the client has declared, or else the type
/// that the statement implies.
pub(in crate::pg) fn parameter_oid(declared: u32, inferred: ColumnType) -> u32 {
    match declared {
        0 => oid(inferred),
        declared if declared == Type::UNKNOWN.oid() => oid(inferred),
        declared => declared,
    }
}

/// Returns the type of a parameter that the client has declared as a number that may have a
/// fraction; `None` for other types.
pub(in crate::pg) fn declared_fraction(oid: u32) -> Option<ColumnType> {
    match Type::from_oid(oid)? {
        Type::FLOAT4 | Type::FLOAT8 => Some(ColumnType::Float8),
        Type::NUMERIC => Some(ColumnType::Numeric),
        _ => None,
    }
}

/// Decodes the value of a parameter.
pub(in crate::pg) fn parameter(oid: u32, format: Format, bytes: Option<&Bytes>) -> Result<Value> {
    let Some(bytes) = bytes else { return Ok(Value::Null) };
    let known = Type::from_oid(oid).unwrap_or(Type::UNKNOWN);
    match format {
        Format::Text => from_text(&known, utf8(bytes)?),
        Format::Binary => from_binary(&known, bytes),
    }
}

/// Returns bytes as text; an error if they are not UTF-8 or contain NUL.
fn utf8(bytes: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Error::new(ErrorCode::InvalidText, "a parameter is not UTF-8"))?;
    match text.contains('\0') {
        true => Err(Error::new(ErrorCode::InvalidText, "a parameter contains NUL")),
        false => Ok(text),
    }
}

/// Decodes the text form of a parameter's value.
fn from_text(known: &Type, text: &str) -> Result<Value> {
    let cast = match *known {
        Type::BOOL => ColumnType::Bool,
        Type::INT2 | Type::INT4 => ColumnType::Int4,
        Type::INT8 | Type::OID => ColumnType::Int8,
        Type::FLOAT4 | Type::FLOAT8 => ColumnType::Float8,
        Type::NUMERIC => ColumnType::Numeric,
        _ => return Ok(Value::from(text)),
    };
    let value = Value::from(text);
    let read = proto::expr::cast::cast(&value, cast).map_err(|unfit| match unfit {
        CastFailure::Invalid => invalid(known),
        unfit => unfit.error(&value, cast),
    })?;
    let is_small = |n: Number| n.as_i64().is_some_and(|n| i16::try_from(n).is_ok());
    match (known, read.as_number()) {
        (&Type::INT2, Some(number)) if !is_small(number) => {
            let message = format!("{number} is out of range for type smallint");
            Err(Error::new(ErrorCode::OutOfRange, message))
        }
        _ => Ok(read),
    }
}

/// Decodes the binary form of a parameter's value.
fn from_binary(known: &Type, bytes: &[u8]) -> Result<Value> {
    let float = |float: f64| Number::from_double(float).map(Value::Number);
    let value = match *known {
        Type::BOOL => fixed::<1>(bytes).map(|b| Value::Bool(b[0] != 0)),
        Type::INT2 => fixed(bytes).map(|b| Value::int(i16::from_be_bytes(b).into())),
        Type::INT4 => fixed(bytes).map(|b| Value::int(i32::from_be_bytes(b).into())),
        Type::INT8 => fixed(bytes).map(|b| Value::int(i64::from_be_bytes(b))),
        Type::OID => fixed(bytes).map(|b| Value::int(u32::from_be_bytes(b).into())),
        Type::FLOAT4 => fixed(bytes).and_then(|b| float(f32::from_be_bytes(b).into())),
        Type::FLOAT8 => fixed(bytes).and_then(|b| float(f64::from_be_bytes(b))),
        Type::NUMERIC => {
            let text = numeric_from_binary(bytes).ok_or_else(|| invalid(known))?;
            return from_text(known, &text);
        }
        // The text follows one byte with the version of the format.
        Type::JSONB => match bytes {
            [1, text @ ..] => Some(Value::from(utf8(text)?)),
            _ => None,
        },
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::JSON | Type::UNKNOWN => {
            Some(Value::from(utf8(bytes)?))
        }
        _ => {
            return Err(unsupported(
                format!("binary parameters of type {known} are not supported"),
                "send it as text, or as bool, int, float, numeric, text or json",
            ));
        }
    };
    value.ok_or_else(|| invalid(known))
}

/// Returns exactly `N` bytes; `None` for any other number.
fn fixed<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

/// Returns the error for a value that its type does not allow.
fn invalid(known: &Type) -> Error {
    Error::new(ErrorCode::InvalidText, format!("a parameter is not a valid {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_in_both_formats() {
        let read = |t: &Type, format, bytes: &[u8]| {
            parameter(t.oid(), format, Some(&Bytes::copy_from_slice(bytes)))
        };
        let (text, binary) = (Format::Text, Format::Binary);
        assert_eq!(read(&Type::INT8, text, b" 42"), Ok(Value::int(42)));
        assert_eq!(read(&Type::INT2, binary, &(-2i16).to_be_bytes()), Ok(Value::int(-2)));
        assert_eq!(read(&Type::FLOAT8, binary, &1.5f64.to_be_bytes()), Ok(Value::float(1.5)));
        assert_eq!(read(&Type::BOOL, text, b"t"), Ok(Value::Bool(true)));
        assert_eq!(read(&Type::JSONB, binary, b"\x01{}"), Ok(Value::from("{}")));
        assert_eq!(parameter(Type::TEXT.oid(), text, None), Ok(Value::Null));
        for (t, format, bytes) in [
            (Type::INT8, text, &b"x"[..]),
            (Type::INT8, binary, b"1234"),
            (Type::FLOAT8, binary, &f64::NAN.to_be_bytes()),
            (Type::NUMERIC, binary, b"\0"),
            (Type::TEXT, text, b"\xff"),
            (Type::TEXT, text, b"a\0b"),
        ] {
            assert_eq!(read(&t, format, bytes).unwrap_err().code, ErrorCode::InvalidText, "{t}");
        }
        let refused = read(&Type::TIMESTAMP, binary, &[0; 8]).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Unsupported);
    }
}
