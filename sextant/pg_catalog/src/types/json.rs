//! JSON texts: parts of a text by their places, and the normal form of `jsonb`.
//!
//! Values of `json` and `jsonb` are texts. `json` is kept as it was written, so its parts are
//! pieces of the text; `jsonb` is normalized when it is read (one space after `,` and `:`, the last
//! of equal names, names by length and then bytes), so pieces of it are normalized too.

use std::fmt::Write;
use std::ops::Range;

use crate::error::{Error, Result};

/// The deepest nesting. Each level takes a stack frame.
const DEPTH_MAX: usize = 64;

/// The longest text that is parsed, in bytes: that of the longest document. The parts of a text take up to 40 times its
/// length.
const TEXT_BYTES_MAX: usize = proto::value::DOCUMENT_BYTES_MAX;

/// A part of a text, with the parts inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The bytes of the text.
    pub span: Range<usize>,
    /// The value.
    pub kind: Kind,
}

/// The values of JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    Null,
    Bool(bool),
    Number,
    String(String),
    Array(Vec<Part>),
    Object(Vec<(String, Part)>),
}

impl Part {
    /// Returns the piece of the text.
    pub fn of<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.span.clone()).unwrap_or_default()
    }

    /// Returns the value as text: a string without quotes, `None` for null.
    pub fn text(&self, text: &str) -> Option<String> {
        match &self.kind {
            Kind::Null => None,
            Kind::String(string) => Some(string.clone()),
            _ => Some(self.of(text).to_owned()),
        }
    }

    /// Returns the name of the value's type, as `json_typeof` gives it.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Null => "null",
            Kind::Bool(_) => "boolean",
            Kind::Number => "number",
            Kind::String(_) => "string",
            Kind::Array(_) => "array",
            Kind::Object(_) => "object",
        }
    }

    /// Returns the value of a field; the last of equal names.
    pub fn field(&self, name: &str) -> Option<&Part> {
        match &self.kind {
            Kind::Object(fields) => {
                fields.iter().rev().find(|(field, _)| field == name).map(|(_, part)| part)
            }
            _ => None,
        }
    }

    /// Returns an element, counted from the end if negative.
    pub fn element(&self, at: i64) -> Option<&Part> {
        let Kind::Array(items) = &self.kind else { return None };
        let at = if at < 0 { at.checked_add(items.len() as i64)? } else { at };
        items.get(usize::try_from(at).ok()?)
    }

    /// Returns the value at the end of a path of names and subscripts.
    pub fn path(&self, steps: &[&str]) -> Option<&Part> {
        steps.iter().try_fold(self, |part, step| match &part.kind {
            Kind::Array(_) => part.element(step.trim().parse().ok()?),
            _ => part.field(step),
        })
    }

    /// Writes the value in the normal form of `jsonb`.
    pub fn normalize(&self, text: &str, out: &mut String) {
        match &self.kind {
            Kind::Array(items) => {
                out.push('[');
                for (n, item) in items.iter().enumerate() {
                    out.push_str(if n > 0 { ", " } else { "" });
                    item.normalize(text, out);
                }
                out.push(']');
            }
            Kind::Object(fields) => {
                out.push('{');
                for (n, (name, part)) in sorted_fields(fields).into_iter().enumerate() {
                    out.push_str(if n > 0 { ", " } else { "" });
                    write_string(name, out);
                    out.push_str(": ");
                    part.normalize(text, out);
                }
                out.push('}');
            }
            Kind::String(string) => write_string(string, out),
            Kind::Number => out.push_str(&plain_number(self.of(text))),
            Kind::Null | Kind::Bool(_) => out.push_str(self.of(text)),
        }
    }
}

/// Returns the fields in the order of `jsonb`: by the length of the name, then its bytes; the last of equal names.
pub fn sorted_fields(fields: &[(String, Part)]) -> Vec<(&str, &Part)> {
    let mut sorted: Vec<(&str, &Part)> = Vec::new();
    for (name, part) in fields.iter().rev() {
        sorted.push((name, part));
    }
    sorted.sort_by(|a, b| (a.0.len(), a.0).cmp(&(b.0.len(), b.0)));
    sorted.dedup_by(|a, b| a.0 == b.0);
    sorted
}

