//! Formats encoded key parts as SQL text, for the rows of a scan, without building a value in
//! between.

use std::io::Write;

use super::number;
use super::part::decode;
use super::reader::{FALSE, MISSING, NULL, NUMBER_FIRST, NUMBER_LAST, Reader, STRING, TRUE};
use crate::Result;
use crate::value::number::Number;

/// Removes one key part from the front of `bytes` and appends its SQL text: a string without
/// quotes, any other value as JSON. For NULL and MISSING, returns false and appends nothing. Only
/// arrays and objects need an allocation.
///
/// Strings are not checked for UTF-8 again, since keys are made from checked strings.
pub fn write_part_text(bytes: &mut &[u8], descending: bool, out: &mut Vec<u8>) -> Result<bool> {
    let mut reader = Reader::new(bytes, descending);
    let present = match reader.byte()? {
        MISSING | NULL => false,
        FALSE => {
            out.extend_from_slice(b"false");
            true
        }
        TRUE => {
            out.extend_from_slice(b"true");
            true
        }
        STRING => {
            reader.string(out)?;
            true
        }
        tag @ NUMBER_FIRST..=NUMBER_LAST => {
            write_number(number::decode(tag, &mut reader)?, out);
            true
        }
        _ => {
            reader = Reader::new(bytes, descending);
            decode(&mut reader, 0)?.write_json(out);
            true
        }
    };
    *bytes = reader.rest();
    Ok(present)
}

/// Appends the text of a number.
#[inline]
pub fn write_number(number: Number, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    match number {
        Number::Int(int) => out.extend_from_slice(digits.format(int).as_bytes()),
        Number::Uint(int) => out.extend_from_slice(digits.format(int).as_bytes()),
        Number::Float(_) => {
            // Writing to a vector does not fail.
            let _infallible = write!(out, "{number}");
        }
    }
}
