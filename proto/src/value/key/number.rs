//! The encoding of numbers in keys: whole parts, fractions and doubles. The documentation of the
//! module `key` describes the format.

use super::reader::{NUMBER_FIRST, NUMBER_LAST, Reader, ZERO, corrupt, mask};
use crate::Result;
use crate::value::number::Number;

const NEGATIVE_HUGE: u8 = NUMBER_FIRST;
const NEGATIVE_TINY: u8 = ZERO - 1;
const POSITIVE_TINY: u8 = ZERO + 1;
const POSITIVE_HUGE: u8 = NUMBER_LAST;

/// The number 2^56: fractions are stored as multiples of 1 / 2^56.
const FRACTION_UNITS: f64 = 72_057_594_037_927_936.0;
const FRACTION_BYTES: usize = 7;

pub(super) fn encode(number: Number, out: &mut Vec<u8>) {
    let start = out.len();
    let negative = match number {
        Number::Int(0) => {
            out.push(ZERO);
            return;
        }
        Number::Int(n) => {
            encode_magnitude(n.unsigned_abs(), 0, out);
            n < 0
        }
        Number::Uint(n) => {
            encode_magnitude(n, 0, out);
            false
        }
        Number::Float(f) => {
            encode_float(f.abs(), out);
            f < 0.0
        }
    };
    if negative {
        // Tags mirror around zero: 2·ZERO - tag. The payload is inverted.
        out[start] = 2 * ZERO - out[start];
        for byte in &mut out[start + 1..] {
            *byte = !*byte;
        }
    }
}

/// Appends a canonical float without its sign. The float is infinite, has a fraction, or is outside
/// the range of 64-bit integers.
fn encode_float(f: f64, out: &mut Vec<u8>) {
    if f > 1.0 && has_fraction(f) {
        encode_magnitude(f as u64, (f.fract() * FRACTION_UNITS) as u64, out);
    } else {
        out.push(if f < 1.0 { POSITIVE_TINY } else { POSITIVE_HUGE });
        out.extend_from_slice(&f.to_bits().to_be_bytes());
    }
}

fn has_fraction(f: f64) -> bool {
    f.is_finite() && f.fract() != 0.0
}

/// Appends a whole part (at least 1) and a fraction in units of 2^-56.
fn encode_magnitude(whole: u64, fraction: u64, out: &mut Vec<u8>) {
    let zeros = whole.leading_zeros() as usize / 8;
    out.push(POSITIVE_TINY + (8 - zeros) as u8);
    out.extend_from_slice(&whole.to_be_bytes()[zeros..]);
    if fraction != 0 {
        out.push(1);
        out.extend_from_slice(&fraction.to_be_bytes()[8 - FRACTION_BYTES..]);
    } else if zeros > 0 {
        out.push(0);
    }
}

#[inline]
pub(super) fn decode(tag: u8, reader: &mut Reader<'_>) -> Result<Number> {
    if tag == ZERO {
        return Ok(Number::Int(0));
    }
    let negative = tag < ZERO;
    let tag = if negative { 2 * ZERO - tag } else { tag };
    // The payload of a negative number is inverted once more.
    if negative {
        reader.mask = !reader.mask;
    }
    let decoded = decode_positive(tag, negative, reader);
    if negative {
        reader.mask = !reader.mask;
    }
    decoded?.ok_or_else(|| corrupt("a number is not in its one form"))
}

/// Decodes a number from its tag, which the caller has mapped to that of the positive number.
/// Returns `None` for bytes that the encoder never writes.
#[inline]
fn decode_positive(tag: u8, negative: bool, reader: &mut Reader<'_>) -> Result<Option<Number>> {
    if tag == POSITIVE_TINY || tag == POSITIVE_HUGE {
        let f = f64::from_bits(reader.big_endian(8)?);
        let fits =
            if tag == POSITIVE_TINY { f > 0.0 && f < 1.0 } else { f > 1.0 && !has_fraction(f) };
        return Ok(if fits { signed_float(f, negative) } else { None });
    }
    let whole_bytes = usize::from(tag - POSITIVE_TINY);
    let whole = reader.big_endian(whole_bytes)?;
    if whole.leading_zeros() as usize / 8 != 8 - whole_bytes {
        return Ok(None);
    }
    let has_fraction = whole_bytes < 8
        && match reader.byte()? {
            0 => false,
            1 => true,
            _ => return Ok(None),
        };
    if !has_fraction {
        return Ok(if negative {
            i64::try_from(-i128::from(whole)).ok().map(Number::Int)
        } else {
            Some(Number::from_u64(whole))
        });
    }
    let fraction = reader.big_endian(FRACTION_BYTES)?;
    let f = whole as f64 + fraction as f64 / FRACTION_UNITS;
    let exact = f as u64 == whole && (f.fract() * FRACTION_UNITS) as u64 == fraction;
    Ok(if exact { signed_float(f, negative) } else { None })
}

/// Returns the double with its sign; `None` if the encoder would write this number as an integer.
fn signed_float(f: f64, negative: bool) -> Option<Number> {
    let number = Number::from_double(if negative { -f } else { f });
    number.filter(|number| matches!(number, Number::Float(_)))
}

