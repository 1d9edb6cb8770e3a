//! Converts Parquet values to JSON. The type of a column determines how its values are converted
//! (its [`Kind`]).
//!
//! | value | JSON |
//! |---|---|
//! | null, and a floating-point number that is not finite | `null` |
//! | a boolean, an integer, a finite number | the boolean or number |
//! | a decimal of at most 38 digits | a number with all its digits |
//! | text, and bytes that are UTF-8 | a string; other bytes are an error |
//! | a UUID | `7ed4bffc-f189-40b0-9090-c58e1cba14b8` |
//! | a date, a time | `2026-02-28`, `23:59:59.500` |
//! | a timestamp in UTC, and one of no zone | `2026-02-28T23:59:59.500Z`, `2026-02-28T23:59:59.500` |
//! | a group, a list, a map | an object, an array, an object |
//!
//! Times and timestamps have all digits of their unit after the point: 3, 6 or 9.

use std::collections::BTreeSet;
use std::io::Write;

use parquet::basic::{ConvertedType, LogicalType, Repetition};
use parquet::data_type::Int96;
use parquet::record::Field;
use parquet::schema::types::Type;
use proto::value::write_json_text;
use proto::{Error, ErrorCode, Result};

use super::kind::Kind;
use super::moment::{Unit, date, day_and_time, time};

/// The number of the day 1970-01-01 in the day count that INT96 timestamps use (Julian days).
const DAY_OF_1970: i64 = 2_440_588;

/// A value as a column stores it, before it is converted to JSON.
#[derive(Clone, Copy, Debug)]
pub enum StoredValue<'v> {
    Bool(bool),
    Int(i64),
    Int96(&'v Int96),
    Float(f32),
    Double(f64),
    Bytes(&'v [u8]),
}

/// Appends a value as the id of a document. Returns false if the value is neither text nor an
/// integer.
#[inline]
pub fn put_id(value: StoredValue<'_>, kind: Kind, out: &mut String) -> Result<bool> {
    let mut json = Vec::new();
    match (kind, value) {
        (Kind::Text, StoredValue::Bytes(bytes)) => {
            let text = std::str::from_utf8(bytes);
            return Ok(text.map(|text| out.push_str(text)).is_ok());
        }
        (Kind::Signed(_) | Kind::Unsigned(_) | Kind::Uuid, _) => {
            write_value(value, kind, &mut json)?
        }
        _ => return Ok(false),
    }
    let text = String::from_utf8_lossy(&json);
    out.push_str(text.trim_matches('"'));
    Ok(true)
}

/// Appends a value as JSON.
#[inline]
pub fn write_value(value: StoredValue<'_>, kind: Kind, out: &mut Vec<u8>) -> Result<()> {
    match (kind, value) {
        (Kind::Bool, StoredValue::Bool(is)) => put(out, format_args!("{is}")),
        (Kind::Signed(64) | Kind::Signed(32), StoredValue::Int(number)) => {
            write_integer(number, out)
        }
        (Kind::Signed(bits), StoredValue::Int(number)) => {
            let is_within = (-1 << (bits - 1)..1 << (bits - 1)).contains(&number);
            write_integer(within(number, is_within, bits)?, out);
        }
        (Kind::Unsigned(64), StoredValue::Int(number)) => write_integer(number as u64, out),
        (Kind::Unsigned(32), StoredValue::Int(number)) => write_integer(number as u32, out),
        (Kind::Unsigned(bits), StoredValue::Int(number)) => {
            write_integer(within(number, (0..1 << bits).contains(&number), bits)?, out);
        }
        (Kind::Float, StoredValue::Double(number)) => write_float(number, out),
        (Kind::Float, StoredValue::Float(number)) => match number.is_finite() {
            // The digits of the number's own type, not those of the double.
            true => put(out, format_args!("{number:?}")),
            false => out.extend_from_slice(b"null"),
        },
        (Kind::Half, StoredValue::Float(number)) => write_float(f64::from(number), out),
        (Kind::Half, StoredValue::Bytes(&[low, high])) => {
            write_float(decode_half_float(u16::from_le_bytes([low, high])), out);
        }
        (Kind::Decimal(scale), StoredValue::Int(number)) => {
            write_decimal(number.into(), scale, out)?
        }
        (Kind::Decimal(scale), StoredValue::Bytes(bytes)) => {
            write_decimal(decode_wide_integer(bytes)?, scale, out)?
        }
        (Kind::Text, StoredValue::Bytes(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => write_json_text(text, out),
            Err(_) => return Err(bad("the bytes are no text")),
        },
        (Kind::Uuid, StoredValue::Bytes(bytes)) => write_uuid(bytes, out)?,
        (Kind::Date, StoredValue::Int(days)) => put(out, format_args!("\"{}\"", date(days))),
        (Kind::Time(unit), StoredValue::Int(since)) => match (0..unit.of_day()).contains(&since) {
            true => put(out, format_args!("\"{}\"", time(since, unit))),
            false => return Err(bad("the time is not within a day")),
        },
        (Kind::Timestamp(unit, is_utc), StoredValue::Int(since)) => {
            let at = day_and_time(since, unit);
            write_timestamp(at, unit, is_utc, out);
        }
        (Kind::Int96, StoredValue::Int96(value)) => {
            let [low, high, day] = <[u32; 3]>::try_from(value.data()).unwrap_or_default();
            let nanos = (i64::from(high) << 32) | i64::from(low);
            if !(0..Unit::Nanos.of_day()).contains(&nanos) {
                return Err(bad("the time of the timestamp is not within a day"));
            }
            write_timestamp((i64::from(day) - DAY_OF_1970, nanos), Unit::Nanos, false, out);
        }
        _ => return Err(bad("the value is not of the type of its column")),
    }
    Ok(())
}

/// Appends, as JSON, a value that the library's row interface has returned; `of` is the type of
/// its column.
pub fn write_field(value: &Field, of: &Type, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Field::Null => out.extend_from_slice(b"null"),
        Field::Group(row) => {
            let fields = row.get_column_iter().zip(of.get_fields());
            write_object(fields.map(|((name, value), of)| (name.as_str(), value, &**of)), out)?;
        }
        Field::ListInternal(list) => {
            let element = element_of(of);
            out.push(b'[');
            for (at, value) in list.elements().iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_field(value, element, out)?;
            }
            out.push(b']');
        }
        Field::MapInternal(map) => {
            let [key, value] = of.get_fields()[0].get_fields() else {
                return Err(bad("the map has no values"));
            };
            let mut names = BTreeSet::new();
            let mut entries: Vec<(String, &Field, &Type)> = Vec::new();
            for (of_key, of_value) in map.entries() {
                let name = field_id(of_key, key)?
                    .ok_or_else(|| bad("a key of a map is neither text nor an integer"))?;
                if !names.insert(name.clone()) {
                    return Err(bad(&format!("a map has key {name:?} twice")));
                }
                entries.push((name, of_value, value));
            }
            write_object(
                entries.iter().map(|(name, value, of)| (name.as_str(), *value, *of)),
                out,
            )?;
        }
        leaf if of.is_primitive() => write_value(stored(leaf)?, Kind::of(of)?, out)?,
        _ => return Err(bad("the value is not of the type of its column")),
    }
    Ok(())
}

