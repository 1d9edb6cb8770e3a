//! Encoding of numbers in keys: whole parts, fractions and doubles, in the format of the head of `key`.

use super::reader::{NUMBER_FIRST, NUMBER_LAST, Reader, ZERO, corrupt};
use crate::Result;
use crate::value::number::Number;

const NEGATIVE_HUGE: u8 = NUMBER_FIRST;
const NEGATIVE_TINY: u8 = ZERO - 1;
const POSITIVE_TINY: u8 = ZERO + 1;
const POSITIVE_HUGE: u8 = NUMBER_LAST;

/// 2^56: fractions are stored as multiples of 1 / 2^56.
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

/// A canonical float without its sign: it has a fraction, or is beyond the integers of 64 bits.
fn encode_float(f: f64, out: &mut Vec<u8>) {
    if f > 1.0 && f.fract() != 0.0 {
        encode_magnitude(f as u64, (f.fract() * FRACTION_UNITS) as u64, out);
    } else {
        out.push(if f < 1.0 { POSITIVE_TINY } else { POSITIVE_HUGE });
        out.extend_from_slice(&f.to_bits().to_be_bytes());
    }
}

/// `whole` is at least 1.
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

/// `None` if the encoder writes these bytes for no number.
#[inline]
fn decode_positive(tag: u8, negative: bool, reader: &mut Reader<'_>) -> Result<Option<Number>> {
    if tag == POSITIVE_TINY || tag == POSITIVE_HUGE {
        let f = f64::from_bits(reader.big_endian(8)?);
        let fits =
            if tag == POSITIVE_TINY { f > 0.0 && f < 1.0 } else { f > 1.0 && f.fract() == 0.0 };
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

/// The double, unless it is a number that is kept as an integer.
fn signed_float(f: f64, negative: bool) -> Option<Number> {
    let number = Number::from_f64(if negative { -f } else { f });
    number.filter(|number| matches!(number, Number::Float(_)))
}

#[inline]
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
