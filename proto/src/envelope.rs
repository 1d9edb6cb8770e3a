//! The envelope of a small file that is written at once: its kind and version, its length, and a
//! checksum.
//!
//! ```text
//! file := head length:u64 check:u32 body       (little endian)
//! ```
//!
//! `head` is a line of text that ends with the version, such as `sextant users 1`. `length` is
//! the number of bytes of the body. `check` is the CRC-32C of all other bytes. So a file of
//! another version is distinguished from a damaged one.

use crate::{Error, ErrorCode, Result};

const LENGTH_BYTES: usize = size_of::<u64>();
const CHECK_BYTES: usize = size_of::<u32>();

/// The first line of a kind of file, with which its files are written and checked.
#[derive(Clone, Copy, Debug)]
pub struct Envelope {
    /// The first line, including its line break.
    head: &'static str,
    /// The first line without the version, which all versions share.
    any_head: &'static str,
}

impl Envelope {
    /// Creates the envelope of a kind of file; `head` and `any_head` are its first line with and
    /// without the version.
    pub const fn new(head: &'static str, any_head: &'static str) -> Self {
        Self { head, any_head }
    }

    /// Returns the number of bytes before the body of a file.
    pub const fn bytes_before(&self) -> usize {
        self.head.len() + LENGTH_BYTES + CHECK_BYTES
    }

    /// Returns the bytes of a file with this body: its envelope, then the body.
    pub fn seal(&self, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes_before() + body.len());
        out.extend_from_slice(self.head.as_bytes());
        out.extend_from_slice(&(body.len() as u64).to_le_bytes());
        let check = crc32c::crc32c_append(crc32c::crc32c(&out), body);
        out.extend_from_slice(&check.to_le_bytes());
        out.extend_from_slice(body);
        out
    }

    /// Returns the body of a file; an error if the file is damaged ([`ErrorCode::Corrupt`]) or of
    /// another version.
    pub fn open<'a>(&self, file: &'a [u8]) -> Result<&'a [u8]> {
        if !file.starts_with(self.head.as_bytes()) {
            return Err(match file.starts_with(self.any_head.as_bytes()) {
                true => Error::new(ErrorCode::Version, "the file is of another version"),
                false => damaged_file_error(),
            });
        }
        let (before, body) =
            file.split_at_checked(self.bytes_before()).ok_or_else(damaged_file_error)?;
        let (summed, check) = before.split_at(before.len() - CHECK_BYTES);
        let length = (body.len() as u64).to_le_bytes();
        let crc = crc32c::crc32c_append(crc32c::crc32c(summed), body);
        match summed.ends_with(&length) && check == crc.to_le_bytes() {
            true => Ok(body),
            false => Err(damaged_file_error()),
        }
    }
}

/// Returns the error of a file whose checksum or length is wrong.
pub fn damaged_file_error() -> Error {
    Error::new(ErrorCode::Corrupt, "the file is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENVELOPE: Envelope = Envelope::new("things 2\n", "things ");

    #[test]
    fn damaged_and_other_versions_differ() {
        let good = ENVELOPE.seal(b"body");
        assert_eq!(ENVELOPE.open(&good).expect("good"), b"body");
        for place in 0..good.len() {
            let is_version = (ENVELOPE.any_head.len()..ENVELOPE.head.len()).contains(&place);
            let code = if is_version { ErrorCode::Version } else { ErrorCode::Corrupt };
            let mut bad = good.clone();
            bad[place] ^= 1;
            assert_eq!(ENVELOPE.open(&bad).expect_err("damaged").code, code, "byte {place}");
            assert_eq!(
                ENVELOPE.open(&good[..place]).expect_err("cut").code,
                code,
                "cut at {place}"
            );
        }
        assert!(ENVELOPE.open(&[&good[..], b"x"].concat()).is_err(), "longer");
    }
}
