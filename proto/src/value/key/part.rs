//! The encoder and the decoder of key parts and of entries.

use super::number;
use super::reader::{
    ARRAY, END, ESCAPE, FALSE, MISSING, NULL, NUMBER_FIRST, NUMBER_LAST, OBJECT, Reader, STRING,
    TRUE, corrupt,
};
use crate::plant::{self, Plant};
use crate::value::tree::{MAX_DEPTH, Object, Value};
use crate::{Error, ErrorCode, Result};

/// The maximum size of all key parts of an entry together, in bytes. With this limit, any entry
/// fits into a block of a fragment (about 4 KB).
pub const KEY_BYTES_MAX: usize = 4096;

/// The maximum length of a document's id, in bytes. Couchbase (and memcached before it) allow 250
/// too, and the length fits one byte.
pub const ID_BYTES_MAX: usize = 250;

/// Appends one part of a key.
pub fn encode_part(value: &Value, descending: bool, out: &mut Vec<u8>) {
    let start = out.len();
    encode(value, out);
    if descending && !plant::is(Plant::DescendingIgnored) {
        for byte in &mut out[start..] {
            *byte = !*byte;
        }
    }
}

/// Appends an entry: the key parts, each in its direction, then the document's id. Parts without
/// a direction are ascending. Returns `OverLimit` if the key or the id is too long; `out` is then
/// unchanged.
pub fn encode_entry<'a>(
    parts: impl IntoIterator<Item = &'a Value>,
    descending: &[bool],
    id: &str,
    out: &mut Vec<u8>,
) -> Result<()> {
    check_id(id)?;
    let start = out.len();
    for (n, part) in parts.into_iter().enumerate() {
        encode_part(part, descending.get(n).copied().unwrap_or(false), out);
    }
    let key_bytes = out.len() - start;
    if key_bytes > KEY_BYTES_MAX {
        out.truncate(start);
        return Err(Error::new(
            ErrorCode::OverLimit,
            format!(
                "the key of document {id:?} takes {key_bytes} bytes, the limit is {KEY_BYTES_MAX}"
            ),
        ));
    }
    out.extend_from_slice(id.as_bytes());
    Ok(())
}

/// Checks a document's id. Returns `OverLimit` if it is too long, and `InvalidText` if it is
/// empty.
pub fn check_id(id: &str) -> Result<()> {
    if id.is_empty() {
        return Err(Error::new(ErrorCode::InvalidText, "a document's id is empty"));
    }
    if id.len() > ID_BYTES_MAX {
        let shown: String = id.chars().take(40).collect();
        return Err(Error::new(
            ErrorCode::OverLimit,
            format!("the id {shown:?}… takes {} bytes, the limit is {ID_BYTES_MAX}", id.len()),
        ));
    }
    Ok(())
}

/// Returns the range of encoded parts that are neither MISSING nor NULL: the inclusive lower
/// bound, and the exclusive upper bound (`None` for no bound).
pub fn range_of_present_values(descending: bool) -> (Vec<u8>, Option<Vec<u8>>) {
    let first = NULL + 1;
    match descending {
        true => (Vec::new(), Some(vec![!NULL])),
        false => (vec![first], None),
    }
}

/// Returns the byte offset of the document's id in an entry. `descending` has the direction of
/// each key part.
pub fn id_offset(entry: &[u8], descending: &[bool]) -> Result<usize> {
    let mut at = 0;
    for &descending in descending {
        at += skip_part(&entry[at..], descending)?;
    }
    Ok(at)
}

/// Decodes one part and removes it from the front of `bytes`.
pub fn decode_part(bytes: &mut &[u8], descending: bool) -> Result<Value> {
    let mut reader = Reader::new(bytes, descending);
    let value = decode(&mut reader, 0)?;
    *bytes = reader.rest();
    Ok(value)
}

/// Returns the length in bytes of the first part of `bytes`, without decoding it.
#[inline]
pub fn skip_part(bytes: &[u8], descending: bool) -> Result<usize> {
    if let Some((_, length)) = number::leading_int(bytes, descending) {
        return Ok(length);
    }
    let mut reader = Reader::new(bytes, descending);
    skip(&mut reader, 0)?;
    Ok(reader.at)
}

/// Returns the smallest byte string that is greater than all strings with this prefix. Returns
/// `None` if there is none, as for the empty prefix.
pub fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut out = prefix[..=last].to_vec();
    out[last] += 1;
    Some(out)
}

fn encode(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Missing => out.push(MISSING),
        Value::Null => out.push(NULL),
        Value::Bool(false) => out.push(FALSE),
        Value::Bool(true) => out.push(TRUE),
        Value::Number(n) => number::encode(*n, out),
        Value::String(text) => {
            out.push(STRING);
            encode_string(text, out);
        }
        Value::Array(items) => {
            out.push(ARRAY);
            for item in items {
                encode(item, out);
            }
            out.push(END);
        }
        Value::Object(object) => {
            out.push(OBJECT);
            out.extend_from_slice(&(object.len() as u32).to_be_bytes());
            for (name, value) in object.iter() {
                encode_string(name, out);
                encode(value, out);
            }
        }
    }
}