/// Decodes the integer at the front of `bytes` with one load. Returns it with the number of bytes
/// that it takes. Returns `None` for other values, for 0, for integers of more than seven bytes,
/// and near the end of `bytes`; the caller then uses the decoder.
#[inline]
pub fn leading_int(bytes: &[u8], descending: bool) -> Option<(i64, usize)> {
    let (tag, rest) = bytes.split_first()?;
    let mask = mask(descending);
    let tag = tag ^ mask;
    let negative = tag < ZERO;
    // Negative numbers mirror around zero, and their payload is inverted.
    let (tag, mask) = if negative { ((2 * ZERO).wrapping_sub(tag), !mask) } else { (tag, mask) };
    let whole_bytes = usize::from(tag.wrapping_sub(POSITIVE_TINY));
    let wide = u64::from_be_bytes(*rest.first_chunk::<8>()?) ^ u64::from_be_bytes([mask; 8]);
    if !(1..=7).contains(&whole_bytes) {
        return None;
    }
    // The whole part begins with a byte that is not 0, and 0 means that no fraction follows.
    let whole_and_end = wide >> (56 - 8 * whole_bytes);
    let is_plain = wide >> 56 != 0 && whole_and_end & 0xff == 0;
    let whole = (whole_and_end >> 8) as i64;
    is_plain.then_some((if negative { -whole } else { whole }, whole_bytes + 2))
}

pub(super) fn skip(tag: u8, reader: &mut Reader<'_>) -> Result<()> {
    if tag == ZERO {
        return Ok(());
    }
    let magnitude_tag = if tag < ZERO { 2 * ZERO - tag } else { tag };
    if magnitude_tag == POSITIVE_TINY || magnitude_tag == POSITIVE_HUGE {
        return reader.advance(8);
    }
    let whole_bytes = usize::from(magnitude_tag - POSITIVE_TINY);
    reader.advance(whole_bytes)?;
    if whole_bytes == 8 {
        return Ok(());
    }
    let none = if tag < ZERO { 0xff } else { 0 };
    if reader.byte()? == none { Ok(()) } else { reader.advance(FRACTION_BYTES) }
}

const _: () = {
    assert!(NEGATIVE_HUGE == 2 * ZERO - POSITIVE_HUGE);
    assert!(NEGATIVE_TINY == 2 * ZERO - POSITIVE_TINY);
    assert!(POSITIVE_HUGE == POSITIVE_TINY + 9);
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::part::{decode_part, encode_part, skip_part};
    use super::*;
    use crate::value::tree::Value;

    proptest! {
        #[test]
        fn the_quick_reader_of_integers_agrees_with_the_decoder(
            int in prop_oneof![any::<i64>(), -70_000..70_000_i64],
            shift in 0..64_u32,
            eighths in 0..3_i32,
            descending: bool,
            id in "[a-z]{1,12}",
        ) {
            let int = int >> shift;
            let value = match eighths {
                0 => Value::int(int),
                eighths => Value::Number(Number::from_f64(int as f64 + f64::from(eighths) / 8.0).expect("finite")),
            };
            let mut part = Vec::new();
            encode_part(&value, descending, &mut part);
            let length = part.len();
            part.extend_from_slice(id.as_bytes());
            match leading_int(&part, descending) {
                Some((read, read_length)) => {
                    prop_assert_eq!((Value::int(read), read_length), (value.clone(), length));
                }
                None => prop_assert!(
                    eighths > 0 || int == 0 || int.unsigned_abs() >= 1 << 56 || part.len() < 9,
                    "{value} is a plain integer"
                ),
            }
            prop_assert_eq!(decode_part(&mut &part[..], descending), Ok(value));
        }

        #[test]
        fn infinity_is_beyond_all_numbers_and_decodes(float: f64, descending: bool) {
            prop_assume!(float.is_finite());
            let part = |float: f64| {
                let mut part = Vec::new();
                let value = Number::from_double(float).map_or(Value::Null, Value::Number);
                encode_part(&value, descending, &mut part);
                assert_eq!(skip_part(&part, descending), Ok(part.len()));
                assert_eq!(decode_part(&mut &part[..], descending), Ok(value));
                part
            };
            let [low, middle, high] = [f64::NEG_INFINITY, float, f64::INFINITY].map(part);
            let ascends = low < middle && middle < high;
            let descends = low > middle && middle > high;
            let is_ordered = if descending { descends } else { ascends };
            prop_assert!(is_ordered);
        }

        #[test]
        fn the_quick_reader_takes_only_what_the_decoder_takes(
            mut bytes in prop::collection::vec(any::<u8>(), 0..14),
            tag in 0x20..0x35_u8,
            descending: bool,
        ) {
            if let Some(first) = bytes.first_mut() {
                *first = tag ^ mask(descending);
            }
            if let Some((int, length)) = leading_int(&bytes, descending) {
                let mut rest = &bytes[..];
                prop_assert_eq!(decode_part(&mut rest, descending), Ok(Value::int(int)));
                prop_assert_eq!(bytes.len() - rest.len(), length);
            }
        }
    }
}
