//! The JSON writer, which writes each value in its canonical form.

use std::borrow::Cow;
use std::fmt::{self, Write};

use crate::value::tree::Value;

impl Value {
    /// Returns the value as compact JSON, with MISSING as `null`.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        write(self, &mut out);
        out
    }

    /// Appends the value as compact JSON.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        write(self, &mut Utf8(out));
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

/// Returns a value as SQL text: a string without quotes, any other value as JSON; `None` (SQL's
/// NULL) for NULL and MISSING.
pub fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Missing | Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        other => Some(Cow::Owned(other.to_json())),
    }
}

/// A writer that appends text to a vector of bytes.
struct Utf8<'a>(&'a mut Vec<u8>);

impl Write for Utf8<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// Appends a value as compact JSON to a writer that cannot fail (a string or [`Utf8`]).
fn write(value: &Value, out: &mut impl Write) {
    let _infallible = write_value(value, out);
}

fn write_value(value: &Value, out: &mut impl Write) -> fmt::Result {
    match value {
        Value::Missing | Value::Null => out.write_str("null"),
        Value::Bool(true) => out.write_str("true"),
        Value::Bool(false) => out.write_str("false"),
        Value::Number(number) => write!(out, "{number}"),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.write_char('[')?;
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.write_char(',')?;
                }
                write_value(item, out)?;
            }
            out.write_char(']')
        }
        Value::Object(object) => {
            out.write_char('{')?;
            for (n, (name, value)) in object.iter().enumerate() {
                if n > 0 {
                    out.write_char(',')?;
                }
                write_string(name, out)?;
                out.write_char(':')?;
                write_value(value, out)?;
            }
            out.write_char('}')
        }
    }
}

/// Appends text as a JSON string.
pub fn write_json_text(text: &str, out: &mut Vec<u8>) {
    let _infallible = write_string(text, &mut Utf8(out));
}

fn write_string(text: &str, out: &mut impl Write) -> fmt::Result {
    out.write_char('"')?;
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.write_str(&text[from..at])?;
        from = at + 1;
        match byte {
            b'"' => out.write_str("\\\"")?,
            b'\\' => out.write_str("\\\\")?,
            b'\n' => out.write_str("\\n")?,
            b'\r' => out.write_str("\\r")?,
            b'\t' => out.write_str("\\t")?,
            control => write!(out, "\\u{control:04x}")?,
        }
    }
    out.write_str(&text[from..])?;
    out.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Value {
        Value::parse_json(text.as_bytes()).expect(text)
    }

    #[test]
    fn strings_are_written_and_read_back_unchanged() {
        let value = Value::parse_json(r#""\u0041\ud83d\ude00\/\"\\\b\f\n\r\t\u0000é""#.as_bytes())
            .expect("valid");
        assert_eq!(value, Value::from("A😀/\"\\\u{8}\u{c}\n\r\t\0é"));
        assert_eq!(value.to_json(), r#""A😀/\"\\\u0008\u000c\n\r\t\u0000é""#);
        assert_eq!(Value::parse_json(value.to_json().as_bytes()).expect("own output"), value);
    }

    #[test]
    fn text_is_bare_for_strings_and_json_for_the_rest() {
        assert_eq!(text(&json("\"a\\nb\"")).as_deref(), Some("a\nb"));
        assert_eq!(text(&json("[1, \"a\"]")).as_deref(), Some("[1,\"a\"]"));
        assert_eq!(text(&json("1.50")).as_deref(), Some("1.5"));
        assert_eq!(text(&Value::Null), None);
        assert_eq!(text(&Value::Missing), None);
    }
}
