//! The values of parquet as JSON.
//!
//! | value | JSON |
//! |---|---|
//! | null, and a number that is not finite | `null` |
//! | a boolean, an integer, a finite number | that |
//! | a decimal | a number with all its digits |
//! | text, and bytes that are UTF-8 | a string; other bytes are an error |
//! | a date, a time, a timestamp of milliseconds or microseconds | `2026-02-28`, `23:59:59.500`, `2026-02-28T23:59:59.500Z` |
//! | a group, a list, a map | an object, an array, an object |

use std::io::Write;

use parquet::data_type::Decimal;
use parquet::record::Field;
use proto::value::write_json_text;
use proto::{Error, ErrorCode, Result};

/// The id that a value is; `None` if it is neither text nor an integer.
pub fn id_of(value: &Field) -> Option<String> {
    match value {
        Field::Str(text) => Some(text.clone()),
        Field::Bytes(bytes) => std::str::from_utf8(bytes.data()).ok().map(str::to_owned),
        other => integer(other).map(|number| number.to_string()),
    }
}

/// Appends an integer as JSON.
#[inline]
pub fn write_integer(number: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends bytes that are text as JSON.
#[inline]
pub fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    match std::str::from_utf8(bytes) {
        Ok(text) => write_json_text(text, out),
        Err(_) => return Err(bad("the bytes are no text")),
    }
    Ok(())
}

/// The number of an integer.
fn integer(value: &Field) -> Option<i128> {
    Some(match value {
        Field::Byte(number) => (*number).into(),
        Field::Short(number) => (*number).into(),
        Field::Int(number) => (*number).into(),
        Field::Long(number) => (*number).into(),
        Field::UByte(number) => (*number).into(),
        Field::UShort(number) => (*number).into(),
        Field::UInt(number) => (*number).into(),
        Field::ULong(number) => (*number).into(),
        _ => return None,
    })
}

/// Appends a value as JSON.
pub fn write_field(value: &Field, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Field::Null => out.extend_from_slice(b"null"),
        Field::Bool(true) => out.extend_from_slice(b"true"),
        Field::Bool(false) => out.extend_from_slice(b"false"),
        Field::Str(text) => write_json_text(text, out),
        Field::Bytes(bytes) => write_bytes(bytes.data(), out)?,
        Field::Double(number) => write_float(*number, out),
        Field::Float(number) => match number.is_finite() {
            // Its own digits, not those of the double.
            true => put(out, format_args!("{number:?}")),
            false => out.extend_from_slice(b"null"),
        },
        Field::Float16(number) => write_float(f64::from(number.to_f32()), out),
        Field::Decimal(decimal) => write_decimal(decimal, out)?,
        Field::Date(days) => put(out, format_args!("\"{}\"", date(i64::from(*days)))),
        Field::TimeMillis(millis) => {
            put(out, format_args!("\"{}\"", time(i64::from(*millis) * 1_000, 3)));
        }
        Field::TimeMicros(micros) => put(out, format_args!("\"{}\"", time(*micros, 6))),
        Field::TimestampMillis(millis) => match millis.checked_mul(1_000) {
            Some(micros) => write_timestamp(micros, 3, out),
            None => return Err(bad("the timestamp is too far away")),
        },
        Field::TimestampMicros(micros) => write_timestamp(*micros, 6, out),
        Field::Group(row) => {
            let fields = row.get_column_iter();
            write_object(fields.map(|(name, value)| (name.as_str(), value)), out)?;
        }
        Field::ListInternal(list) => {
            out.push(b'[');
            for (at, element) in list.elements().iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_field(element, out)?;
            }
            out.push(b']');
        }
        Field::MapInternal(map) => {
            let key = |key: &Field| match key {
                Field::Str(text) => Ok(text.clone()),
                other => integer(other)
                    .map(|number| number.to_string())
                    .ok_or_else(|| bad("a key of a map is neither text nor an integer")),
            };
            let entries = map.entries().iter().map(|(k, value)| Ok((key(k)?, value)));
            let entries: Vec<_> = entries.collect::<Result<_>>()?;
            write_object(entries.iter().map(|(key, value)| (key.as_str(), *value)), out)?;
        }
        other => match integer(other) {
            Some(number) => write_integer(number, out),
            None => return Err(bad("the type of the value is not supported")),
        },
    }
    Ok(())
}

