//! The JSON parser: a recursive descent over UTF-8 text with limited depth.

use crate::value::number::Number;
use crate::value::spelling;
use crate::value::tree::{MAX_DEPTH, Object, Value};
use crate::{Error, ErrorCode, Result};

impl Value {
    /// Parses one JSON document. Returns `InvalidText` with line and column for invalid JSON, and
    /// `OverLimit` for nesting deeper than [`MAX_DEPTH`].
    pub fn parse_json(bytes: &[u8]) -> Result<Self> {
        parse(bytes)
    }
}

/// Parses one document. Returns an error if anything but white space follows the document.
fn parse(bytes: &[u8]) -> Result<Value> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        invalid(&valid, valid.len(), "bytes that are not UTF-8")
    })?;
    let mut parser = Parser { text, bytes: text.as_bytes(), at: 0 };
    let value = parser.value(0)?;
    parser.skip_space();
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.expected("the end of the document")),
    }
}

fn invalid(text: &str, at: usize, what: &str) -> Error {
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    Error::new(
        ErrorCode::InvalidText,
        format!("invalid JSON at line {line} column {column}: {what}"),
    )
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Consumes the next byte if it equals `byte`. Returns true if it was consumed.
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn fail(&self, what: &str) -> Error {
        invalid(self.text, self.at, what)
    }

    fn expected(&self, what: &str) -> Error {
        match self.text[self.at..].chars().next() {
            Some(found) => self.fail(&format!("expected {what}, found {found:?}")),
            None => self.fail(&format!("expected {what}, found the end")),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value> {
        self.skip_space();
        match self.peek() {
            Some(b'"') => Ok(Value::String(self.string()?)),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            _ => Err(self.expected("a value")),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value> {
        if self.bytes[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(value)
        } else {
            Err(self.expected("a value"))
        }
    }

    fn enter(&mut self, depth: usize) -> Result<()> {
        if depth == MAX_DEPTH {
            let mut error = self.fail(&format!("arrays and objects nest deeper than {MAX_DEPTH}"));
            error.code = ErrorCode::OverLimit;
            return Err(error);
        }
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Result<Value> {
        self.enter(depth)?;
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Value::Array(items));
            }
            if !self.take(b',') {
                return Err(self.expected("',' or ']'"));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value> {
        self.enter(depth)?;
        let mut fields = Vec::new();
        if self.take(b'}') {
            return Ok(Value::Object(Object::default()));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.expected("a field name in double quotes"));
            }
            let name = self.string()?;
            self.skip_space();
            if !self.take(b':') {
                return Err(self.expected("':'"));
            }
            fields.push((name, self.value(depth + 1)?));
            self.skip_space();
            if self.take(b'}') {
                return Ok(Value::Object(Object::new(fields)));
            }
            if !self.take(b',') {
                return Err(self.expected("',' or '}'"));
            }
        }
    }

    fn string(&mut self) -> Result<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let start = self.at;
            while self.peek().is_some_and(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
                self.at += 1;
            }
            // A run ends at an ASCII byte, so it never splits a character.
            out.push_str(&self.text[start..self.at]);
            if self.take(b'"') {
                return Ok(out);
            }
            if !self.take(b'\\') {
                return Err(self.expected("a character of a string or its closing '\"'"));
            }
            out.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Result<char> {
        let escaped = match self.peek() {
            Some(same @ (b'"' | b'\\' | b'/')) => char::from(same),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.expected("one of the escapes \" \\ / b f n r t u")),
        };
        self.at += 1;
        Ok(escaped)
    }

    /// Parses `u` and four hexadecimal digits. If they are the first half of a surrogate pair,
    /// also parses a second escape.
    fn unicode_escape(&mut self) -> Result<char> {
        let first = self.unit()?;
        let code = if (0xD800..0xDC00).contains(&first) && self.take(b'\\') {
            let second = if self.peek() == Some(b'u') { self.unit()? } else { 0 };
            if (0xDC00..0xE000).contains(&second) {
                0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
            } else {
                first
            }
        } else {
            first
        };
        char::from_u32(code).ok_or_else(|| self.fail("half of a surrogate pair"))
    }

    fn unit(&mut self) -> Result<u32> {
        self.at += 1;
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            unit = unit * 16 + digit.ok_or_else(|| self.expected("four hexadecimal digits"))?;
            self.at += 1;
        }
        Ok(unit)
    }

    fn number(&mut self) -> Result<Value> {
        let start = self.at;
        while let Some(b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E') = self.peek() {
            self.at += 1;
        }
        let text = &self.text[start..self.at];
        match Number::parse(text) {
            Some(number) => Ok(Value::Number(number)),
            None => {
                self.at = start;
                let shown: String = text.chars().take(40).collect();
                Err(self.fail(&if spelling::is_number(text) {
                    format!("the number {shown} is beyond the range of doubles")
                } else {
                    format!("{shown} is not a number")
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &[u8]) -> Error {
        parse(text).expect_err("bad JSON is refused")
    }

    #[test]
    fn errors_say_where_and_what() {
        let error = refused("{\"a\": 1,\n \"é\" 2}".as_bytes());
        assert_eq!(error.code, ErrorCode::InvalidText);
        assert_eq!(error.message, "invalid JSON at line 2 column 6: expected ':', found '2'");
        assert!(refused(b"").message.ends_with("expected a value, found the end"));
        assert!(refused(b"\"\xff\"").message.contains("column 2: bytes that are not UTF-8"));
        assert!(refused(b"1e999").message.contains("beyond the range of doubles"));
    }

    #[test]
    fn invalid_json_is_refused() {
        for bad in [
            "01",
            "+1",
            "1.",
            ".5",
            "1e",
            "1e+",
            "--1",
            "1-1",
            "-",
            "tru",
            "nul",
            "[1,]",
            "{\"a\":1,}",
            "[1 2]",
            "{a:1}",
            "\"a\nb\"",
            "\"\\x\"",
            "\"\\ud800\"",
            "\"\\ud800\\u0041\"",
            "1 2",
            "\"\\u12\"",
            "[",
            "{",
            "\"",
            "NaN",
            "\u{feff}1",
        ] {
            assert_eq!(refused(bad.as_bytes()).code, ErrorCode::InvalidText, "{bad}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert_eq!(refused(nested(MAX_DEPTH + 1).as_bytes()).code, ErrorCode::OverLimit);
        assert_eq!(refused("[".repeat(1 << 20).as_bytes()).code, ErrorCode::OverLimit);
    }
}
