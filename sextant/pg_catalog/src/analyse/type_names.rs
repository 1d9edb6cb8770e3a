//! Types as a statement writes them.

use sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, DataType, ExactNumberInfo, ObjectName, TimezoneInfo,
};

use super::idents::{folded, object_parts, place};
use crate::data::data;
use crate::error::{Error, Result};
use crate::types::Type;
use crate::types::name::type_of_name;
use crate::types::oid::{self, Oid};

/// Returns the type that a statement names, and its modifier (-1 without).
pub(super) fn resolve_type(written: &DataType) -> Result<(Type, i32)> {
    let (ty, modifier) = match written {
        DataType::Char(length) | DataType::Character(length) => {
            (oid::BPCHAR, length.as_ref().map_or(5, length_modifier))
        }
        DataType::CharVarying(length)
        | DataType::CharacterVarying(length)
        | DataType::Varchar(length) => (oid::VARCHAR, length.as_ref().map_or(-1, length_modifier)),
        DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info) => {
            (oid::NUMERIC, numeric_modifier(info))
        }
        DataType::SmallInt(None) | DataType::Int2(None) => (oid::INT2, -1),
        DataType::Int(None) | DataType::Integer(None) | DataType::Int4(None) => (oid::INT4, -1),
        DataType::BigInt(None) | DataType::Int8(None) => (oid::INT8, -1),
        DataType::Real | DataType::Float4 => (oid::FLOAT4, -1),
        DataType::Float8 | DataType::DoublePrecision | DataType::Double(ExactNumberInfo::None) => {
            (oid::FLOAT8, -1)
        }
        DataType::Float(ExactNumberInfo::None) => (oid::FLOAT8, -1),
        DataType::Float(ExactNumberInfo::Precision(bits)) => {
            (if *bits <= 24 { oid::FLOAT4 } else { oid::FLOAT8 }, -1)
        }
        DataType::Bool | DataType::Boolean => (oid::BOOL, -1),
        DataType::Text => (oid::TEXT, -1),
        DataType::Uuid => (oid::UUID, -1),
        DataType::Bytea => (oid::BYTEA, -1),
        DataType::Date => (oid::DATE, -1),
        DataType::Time(precision, zone) => {
            (with_zone(zone, oid::TIME, 1266), time_modifier(*precision))
        }
        DataType::Timestamp(precision, zone) => {
            (with_zone(zone, oid::TIMESTAMP, oid::TIMESTAMPTZ), time_modifier(*precision))
        }
        DataType::Interval { .. } => (oid::INTERVAL, -1),
        DataType::JSON => (oid::JSON, -1),
        DataType::JSONB => (oid::JSONB, -1),
        DataType::Regclass => (oid::REGCLASS, -1),
        DataType::Bit(length) => (oid::BIT, bits(length.unwrap_or(1))),
        DataType::BitVarying(length) | DataType::VarBit(length) => {
            (oid::VARBIT, length.map_or(-1, bits))
        }
        DataType::Trigger => (2279, -1),
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::Qualified(element, _)
            | ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => {
            let (element, modifier) = resolve_type(element)?;
            // An array of arrays is an array of more dimensions.
            let array = match data().element(element.oid()) {
                Some(_) => Some(element.oid()),
                None => data().array_of(element.oid()),
            };
            (array.ok_or_else(|| unknown(&written.to_string()))?, modifier)
        }
        DataType::Custom(name, modifiers) => custom(name, modifiers)?,
        other => return Err(unknown(&other.to_string())),
    };
    // On the wire and in expressions a domain is its base type.
    Ok(match data().type_row(ty) {
        Some(row) if row.base != 0 => (Type::Plain(data().base(ty)), row.base_modifier),
        _ => (Type::Plain(ty), modifier),
    })
}

/// Returns a type that is written by its name, with or without a schema.
fn custom(name: &ObjectName, modifiers: &[String]) -> Result<(Oid, i32)> {
    let parts = object_parts(name)?;
    let (schema, last) = match parts.as_slice() {
        [last] => (None, last),
        [schema, last] => (Some(folded(schema)), last),
        _ => return Err(unknown(&name.to_string())),
    };
    let text = folded(last);
    let by_name = match last.quote_style {
        Some(_) => data().type_named(&text).map(|row| row.oid),
        None if text == "char" && schema.is_none() => Some(oid::BPCHAR),
        None => type_of_name(&text),
    };
    let in_schema = |ty: &Oid| {
        let own = data().type_row(*ty).map(|row| row.schema.as_str());
        match &schema {
            None => own == Some("pg_catalog"),
            Some(schema) => own == Some(schema.as_str()),
        }
    };
    let Some(ty) = by_name.filter(in_schema) else {
        return Err(place(unknown(&name.to_string()), last));
    };
    let number = modifiers.first().and_then(|modifier| modifier.parse::<i32>().ok());
    let modifier = match (ty, number) {
        (oid::VARCHAR | oid::BPCHAR, Some(length)) => length + 4,
        (oid::BPCHAR, None) if last.quote_style.is_none() && text == "char" => 5,
        (oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ, Some(digits)) => digits,
        _ => -1,
    };
    Ok((ty, modifier))
}

fn unknown(name: &str) -> Error {
    Error::new("42704", format!("type \"{}\" does not exist", name.to_lowercase()))
}

fn with_zone(zone: &TimezoneInfo, without: Oid, with: Oid) -> Oid {
    match zone {
        TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => without,
        TimezoneInfo::WithTimeZone | TimezoneInfo::Tz => with,
    }
}

fn bits(length: u64) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

fn time_modifier(precision: Option<u64>) -> i32 {
    precision.and_then(|digits| i32::try_from(digits.min(6)).ok()).unwrap_or(-1)
}

fn length_modifier(length: &CharacterLength) -> i32 {
    match length {
        CharacterLength::IntegerLength { length, .. } => {
            i32::try_from(*length).unwrap_or(i32::MAX - 4).saturating_add(4)
        }
        CharacterLength::Max => -1,
    }
}

/// Packs precision and scale as PostgreSQL does.
fn numeric_modifier(info: &ExactNumberInfo) -> i32 {
    let (precision, scale) = match info {
        ExactNumberInfo::None => return -1,
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    let precision = i32::try_from(precision.min(1000)).unwrap_or(1000);
    let scale = i32::try_from(scale.clamp(-1000, 1000)).unwrap_or(0);
    (precision << 16 | scale & 0x7ff) + 4
}
