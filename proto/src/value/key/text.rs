//! Parts of keys straight to SQL text: what scans print, row after row, without a value in between.

use std::io::Write;

use super::number;
use super::part::decode;
use super::reader::{FALSE, MISSING, NULL, NUMBER_FIRST, NUMBER_LAST, Reader, STRING, TRUE};
use crate::Result;

/// Takes one part off the front of `bytes` and appends its SQL text: strings bare, other values as
/// JSON. False, and nothing appended, where it is NULL or MISSING. Only arrays and objects allocate.
///
/// Strings are not checked to be UTF-8 again: what is in a key has been one.
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
            // Writing to a vector does not fail.
            let _infallible = write!(out, "{}", number::decode(tag, &mut reader)?);
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