fn encode_string(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|&byte| byte <= ESCAPE) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(&[ESCAPE, rest[at] + 1]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(END);
}

pub(super) fn decode(reader: &mut Reader<'_>, depth: usize) -> Result<Value> {
    match reader.byte()? {
        MISSING => Ok(Value::Missing),
        NULL => Ok(Value::Null),
        FALSE => Ok(Value::Bool(false)),
        TRUE => Ok(Value::Bool(true)),
        tag @ NUMBER_FIRST..=NUMBER_LAST => number::decode(tag, reader).map(Value::Number),
        STRING => reader.owned_string().map(Value::String),
        ARRAY => {
            check_depth(depth)?;
            let mut items = Vec::new();
            while reader.peek() != Some(END) {
                items.push(decode(reader, depth + 1)?);
            }
            reader.advance(1)?;
            Ok(Value::Array(items))
        }
        OBJECT => {
            check_depth(depth)?;
            let count = reader.big_endian(4)?;
            // No memory is allocated by this count, since it may be corrupt.
            let mut fields = Vec::new();
            for _ in 0..count {
                let name = reader.owned_string()?;
                fields.push((name, decode(reader, depth + 1)?));
            }
            Ok(Value::Object(Object::new(fields)))
        }
        tag => Err(corrupt(&format!("{tag:#04x} is no tag"))),
    }
}

fn skip(reader: &mut Reader<'_>, depth: usize) -> Result<()> {
    match reader.byte()? {
        MISSING | NULL | FALSE | TRUE => Ok(()),
        tag @ NUMBER_FIRST..=NUMBER_LAST => number::skip(tag, reader),
        STRING => reader.until_end().map(|_| ()),
        ARRAY => {
            check_depth(depth)?;
            while reader.peek() != Some(END) {
                skip(reader, depth + 1)?;
            }
            reader.advance(1)
        }
        OBJECT => {
            check_depth(depth)?;
            for _ in 0..reader.big_endian(4)? {
                reader.until_end()?;
                skip(reader, depth + 1)?;
            }
            Ok(())
        }
        tag => Err(corrupt(&format!("{tag:#04x} is no tag"))),
    }
}

/// Checks the depth of a recursion. Documents are limited to this depth. So a deeper key is
/// corrupt, and would overflow the stack.
fn check_depth(depth: usize) -> Result<()> {
    if depth == MAX_DEPTH { Err(corrupt("it nests too deep")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(value: &Value, descending: bool) -> Vec<u8> {
        let mut out = Vec::new();
        encode_part(value, descending, &mut out);
        out
    }

    #[test]
    fn small_values_take_few_bytes() {
        assert_eq!(part(&Value::int(0), false), [0x2a]);
        assert_eq!(part(&Value::int(200), false), [0x2c, 200, 0]);
        assert_eq!(part(&Value::int(-200), false), [0x28, !200, 0xff]);
        assert_eq!(part(&Value::from("a\0\u{1}"), false), [0x40, b'a', 1, 1, 1, 2, 0]);
    }

    #[test]
    fn an_entry_ends_with_its_id() {
        let parts = [Value::from("DE"), Value::int(7)];
        let mut entry = Vec::new();
        encode_entry(&parts, &[false, true], "doc-1", &mut entry).expect("within limits");
        let at = id_offset(&entry, &[false, true]).expect("well formed");
        assert_eq!(&entry[at..], b"doc-1");
    }

    #[test]
    fn keys_and_ids_over_the_limit_are_refused_and_named() {
        let mut out = vec![7];
        let long = Value::String("x".repeat(KEY_BYTES_MAX));
        let error = encode_entry([&long], &[], "doc-1", &mut out).expect_err("too long");
        assert_eq!((error.code, out.as_slice()), (ErrorCode::OverLimit, &[7][..]));
        assert!(error.message.contains("doc-1"), "{error}");
        assert!(check_id(&"i".repeat(ID_BYTES_MAX)).is_ok());
        assert_eq!(
            check_id(&"i".repeat(ID_BYTES_MAX + 1)).map_err(|e| e.code),
            Err(ErrorCode::OverLimit)
        );
        assert!(check_id("").is_err());
    }

    #[test]
    fn the_successor_bounds_all_continuations() {
        assert_eq!(successor(b"ab").as_deref(), Some(&b"ac"[..]));
        assert_eq!(successor(&[1, 0xff, 0xff]).as_deref(), Some(&[2][..]));
        assert_eq!(successor(&[0xff]), None);
        assert_eq!(successor(&[]), None);
    }
}
