//! Values in PostgreSQL's binary form, as its receive and send functions have it: integers with the
//! most significant byte first, doubles as IEEE 754, text as UTF-8 bytes.
//!
//! `numeric` has digits of base 10000. An array has its dimensions, then its elements with their
//! lengths; a row has its fields with their types and lengths.

use std::borrow::Cow;

use proto::value::{Number, Value};

use super::names::Names;
use super::oid::{self, Oid};
use super::text::{parse, print, print_numeric};
use super::{Type, json};
use crate::data::data;
use crate::error::{Error, Result};

/// The version byte before a `jsonb`.
const JSONB_VERSION: u8 = 1;

/// The base of the digits of `numeric`, and the decimal digits in one.
const NUMERIC_DIGITS: usize = 4;

/// The length of NULL.
const NULL_LENGTH: i32 = -1;

/// Appends a value in the binary form of its type. NULL has no form: the caller writes its length.
pub fn write(value: &Value, ty: &Type, names: &Names<'_>, out: &mut Vec<u8>) -> Result<()> {
    let plain = data().base(ty.oid());
    match value {
        Value::Bool(truth) => out.push(u8::from(*truth)),
        Value::Number(number) => write_number(*number, plain, out)?,
        Value::String(text) => {
            if plain == oid::JSONB {
                out.push(JSONB_VERSION);
            }
            out.extend_from_slice(text.as_bytes());
        }
        Value::Array(fields) if plain == oid::RECORD => write_row(fields, ty, names, out)?,
        Value::Array(items) => write_array(items, plain, names, out)?,
        _ => return Err(without_form(plain, names)),
    }
    Ok(())
}

fn without_form(ty: Oid, names: &Names<'_>) -> Error {
    let name = names.type_name(ty, None).unwrap_or_else(|| ty.to_string());
    Error::unsupported(format!("values of type {name} have no binary form in the catalogue"))
        .with_hint("ask for results as text")
}

fn write_number(number: Number, ty: Oid, out: &mut Vec<u8>) -> Result<()> {
    match ty {
        oid::FLOAT4 => out.extend_from_slice(&(number.as_f64() as f32).to_be_bytes()),
        oid::FLOAT8 => out.extend_from_slice(&number.as_f64().to_be_bytes()),
        oid::NUMERIC => write_numeric(number, out),
        _ => {
            let integer =
                number.as_i64().ok_or_else(|| Error::internal("a fraction in an integer"))?;
            match data().type_row(ty).map_or(8, |row| row.size) {
                2 => out.extend_from_slice(&(integer as i16).to_be_bytes()),
                // OIDs are unsigned; their lower four bytes are the same.
                4 => out.extend_from_slice(&(integer as i32).to_be_bytes()),
                _ => out.extend_from_slice(&integer.to_be_bytes()),
            }
        }
    }
    Ok(())
}

/// The signs of `numeric`.
mod sign {
    pub const POSITIVE: u16 = 0;
    pub const NEGATIVE: u16 = 0x4000;
    pub const INFINITY: u16 = 0xD000;
    pub const NEGATIVE_INFINITY: u16 = 0xF000;
}