fn bad(what: &str) -> Error {
    Error::new(ErrorCode::InvalidText, what)
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // A vector takes everything.
    let _infallible = out.write_fmt(text);
}

fn write_object<'f>(
    fields: impl Iterator<Item = (&'f str, &'f Field)>,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(b'{');
    for (at, (name, value)) in fields.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_json_text(name, out);
        out.push(b':');
        write_field(value, out)?;
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

/// Appends the digits of a decimal: its value is a big-endian integer, of which `scale` digits are behind the point.
fn write_decimal(decimal: &Decimal, out: &mut Vec<u8>) -> Result<()> {
    let bytes = decimal.data();
    if bytes.len() > 16 {
        return Err(bad("the decimal has more than 38 digits"));
    }
    let sign = bytes.first().map_or(0, |first| (*first as i8) >> 7) as u8;
    let mut wide = [sign; 16];
    wide[16 - bytes.len()..].copy_from_slice(bytes);
    let value = i128::from_be_bytes(wide);
    let digits = value.unsigned_abs().to_string();
    let scale = usize::try_from(decimal.scale()).map_err(|_| bad("the scale is negative"))?;
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let (sign, point) = (if value < 0 { "-" } else { "" }, if scale > 0 { "." } else { "" });
    put(out, format_args!("{sign}{whole}{point}{fraction}"));
    Ok(())
}

const MICROS_OF_DAY: i64 = 24 * 60 * 60 * 1_000_000;

fn write_timestamp(micros: i64, digits: usize, out: &mut Vec<u8>) {
    let (day, within) = (micros.div_euclid(MICROS_OF_DAY), micros.rem_euclid(MICROS_OF_DAY));
    put(out, format_args!("\"{}T{}Z\"", date(day), time(within, digits)));
}

fn time(micros: i64, digits: usize) -> String {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let fraction = format!("{fraction:06}");
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{}", seconds % 60, &fraction[..digits])
}

/// The date so many days after 1970-01-01, in the Gregorian calendar.
fn date(days: i64) -> String {
    // Days since the first of March of the year 0, in eras of 400 years: a leap day is the last of its year.
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: &Field) -> String {
        let mut out = Vec::new();
        write_field(value, &mut out).expect("a value");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn values_keep_what_they_say() {
        for (value, expected) in [
            (Field::Null, "null"),
            (Field::ULong(u64::MAX), "18446744073709551615"),
            (Field::Double(f64::NAN), "null"),
            (Field::Double(1e300), "1e300"),
            (Field::Double(2.0), "2.0"),
            (Field::Float(0.1), "0.1"),
            (Field::Str("a\"b".into()), r#""a\"b""#),
            (Field::Decimal(Decimal::from_i32(-5, 9, 3)), "-0.005"),
            (Field::Decimal(Decimal::from_i64(1234, 18, 2)), "12.34"),
            (Field::Decimal(Decimal::from_i64(-7, 18, 0)), "-7"),
            (Field::Date(0), r#""1970-01-01""#),
            (Field::Date(-1), r#""1969-12-31""#),
            (Field::Date(20_512), r#""2026-02-28""#),
            (Field::Date(11_016), r#""2000-02-29""#),
            (Field::TimeMillis(86_399_500), r#""23:59:59.500""#),
            (Field::TimestampMillis(-1), r#""1969-12-31T23:59:59.999Z""#),
            (Field::TimestampMicros(1), r#""1970-01-01T00:00:00.000001Z""#),
        ] {
            assert_eq!(json(&value), expected, "{value:?}");
        }
        let bytes = Field::Bytes(vec![0xff].into());
        assert!(write_field(&bytes, &mut Vec::new()).is_err(), "no text");
    }
}
