//! Packed integers (LEB128) and packed byte strings (length, then bytes).

use crate::error::{Error, ErrorCode, Result};

/// Appends an unsigned integer as LEB128.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a byte string: its length, then its bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads an unsigned LEB128 integer and removes it from the front of `rest`; an error if it is
/// incomplete.
#[inline]
pub fn take_varint(rest: &mut &[u8]) -> Result<u64> {
    match rest.split_first() {
        Some((first, tail)) if *first < 0x80 => {
            *rest = tail;
            Ok(u64::from(*first))
        }
        _ => take_long_varint(rest),
    }
}

fn take_long_varint(rest: &mut &[u8]) -> Result<u64> {
    let mut value = 0u64;
    for (n, byte) in rest.iter().take(10).enumerate() {
        if n == 9 && *byte > 1 {
            break;
        }
        value |= u64::from(byte & 0x7f) << (7 * n);
        if byte & 0x80 == 0 {
            *rest = &rest[n + 1..];
            return Ok(value);
        }
    }
    Err(corrupt("a number that does not end"))
}

/// Reads a byte string and removes it from the front of `rest`; an error if `rest` is too short.
pub fn take_bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8]> {
    let len = take_varint(rest)?;
    take(rest, usize::try_from(len).map_err(|_| corrupt("a length out of range"))?)
}

/// Removes `len` bytes from the front of `rest` and returns them; an error if there are fewer.
pub(super) fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8]> {
    let (head, tail) = rest.split_at_checked(len).ok_or_else(|| corrupt("it ends too soon"))?;
    *rest = tail;
    Ok(head)
}

pub(super) fn corrupt(what: &str) -> Error {
    Error::new(ErrorCode::Corrupt, format!("packed key-versions: {what}"))
}