/// Returns a value of the library's row interface as a document's id; `None` if it is neither
/// text nor an integer.
pub fn field_id(value: &Field, of: &Type) -> Result<Option<String>> {
    if !of.is_primitive() || *value == Field::Null {
        return Ok(None);
    }
    let mut id = String::new();
    Ok(put_id(stored(value)?, Kind::of(of)?, &mut id)?.then_some(id))
}

/// Returns the type of a list's elements, as the library's row interface interprets it.
fn element_of(list: &Type) -> &Type {
    if list.is_primitive() {
        return list;
    }
    match (list.get_basic_info().converted_type(), list.get_fields()) {
        (ConvertedType::LIST, [repeated]) if is_wrapper(repeated) => &repeated.get_fields()[0],
        (ConvertedType::LIST, [repeated]) => repeated,
        // A map without values is a list of its keys.
        (ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE, [keys]) if !keys.is_primitive() => {
            keys.get_fields().first().map_or(list, |key| key)
        }
        _ => list,
    }
}

/// Returns true if the repeated type of a list is a group that only wraps the element. In lists
/// of older writers the repeated type is the element itself.
fn is_wrapper(repeated: &Type) -> bool {
    if repeated.is_primitive() {
        return false;
    }
    let [element] = repeated.get_fields() else { return false };
    let info = repeated.get_basic_info();
    let is_list = match info.logical_type_ref() {
        Some(logical) => *logical == LogicalType::List,
        None => info.converted_type() == ConvertedType::LIST,
    };
    let is_repeated = element.get_basic_info().repetition() == Repetition::REPEATED;
    let is_named = repeated.name() == "array" || repeated.name().ends_with("_tuple");
    is_list || is_repeated || !is_named
}

