//! A scanner that checks JSON text without building a value: one document in about a tenth of a
//! microsecond.
//!
//! The scanner accepts only what the parser accepts. At anything rare or costly it gives up: an
//! escaped surrogate, a number with an exponent, a field name with an escape, any error. The
//! parser then decides. So the grammar, its limits and its errors are those of `parse.rs`, and a
//! refused document is parsed once more to find the line and the column of the error.

use std::ops::Range;

use crate::Result;
use crate::value::tree::{MAX_DEPTH, Object, Value};

/// The length in characters up to which a number without exponent is certainly in the range of
/// doubles.
const NUMBER_BYTES_MAX: usize = 300;
/// The number of digits that certainly fit 64 bits.
const INT_DIGITS_MAX: usize = 18;

const ONES: u64 = u64::from_le_bytes([1; 8]);
const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);

/// Checks that bytes are one JSON document. Returns the same errors as [`Value::parse_json`].
pub fn check_json(bytes: &[u8]) -> Result<()> {
    match scan::<&str>(bytes, &[], &mut []) {
        Some(_) => Ok(()),
        None => Value::parse_json(bytes).map(|_| ()),
    }
}

/// The value of a requested field in a checked document.
#[derive(Debug, PartialEq)]
pub enum CheckedField<'a> {
    /// A string without escapes.
    Text(&'a str),
    /// Any other value; `None` if the field is missing.
    Value(Option<Value>),
    /// There are no fields: the document is not an object.
    NoObject,
}

/// Checks that bytes are one JSON document, and returns the value of one of its fields. If
/// several fields have the name, returns the last one.
pub fn check_json_with_field<'a>(bytes: &'a [u8], field: &str) -> Result<CheckedField<'a>> {
    let mut found = [None];
    if let Some(text) = scan(bytes, &[field], &mut found)
        && let [Some(found)] = found
    {
        let value = &text[found];
        return match value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some(inner) if !inner.contains('\\') => Ok(CheckedField::Text(inner)),
            _ => Value::parse_json(value.as_bytes()).map(|value| CheckedField::Value(Some(value))),
        };
    }
    Ok(match Value::parse_json(bytes)? {
        Value::Object(object) => CheckedField::Value(object.get(field).cloned()),
        _ => CheckedField::NoObject,
    })
}

impl Value {
    /// Parses only the fields of a JSON document with these names, and checks the other text. If
    /// the document is an object, the result has only these fields; otherwise the result is the
    /// complete document. Returns the same errors as [`Self::parse_json`].
    pub fn parse_json_fields(bytes: &[u8], names: &[String]) -> Result<Self> {
        let mut found = vec![None; names.len()];
        let Some(text) = scan(bytes, names, &mut found) else { return Self::parse_json(bytes) };
        if !text.trim_start().starts_with('{') {
            return Self::parse_json(bytes);
        }
        let mut fields = Vec::with_capacity(names.len());
        for (name, place) in names.iter().zip(found) {
            if let Some(place) = place {
                let value = &text[place];
                let plain = plain_value(value).map(Ok);
                let value = plain.unwrap_or_else(|| Self::parse_json(value.as_bytes()))?;
                fields.push((name.clone(), value));
            }
        }
        Ok(Self::Object(Object::new(fields)))
    }
}

/// Returns the value of a checked text in the two most frequent cases: a non-negative whole
/// number, and a string without escapes. Otherwise returns `None`.
fn plain_value(text: &str) -> Option<Value> {
    match text.as_bytes() {
        [b'"', inner @ .., b'"'] if !inner.contains(&b'\\') => {
            text.get(1..text.len() - 1).map(Value::from)
        }
        digits if digits.len() <= INT_DIGITS_MAX && digits.iter().all(u8::is_ascii_digit) => {
            Some(Value::int(digits.iter().fold(0, |int, digit| 10 * int + i64::from(digit - b'0'))))
        }
        _ => None,
    }
}

/// Checks a document, and finds the values of the requested fields. If several fields have the
/// same name, the last one counts. Returns the document as text; `None` if the parser must check
/// the document instead.
fn scan<'a, N: AsRef<str>>(
    bytes: &'a [u8],
    wanted: &[N],
    found: &mut [Option<Range<usize>>],
) -> Option<&'a str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut scanner = Scanner { bytes, at: 0, wanted, found };
    scanner.value(0)?;
    scanner.skip_space();
    (scanner.at == bytes.len()).then_some(text)
}

struct Scanner<'a, N> {
    bytes: &'a [u8],
    at: usize,
    /// The names of the requested fields.
    wanted: &'a [N],
    /// The range of each requested field's value in the text; `None` if not found yet.
    found: &'a mut [Option<Range<usize>>],
}