/// Writes the number of digits, the weight of the first one, the sign, the scale, and the digits.
fn write_numeric(number: Number, out: &mut Vec<u8>) {
    let mut header = |digits: &[u16], weight: i16, sign: u16, scale: u16| {
        out.extend_from_slice(&(digits.len() as u16).to_be_bytes());
        out.extend_from_slice(&weight.to_be_bytes());
        out.extend_from_slice(&sign.to_be_bytes());
        out.extend_from_slice(&scale.to_be_bytes());
        digits.iter().for_each(|digit| out.extend_from_slice(&digit.to_be_bytes()));
    };
    if number.as_f64().is_infinite() {
        let is_positive = number.as_f64() > 0.0;
        let sign = if is_positive { sign::INFINITY } else { sign::NEGATIVE_INFINITY };
        return header(&[], 0, sign, 0);
    }
    let text = print_numeric(number);
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => (sign::NEGATIVE, text),
        None => (sign::POSITIVE, text.as_str()),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    // The point is between two digits of the base.
    let before = (NUMERIC_DIGITS - whole.len() % NUMERIC_DIGITS) % NUMERIC_DIGITS;
    let after = (NUMERIC_DIGITS - fraction.len() % NUMERIC_DIGITS) % NUMERIC_DIGITS;
    let all = format!("{}{whole}{fraction}{}", "0".repeat(before), "0".repeat(after));
    let digits: Vec<u16> = all
        .as_bytes()
        .chunks(NUMERIC_DIGITS)
        .map(|digits| digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0')))
        .collect();
    let weight = ((whole.len() + before) / NUMERIC_DIGITS) as i16 - 1;
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    let end = digits.iter().rposition(|digit| *digit != 0).map_or(zeros, |last| last + 1);
    let is_zero = zeros == digits.len();
    let weight = if is_zero { 0 } else { weight - zeros as i16 };
    header(&digits[zeros..end.max(zeros)], weight, sign, fraction.len() as u16);
}

fn write_item(value: &Value, ty: &Type, names: &Names<'_>, out: &mut Vec<u8>) -> Result<()> {
    if value.is_absent() {
        out.extend_from_slice(&NULL_LENGTH.to_be_bytes());
        return Ok(());
    }
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    write(value, ty, names, out)?;
    let length = (out.len() - at - 4) as i32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

fn write_row(fields: &[Value], ty: &Type, names: &Names<'_>, out: &mut Vec<u8>) -> Result<()> {
    let Type::Row(types) = ty else { return Err(without_form(ty.oid(), names)) };
    out.extend_from_slice(&(fields.len() as i32).to_be_bytes());
    for (value, field) in fields.iter().zip(types.iter()) {
        out.extend_from_slice(&field.ty.oid().to_be_bytes());
        write_item(value, &field.ty, names, out)?;
    }
    Ok(())
}

fn write_array(items: &[Value], ty: Oid, names: &Names<'_>, out: &mut Vec<u8>) -> Result<()> {
    let element = data().element(ty).ok_or_else(|| without_form(ty, names))?;
    let is_vector = matches!(ty, oid::INT2VECTOR | oid::OIDVECTOR);
    let has_rows = matches!(element, oid::RECORD | oid::INT2VECTOR | oid::OIDVECTOR);
    let mut lengths = vec![items.len()];
    let mut flat: Vec<&Value> = items.iter().collect();
    while !has_rows && let Some(Value::Array(first)) = flat.first() {
        lengths.push(first.len());
        let mut inner: Vec<&Value> = Vec::new();
        for item in flat {
            match item {
                Value::Array(items) => inner.extend(items),
                item => inner.push(item),
            }
        }
        flat = inner;
    }
    if items.is_empty() {
        // A vector keeps its dimension when it is empty; an array has none.
        lengths.truncate(usize::from(is_vector));
    }
    out.extend_from_slice(&(lengths.len() as i32).to_be_bytes());
    let has_null = flat.iter().any(|item| item.is_absent());
    out.extend_from_slice(&i32::from(has_null).to_be_bytes());
    out.extend_from_slice(&element.to_be_bytes());
    let first = i32::from(!is_vector);
    for length in lengths {
        out.extend_from_slice(&(length as i32).to_be_bytes());
        out.extend_from_slice(&first.to_be_bytes());
    }
    let element = Type::Plain(element);
    flat.into_iter().try_for_each(|item| write_item(item, &element, names, out))
}

/// Reads a value of a type from its binary form. An error if the bytes are none (22P03), or too many.
pub fn read(bytes: &[u8], ty: Oid, names: &Names<'_>) -> Result<Value> {
    let mut reader = Reader { bytes };
    let value = reader.value(ty, names)?;
    if reader.bytes.is_empty() { Ok(value) } else { Err(malformed(ty, names)) }
}

fn malformed(ty: Oid, names: &Names<'_>) -> Error {
    let name = names.type_name(ty, None).unwrap_or_else(|| ty.to_string());
    Error::new("22P03", format!("incorrect binary data format for a value of type {name}"))
}

struct Reader<'b> {
    bytes: &'b [u8],
}

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn value(&mut self, ty: Oid, names: &Names<'_>) -> Result<Value> {
        let plain = data().base(ty);
        let wrong = || malformed(ty, names);
        let row = data().type_row(plain);
        Ok(match plain {
            oid::BOOL => Value::Bool(self.array::<1>().ok_or_else(wrong)? != [0]),
            oid::FLOAT4 | oid::FLOAT8 => {
                let number = match plain {
                    oid::FLOAT4 => self.array().map(|bytes| f64::from(f32::from_be_bytes(bytes))),
                    _ => self.array().map(f64::from_be_bytes),
                };
                let number = Number::from_double(number.ok_or_else(wrong)?);
                Value::Number(number.ok_or_else(|| Error::unsupported("NaN as a parameter"))?)
            }
            oid::NUMERIC => self.numeric().ok_or_else(wrong)??,
            oid::INT2 => Value::int(self.array().map(i16::from_be_bytes).ok_or_else(wrong)?.into()),
            oid::INT4 => Value::int(self.array().map(i32::from_be_bytes).ok_or_else(wrong)?.into()),
            oid::INT8 => Value::int(self.array().map(i64::from_be_bytes).ok_or_else(wrong)?),
            oid::OID | oid::XID | oid::CID => {
                Value::int(self.array().map(u32::from_be_bytes).ok_or_else(wrong)?.into())
            }
            _ if row.is_some_and(|row| row.name.starts_with("reg") && row.size == 4) => {
                Value::int(self.array().map(u32::from_be_bytes).ok_or_else(wrong)?.into())
            }
            _ if row.is_some_and(|row| row.category == 'A') => self.items(plain, names)?,
            _ => self.text(plain, names)?,
        })
    }

    /// Reads the rest as text.
    fn text(&mut self, ty: Oid, names: &Names<'_>) -> Result<Value> {
        let bytes = match (ty, self.bytes) {
            (oid::JSONB, [JSONB_VERSION, rest @ ..]) => rest,
            (oid::JSONB, _) => return Err(malformed(ty, names)),
            (_, bytes) => bytes,
        };
        self.bytes = &[];
        let text = String::from_utf8_lossy(bytes);
        let Cow::Borrowed(text) = text else {
            return Err(Error::new("22021", "invalid byte sequence for encoding \"UTF8\""));
        };
        if text.contains('\0') {
            return Err(Error::new("22021", "invalid byte sequence for encoding \"UTF8\": 0x00"));
        }
        match ty {
            oid::JSONB => json::normalized(text).map(Value::String),
            ty => parse(text, ty, names),
        }
    }

    /// Reads a numeric; an error inside for a number that does not exist here.
    fn numeric(&mut self) -> Option<Result<Value>> {
        let count = u16::from_be_bytes(self.array()?);
        let weight = i32::from(i16::from_be_bytes(self.array()?));
        let sign = u16::from_be_bytes(self.array()?);
        let _scale: [u8; 2] = self.array()?;
        let negative = match sign {
            sign::POSITIVE => "",
            sign::NEGATIVE => "-",
            sign::INFINITY => return Some(Ok(Value::Number(Number::Float(f64::INFINITY)))),
            sign::NEGATIVE_INFINITY => {
                return Some(Ok(Value::Number(Number::Float(f64::NEG_INFINITY))));
            }
            _ => return Some(Err(Error::unsupported("NaN as a parameter"))),
        };
        let mut digits = String::from("0");
        for _ in 0..count {
            let digit = u16::from_be_bytes(self.array()?);
            if digit >= 10_000 {
                return None;
            }
            digits += &format!("{digit:04}");
        }
        let exponent = (weight + 1 - i32::from(count)) * NUMERIC_DIGITS as i32;
        let number = Number::parse_sql(&format!("{negative}{digits}e{exponent}"));
        let too_large = || Error::new("22003", "value overflows numeric format");
        Some(number.map(Value::Number).ok_or_else(too_large))
    }

    fn items(&mut self, ty: Oid, names: &Names<'_>) -> Result<Value> {
        let wrong = || malformed(ty, names);
        let own = data().element(ty);
        let int = |reader: &mut Self| reader.array().map(i32::from_be_bytes).ok_or_else(wrong);
        let dimensions = int(self)?;
        let _has_null = int(self)?;
        let element = int(self)? as Oid;
        if !(0..=6).contains(&dimensions) || own != Some(element) {
            return Err(wrong());
        }
        let mut lengths = Vec::new();
        for _ in 0..dimensions {
            lengths.push(usize::try_from(int(self)?).map_err(|_| wrong())?);
            let _first = int(self)?;
        }
        if lengths.is_empty() {
            return Ok(Value::Array(Vec::new()));
        }
        // Each element has at least the bytes of its length: a large count cannot be true.
        let count = lengths.iter().try_fold(1usize, |all, length| all.checked_mul(*length));
        let count = count.filter(|count| *count <= self.bytes.len() / 4).ok_or_else(wrong)?;
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            let length = int(self)?;
            items.push(match usize::try_from(length) {
                Ok(length) => read(self.take(length).ok_or_else(wrong)?, element, names)?,
                Err(_) if length == NULL_LENGTH => Value::Null,
                Err(_) => return Err(wrong()),
            });
        }
        // The inner dimensions become arrays of arrays.
        for length in lengths.iter().skip(1).rev() {
            items =
                items.chunks((*length).max(1)).map(|part| Value::Array(part.to_vec())).collect();
        }
        Ok(Value::Array(items))
    }
}

/// Returns a value in the format that a client has asked for; `None` for NULL.
pub fn encoded(
    value: &Value,
    ty: &Type,
    is_binary: bool,
    names: &Names<'_>,
) -> Result<Option<Vec<u8>>> {
    if value.is_absent() {
        return Ok(None);
    }
    if !is_binary {
        return Ok(Some(print(value, ty, names)?.into_bytes()));
    }
    let mut out = Vec::new();
    write(value, ty, names, &mut out)?;
    Ok(Some(out))
}