/// Returns a value of the library's row interface as its column stores it. Files with INT96 are
/// not read through this interface, which truncates such values.
fn stored(value: &Field) -> Result<StoredValue<'_>> {
    Ok(match value {
        Field::Bool(is) => StoredValue::Bool(*is),
        Field::Byte(number) => StoredValue::Int((*number).into()),
        Field::Short(number) => StoredValue::Int((*number).into()),
        Field::Int(number) | Field::Date(number) | Field::TimeMillis(number) => {
            StoredValue::Int((*number).into())
        }
        Field::Long(number)
        | Field::TimeMicros(number)
        | Field::TimestampMillis(number)
        | Field::TimestampMicros(number) => StoredValue::Int(*number),
        Field::UByte(number) => StoredValue::Int((*number).into()),
        Field::UShort(number) => StoredValue::Int((*number).into()),
        Field::UInt(number) => StoredValue::Int((*number).into()),
        Field::ULong(number) => StoredValue::Int(*number as i64),
        Field::Float(number) => StoredValue::Float(*number),
        Field::Double(number) => StoredValue::Double(*number),
        Field::Float16(number) => StoredValue::Float(number.to_f32()),
        Field::Decimal(decimal) => StoredValue::Bytes(decimal.data()),
        Field::Str(text) => StoredValue::Bytes(text.as_bytes()),
        Field::Bytes(bytes) => StoredValue::Bytes(bytes.data()),
        _ => return Err(bad("the type of the value is not supported")),
    })
}

fn bad(what: &str) -> Error {
    Error::new(ErrorCode::InvalidText, what)
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // A vector takes everything.
    let _infallible = out.write_fmt(text);
}

/// Appends an integer as JSON.
#[inline]
fn write_integer(number: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn within(number: i64, is_within: bool, bits: u8) -> Result<i64> {
    match is_within {
        true => Ok(number),
        false => Err(bad(&format!("{number} is beyond the {bits} bits of its column"))),
    }
}

fn write_object<'f>(
    fields: impl Iterator<Item = (&'f str, &'f Field, &'f Type)>,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(b'{');
    for (at, (name, value, of)) in fields.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_json_text(name, out);
        out.push(b':');
        write_field(value, of, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn write_float(number: f64, out: &mut Vec<u8>) {
    match number.is_finite() {
        true => put(out, format_args!("{number:?}")),
        false => out.extend_from_slice(b"null"),
    }
}

/// Decodes a 16-bit floating-point number: sign, 5 bits of exponent, 10 bits of fraction.
fn decode_half_float(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let size = match exponent {
        0 => fraction * f64::powi(2.0, -24),
        0x1f => f64::NAN,
        _ => (1_024.0 + fraction) * f64::powi(2.0, exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

/// Decodes a big-endian integer. Leading bytes above 16 bytes are ignored if they only repeat the
/// sign.
fn decode_wide_integer(bytes: &[u8]) -> Result<i128> {
    let sign = bytes.first().map_or(0, |first| (*first as i8) >> 7) as u8;
    let (more, last) = bytes.split_at(bytes.len().saturating_sub(16));
    let is_same_sign = last.first().is_none_or(|first| ((*first as i8) >> 7) as u8 == sign);
    if !is_same_sign || more.iter().any(|byte| *byte != sign) {
        return Err(bad("the decimal has more than 38 digits"));
    }
    let mut wide = [sign; 16];
    wide[16 - last.len()..].copy_from_slice(last);
    Ok(i128::from_be_bytes(wide))
}

/// The maximum number of digits after the point of a decimal; a double has no more.
const SCALE_MAX: usize = 1_100;

/// Appends the decimal number `value / 10^scale`, with `scale` digits after the point.
fn write_decimal(value: i128, scale: usize, out: &mut Vec<u8>) -> Result<()> {
    if scale > SCALE_MAX {
        return Err(bad(&format!(
            "the decimal has {scale} digits after the point; at most {SCALE_MAX}"
        )));
    }
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let (sign, point) = (if value < 0 { "-" } else { "" }, if scale > 0 { "." } else { "" });
    put(out, format_args!("{sign}{whole}{point}{fraction}"));
    Ok(())
}

fn write_uuid(bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if bytes.len() != 16 {
        return Err(bad("the UUID has other than 16 bytes"));
    }
    out.push(b'"');
    for (at, byte) in bytes.iter().enumerate() {
        let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
        put(out, format_args!("{dash}{byte:02x}"));
    }
    out.push(b'"');
    Ok(())
}

fn write_timestamp((day, since): (i64, i64), unit: Unit, is_utc: bool, out: &mut Vec<u8>) {
    let zone = if is_utc { "Z" } else { "" };
    put(out, format_args!("\"{}T{}{zone}\"", date(day), time(since, unit)));
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