impl<N: AsRef<str>> Scanner<'_, N> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        self.skip_space();
        match self.peek()? {
            b'"' => self.string(),
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => None,
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.bytes[self.at..].starts_with(word).then(|| self.at += word.len())
    }

    fn enter(&mut self, depth: usize) -> Option<()> {
        if depth == MAX_DEPTH {
            return None;
        }
        self.at += 1;
        self.skip_space();
        Some(())
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        self.enter(depth)?;
        if self.take(b']') {
            return Some(());
        }
        loop {
            self.value(depth + 1)?;
            self.skip_space();
            if self.take(b']') {
                return Some(());
            }
            if !self.take(b',') {
                return None;
            }
        }
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        self.enter(depth)?;
        if self.take(b'}') {
            return Some(());
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return None;
            }
            let wanted = self.name(depth)?;
            self.skip_space();
            if !self.take(b':') {
                return None;
            }
            self.skip_space();
            let begin = self.at;
            self.value(depth + 1)?;
            if let Some(wanted) = wanted {
                self.found[wanted] = Some(begin..self.at);
            }
            self.skip_space();
            if self.take(b'}') {
                return Some(());
            }
            if !self.take(b',') {
                return None;
            }
        }
    }

    /// Skips the name of a field, and returns its index in `wanted`; `Some(None)` if it is not
    /// requested. Returns `None` if the parser must check the document.
    fn name(&mut self, depth: usize) -> Option<Option<usize>> {
        let begin = self.at + 1;
        self.string()?;
        if depth > 0 || self.wanted.is_empty() {
            return Some(None);
        }
        let name = &self.bytes[begin..self.at - 1];
        // An escape may spell a requested name.
        let is_plain = !name.contains(&b'\\');
        is_plain.then(|| self.wanted.iter().position(|wanted| wanted.as_ref().as_bytes() == name))
    }

    fn string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            self.skip_plain();
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.escape()?,
                0x20.. => self.at += 1,
                _ => return None,
            }
        }
    }

    /// Skips eight bytes at a time while none of them is a quote, a backslash or a control
    /// character. Stops at the first such character, or if fewer than eight bytes remain.
    fn skip_plain(&mut self) {
        let rest = &self.bytes[self.at..];
        for word in rest.as_chunks::<8>().0 {
            let word = u64::from_le_bytes(*word);
            let (quote, slash) =
                (word ^ (ONES * u64::from(b'"')), word ^ (ONES * u64::from(b'\\')));
            // The lowest set bit is right; a borrow changes only higher bytes.
            let special = (quote.wrapping_sub(ONES) & !quote)
                | (slash.wrapping_sub(ONES) & !slash)
                | (word.wrapping_sub(ONES * 0x20) & !word);
            let special = special & HIGHS;
            if special != 0 {
                self.at += (special.trailing_zeros() / 8) as usize;
                return;
            }
            self.at += 8;
        }
    }

    fn escape(&mut self) -> Option<()> {
        let escaped = *self.bytes.get(self.at + 1)?;
        self.at += 2;
        match escaped {
            b'"' | b'/' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let digits = self.bytes.get(self.at..self.at + 4)?;
                // 0xD800 and beyond are surrogates, or rare.
                let is_low = matches!(digits[0], b'0'..=b'9' | b'a'..=b'c' | b'A'..=b'C');
                self.at += 4;
                (is_low && digits.iter().all(u8::is_ascii_hexdigit)).then_some(())
            }
            _ => None,
        }
    }

    fn number(&mut self) -> Option<()> {
        let begin = self.at;
        self.take(b'-');
        let leads_with_zero = self.peek() == Some(b'0');
        let whole = self.digits()?;
        if leads_with_zero && whole > 1 {
            return None;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        let is_plain = !matches!(self.peek(), Some(b'e' | b'E' | b'+' | b'-' | b'.'));
        (is_plain && self.at - begin <= NUMBER_BYTES_MAX).then_some(())
    }

    /// Skips one or more digits and returns their number; `None` if there is no digit.
    fn digits(&mut self) -> Option<usize> {
        let begin = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > begin).then(|| self.at - begin)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn field(text: &str, name: &str) -> CheckedField<'static> {
        match check_json_with_field(text.as_bytes(), name).expect(text) {
            CheckedField::Text(text) => CheckedField::Value(Some(Value::from(text))),
            CheckedField::Value(value) => CheckedField::Value(value),
            CheckedField::NoObject => CheckedField::NoObject,
        }
    }

    /// Returns the value of a field of a document, from the parser.
    fn parsed(text: &str, name: &str) -> CheckedField<'static> {
        match Value::parse_json(text.as_bytes()).expect(text) {
            Value::Object(object) => CheckedField::Value(object.get(name).cloned()),
            _ => CheckedField::NoObject,
        }
    }

    #[test]
    fn ordinary_documents_pass_without_the_parser() {
        let deep = format!("{}1{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        for text in [
            r#"{"id":"k1","n":-12.50,"tags":["a","é\n\u00e9\"\\"],"e":{},"f":[ ],"g":null}"#,
            " [true , false\t,\r\n 0, -0, 9007199254740993 ] ",
            r#""0123456789abcdef\t0123456789""#,
            &deep,
        ] {
            assert!(scan::<&str>(text.as_bytes(), &[], &mut []).is_some(), "{text}");
            assert!(Value::parse_json(text.as_bytes()).is_ok(), "{text}");
        }
    }

    #[test]
    fn the_value_of_a_field_is_that_of_the_parser() {
        for text in [
            r#"{"id":"k","n":1}"#,
            r#"{"id":"first","id":"last"}"#,
            r#"{"id":"first","\u0069d":"last"}"#,
            r#"{"\u0069d":"first","id":"last"}"#,
            r#"{"a":{"id":"inner"},"b":["id"]}"#,
            r#"{"id":"a\u0062\n"}"#,
            r#"{"id" : 12.0e0 , "x":1}"#,
            r#"{"id":{"id":1}}"#,
            r#"{"n":"id"}"#,
            r#"["id"]"#,
            r#""id""#,
            "{}",
        ] {
            assert_eq!(field(text, "id"), parsed(text, "id"), "{text}");
        }
    }

    #[test]
    fn errors_are_those_of_the_parser() {
        let error = check_json("{\"a\": 1,\n \"é\" 2}".as_bytes()).expect_err("no colon");
        assert_eq!(error.message, "invalid JSON at line 2 column 6: expected ':', found '2'");
        let error = check_json_with_field(b"{\"id\":1e999}", "id").expect_err("too large");
        assert!(error.message.contains("line 1 column 7"), "{error}");
    }

    /// Generates texts that are nearly JSON: pieces of JSON in random order, with random bytes
    /// changed.
    fn nearly_json() -> impl Strategy<Value = Vec<u8>> {
        let pieces = [
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            "\"",
            "\\",
            "\"id\"",
            "\"a\\\"b\"",
            "\"\\u00e9\"",
            "\"\\ud83d\\ude00\"",
            "\"\\udc00\"",
            "1",
            "-",
            "0",
            "01",
            "1.5",
            "1.",
            "2e3",
            "1e999",
            "true",
            "nul",
            "null",
            " ",
            "\n",
            "é",
            "\u{1}",
            "\"0123456789abcdef\"",
            "{\"id\":",
            "\"k\"}",
            ",\"n\":1",
            "[1,2]",
        ];
        let one = prop::sample::select(pieces.to_vec());
        let text =
            prop::collection::vec(one, 0..12).prop_map(|pieces| pieces.concat().into_bytes());
        (text, prop::option::weighted(0.2, (any::<prop::sample::Index>(), any::<u8>()))).prop_map(
            |(mut text, change)| {
                if let Some((at, byte)) = change
                    && !text.is_empty()
                {
                    let at = at.index(text.len());
                    text[at] = byte;
                }
                text
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn nothing_passes_that_the_parser_refuses(text in nearly_json()) {
            if scan(&text, &["id"], &mut [None]).is_some() {
                prop_assert!(Value::parse_json(&text).is_ok(), "{:?}", String::from_utf8_lossy(&text));
            }
            prop_assert_eq!(check_json(&text), Value::parse_json(&text).map(|_| ()));
            let names = ["id".to_owned(), "n".to_owned()];
            let few = Value::parse_json(&text).map(|whole| match whole {
                Value::Object(object) => {
                    let own = |name: &String| Some((name.clone(), object.get(name)?.clone()));
                    Value::Object(Object::new(names.iter().filter_map(own).collect()))
                }
                other => other,
            });
            let parsed_few = Value::parse_json_fields(&text, &names).map(|value| match value {
                // The parser may have decided, and then all fields are there.
                Value::Object(object) => {
                    let own = |name: &String| Some((name.clone(), object.get(name)?.clone()));
                    Value::Object(Object::new(names.iter().filter_map(own).collect()))
                }
                other => other,
            });
            prop_assert_eq!(parsed_few, few);
            if let (Ok(text), Ok(_)) = (std::str::from_utf8(&text), Value::parse_json(&text)) {
                prop_assert_eq!(field(text, "id"), parsed(text, "id"));
            }
        }
    }
}