/// Returns a number without exponent if it is short, as `numeric` prints it.
fn plain_number(text: &str) -> String {
    let Some((digits, exponent)) = text.split_once(['e', 'E']) else {
        return text
            .strip_prefix("-0")
            .filter(|rest| rest.is_empty())
            .map_or(text, |_| "0")
            .to_owned();
    };
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if exponent.abs() > 400 {
        return text.to_owned();
    }
    let all = format!("{whole}{fraction}");
    let point = whole.len() as i64 + exponent;
    let (whole, fraction) = if point <= 0 {
        ("0".to_owned(), "0".repeat(point.unsigned_abs() as usize) + &all)
    } else if point as usize >= all.len() {
        (all.clone() + &"0".repeat(point as usize - all.len()), String::new())
    } else {
        (all[..point as usize].to_owned(), all[point as usize..].to_owned())
    };
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    match fraction.is_empty() {
        true => format!("{sign}{whole}"),
        false => format!("{sign}{whole}.{fraction}"),
    }
}

/// Writes a string of JSON with its quotes.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => {
                let _infallible = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Parses a text of JSON. An error if it is none (22P02), or too long (54000).
pub fn parse(text: &str) -> Result<Part> {
    if text.len() > TEXT_BYTES_MAX {
        let what = format!("JSON in the catalogue has at most {TEXT_BYTES_MAX} bytes");
        return Err(Error::new("54000", what).with_hint("read fewer rows"));
    }
    let mut reader = Reader { text, at: 0, depth: 0 };
    let part = reader.value()?;
    reader.skip_spaces();
    if reader.at < text.len() { Err(reader.error()) } else { Ok(part) }
}

/// Returns the normal form of `jsonb`.
pub fn normalized(text: &str) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    parse(text)?.normalize(text, &mut out);
    Ok(out)
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn error(&self) -> Error {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let rest: String = rest.chars().take(20).collect();
        Error::new("22P02", "invalid input syntax for type json")
            .with_hint(format!("the text is no JSON from \"{rest}\" on"))
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// Reads a byte after spaces, if it is next.
    fn take(&mut self, byte: u8) -> bool {
        self.skip_spaces();
        let is_next = self.byte() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self) -> Result<Part> {
        self.skip_spaces();
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Error::new(
                "54001",
                format!("JSON is nested at most {DEPTH_MAX} levels deep"),
            ));
        }
        let from = self.at;
        let kind = match self.byte() {
            Some(b'{') => self.object()?,
            Some(b'[') => self.array()?,
            Some(b'"') => Kind::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        self.depth -= 1;
        Ok(Part { span: from..self.at, kind })
    }

    fn word(&mut self) -> Result<Kind> {
        for (word, kind) in
            [("null", Kind::Null), ("true", Kind::Bool(true)), ("false", Kind::Bool(false))]
        {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(kind);
            }
        }
        Err(self.error())
    }

    fn number(&mut self) -> Result<Kind> {
        let is_part = |c: char| matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E');
        let rest = &self.text[self.at..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        if !proto::value::is_number(&rest[..end]) {
            return Err(self.error());
        }
        self.at += end;
        Ok(Kind::Number)
    }

    fn array(&mut self) -> Result<Kind> {
        self.at += 1;
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(Kind::Array(items));
        }
        loop {
            items.push(self.value()?);
            if self.take(b']') {
                return Ok(Kind::Array(items));
            }
            if !self.take(b',') {
                return Err(self.error());
            }
        }
    }

    fn object(&mut self) -> Result<Kind> {
        self.at += 1;
        let mut fields = Vec::new();
        if self.take(b'}') {
            return Ok(Kind::Object(fields));
        }
        loop {
            self.skip_spaces();
            if self.byte() != Some(b'"') {
                return Err(self.error());
            }
            let name = self.string()?;
            if !self.take(b':') {
                return Err(self.error());
            }
            fields.push((name, self.value()?));
            if self.take(b'}') {
                return Ok(Kind::Object(fields));
            }
            if !self.take(b',') {
                return Err(self.error());
            }
        }
    }

    fn string(&mut self) -> Result<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let Some(c) = self.text[self.at..].chars().next() else { return Err(self.error()) };
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(out),
                '\\' => out.push(self.escape()?),
                c if c < ' ' => return Err(self.error()),
                c => out.push(c),
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        let byte = self.byte().ok_or_else(|| self.error())?;
        self.at += 1;
        Ok(match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.code_unit()?;
                let is_pair =
                    (0xD800..0xDC00).contains(&first) && self.text[self.at..].starts_with("\\u");
                let units = if is_pair {
                    self.at += 2;
                    vec![first, self.code_unit()?]
                } else {
                    vec![first]
                };
                match char::decode_utf16(units).next() {
                    Some(Ok(c)) if c != '\0' => c,
                    _ => return Err(self.error()),
                }
            }
            _ => return Err(self.error()),
        })
    }

    fn code_unit(&mut self) -> Result<u16> {
        let digits = self.text.get(self.at..self.at + 4);
        let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        self.at += 4;
        unit.ok_or_else(|| Error::new("22P02", "invalid input syntax for type json"))
    }
}
