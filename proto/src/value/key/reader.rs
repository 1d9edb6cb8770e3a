//! The tags of encoded key parts, and the byte reader of the decoders.

use crate::plant::{self, Plant};
use crate::{Error, ErrorCode, Result};

pub(super) const MISSING: u8 = 0x10;
pub(super) const NULL: u8 = 0x11;
pub(super) const FALSE: u8 = 0x12;
pub(super) const TRUE: u8 = 0x13;
pub(super) const NUMBER_FIRST: u8 = 0x20;
pub(super) const ZERO: u8 = 0x2a;
pub(super) const NUMBER_LAST: u8 = 0x34;
pub(super) const STRING: u8 = 0x40;
pub(super) const ARRAY: u8 = 0x50;
pub(super) const OBJECT: u8 = 0x60;

/// The byte that ends a string and an array.
pub(super) const END: u8 = 0x00;
/// The byte that begins an escape in a string; the next byte is the escaped byte plus one.
pub(super) const ESCAPE: u8 = 0x01;

pub(super) fn corrupt(what: &str) -> Error {
    Error::new(ErrorCode::Corrupt, format!("a key does not decode: {what}"))
}

/// Returns the byte with which each byte of a part is combined by exclusive or, which inverts the
/// bytes of a descending part.
pub(super) fn mask(descending: bool) -> u8 {
    let is_inverted = descending && !plant::is(Plant::DescendingIgnored);
    if is_inverted { 0xff } else { 0 }
}

/// A reader of encoded bytes, which inverts the bytes of a descending part.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    pub at: usize,
    pub mask: u8,
}

impl<'a> Reader<'a> {
    #[inline]
    pub fn new(bytes: &'a [u8], descending: bool) -> Self {
        Self { bytes, at: 0, mask: mask(descending) }
    }

    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    #[inline]
    pub fn byte(&mut self) -> Result<u8> {
        let byte = self.bytes.get(self.at).ok_or_else(|| corrupt("it ends too early"))?;
        self.at += 1;
        Ok(byte ^ self.mask)
    }

    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).map(|byte| byte ^ self.mask)
    }

    #[inline]
    pub fn advance(&mut self, count: usize) -> Result<()> {
        if self.bytes.len() - self.at < count {
            return Err(corrupt("it ends too early"));
        }
        self.at += count;
        Ok(())
    }

    /// Reads `count` bytes (at most 8) as a big-endian number.
    #[inline]
    pub fn big_endian(&mut self, count: usize) -> Result<u64> {
        if count > 0
            && let Some(wide) = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<8>())
        {
            // One load instead of one for each byte; the bytes after the number are shifted out.
            self.at += count;
            let mask = u64::from_be_bytes([self.mask; 8]);
            return Ok((u64::from_be_bytes(*wide) ^ mask) >> (64 - 8 * count));
        }
        let mut n = 0;
        for _ in 0..count {
            n = n << 8 | u64::from(self.byte()?);
        }
        Ok(n)
    }

    /// Reads the bytes before the next end byte, without undoing escapes and inversion, and skips
    /// the end byte.
    #[inline]
    pub fn until_end(&mut self) -> Result<&'a [u8]> {
        let rest = self.rest();
        let end = END ^ self.mask;
        let length = rest.iter().position(|&byte| byte == end);
        let length = length.ok_or_else(|| corrupt("a string has no end"))?;
        self.at += length + 1;
        Ok(&rest[..length])
    }

    /// Reads a string with its end byte, and appends it to `out` without escapes.
    pub fn string(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let mut rest = self.until_end()?;
        let start = out.len();
        while let Some(at) = rest.iter().position(|&byte| byte ^ self.mask == ESCAPE) {
            out.extend_from_slice(&rest[..at]);
            let escaped = rest.get(at + 1).map(|byte| byte ^ self.mask);
            match escaped {
                // Masked like the rest of the string, for the inversion below.
                Some(byte @ (1 | 2)) => out.push((byte - 1) ^ self.mask),
                _ => return Err(corrupt("a string has an unknown escape")),
            }
            rest = &rest[at + 2..];
        }
        out.extend_from_slice(rest);
        if self.mask != 0 {
            for byte in &mut out[start..] {
                *byte = !*byte;
            }
        }
        Ok(())
    }

    pub fn owned_string(&mut self) -> Result<String> {
        let mut bytes = Vec::new();
        self.string(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| corrupt("a string is not UTF-8"))
    }
}
