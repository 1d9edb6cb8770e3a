//! Rows as lines of text in the format of COPY: tabs separate the values, `\N` stands for NULL,
//! and special characters are escaped.

use proto::Result;
use proto::expr::ColumnType;

/// Appends a line. `cell` gets the number and the type of a value, appends its text and returns
/// true, or returns false for NULL. After an error the line is incomplete.
pub(crate) fn write(
    out: &mut Vec<u8>,
    types: impl Iterator<Item = ColumnType>,
    mut cell: impl FnMut(usize, ColumnType, &mut Vec<u8>) -> Result<bool>,
) -> Result<()> {
    for (n, column_type) in types.enumerate() {
        if n > 0 {
            out.push(b'\t');
        }
        let at = out.len();
        if !cell(n, column_type, out)? {
            out.extend_from_slice(b"\\N");
        // Digits need no escapes.
        } else if !matches!(column_type, ColumnType::Int4 | ColumnType::Int8)
            && may_need_escapes(&out[at..])
        {
            escape_nul(column_type, out, at);
            escape(out, at);
        }
    }
    out.push(b'\n');
    Ok(())
}

/// Returns true if a text contains a backslash or a control character. Reads eight bytes at a
/// time, because most texts contain neither.
#[inline]
fn may_need_escapes(text: &[u8]) -> bool {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let (words, rest) = text.as_chunks::<8>();
    let is_special = |word: u64| {
        let slash = word ^ (ONES * u64::from(b'\\'));
        let is_slash = slash.wrapping_sub(ONES) & !slash;
        let is_control = word.wrapping_sub(ONES * 0x20) & !word;
        (is_slash | is_control) & (ONES * 0x80) != 0
    };
    words.iter().any(|word| is_special(u64::from_le_bytes(*word)))
        || rest.iter().any(|byte| *byte == b'\\' || *byte < 0x20)
}

/// Replaces NUL characters of a text, from offset `at` on, by JSON's escape. Texts of PostgreSQL
/// cannot contain NUL; clients truncate or refuse such a text.
pub(crate) fn escape_nul(column_type: ColumnType, out: &mut Vec<u8>, at: usize) {
    if column_type != ColumnType::Text || !out[at..].contains(&0) {
        return;
    }
    let tail = out.split_off(at);
    for byte in tail {
        match byte {
            0 => out.extend_from_slice(b"\\u0000"),
            other => out.push(other),
        }
    }
}

/// Applies COPY's escapes to the buffer from offset `at` on. Most values need no escapes and are
/// not copied.
fn escape(out: &mut Vec<u8>, at: usize) {
    let special = |byte: &u8| matches!(byte, b'\\' | 8..=13);
    let Some(first) = out[at..].iter().position(special) else { return };
    let tail = out.split_off(at + first);
    for byte in tail {
        let letter = match byte {
            8 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            11 => b'v',
            12 => b'f',
            b'\r' => b'r',
            b'\\' => b'\\',
            other => {
                out.push(other);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_escapes_characters_that_would_break_a_line() {
        let mut out = b"\t\\".to_vec();
        out.extend_from_slice("ä\\\n\r\t\u{8}\u{b}\u{c}x".as_bytes());
        escape(&mut out, 2);
        assert_eq!(out, "\t\\ä\\\\\\n\\r\\t\\b\\v\\fx".as_bytes());
    }
}
