//! Arrays and rows as text, with PostgreSQL's quoting, and arrays from text.

use proto::value::Value;

use crate::data::data;
use crate::error::{Error, Result};
use crate::types::Type;
use crate::types::names::Names;
use crate::types::oid::{self, Oid};

/// The deepest nesting of arrays, as in PostgreSQL.
const DIMENSIONS_MAX: usize = 6;

/// Prints a value of a type; it is given by the caller, because the value may be an array again.
type Print = fn(&Value, &Type, &Names<'_>) -> Result<String>;

/// Returns an array as text: `{a,"b c",NULL}`.
pub(super) fn print_array(
    items: &[Value],
    element: Oid,
    names: &Names<'_>,
    print: Print,
) -> Result<String> {
    let delimiter = data().type_row(element).map_or(',', |row| row.delimiter);
    let ty = Type::Plain(element);
    let mut out = String::from("{");
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            out.push(delimiter);
        }
        match item {
            Value::Null | Value::Missing => out.push_str("NULL"),
            Value::Array(inner) if !is_composite(element) => {
                out.push_str(&print_array(inner, element, names, print)?);
            }
            item => {
                let text = print(item, &ty, names)?;
                if needs_quotes(&text, delimiter) {
                    push_quoted(&text, &mut out);
                } else {
                    out.push_str(&text);
                }
            }
        }
    }
    out.push('}');
    Ok(out)
}

/// Returns true for a type whose values are arrays and no dimensions.
fn is_composite(element: Oid) -> bool {
    matches!(element, oid::RECORD | oid::INT2VECTOR | oid::OIDVECTOR)
}

fn needs_quotes(text: &str, delimiter: char) -> bool {
    text.is_empty()
        || text.eq_ignore_ascii_case("null")
        || text.contains(|c: char| {
            matches!(c, '"' | '\\' | '{' | '}')
                || c == delimiter
                || c.is_ascii_whitespace()
                || c == '\u{b}'
        })
}

fn push_quoted(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
}

/// Returns a row as text: `(a,"b c",)`.
pub(super) fn print_row(
    fields: &[Value],
    ty: &Type,
    names: &Names<'_>,
    print: Print,
) -> Result<String> {
    let mut out = String::from("(");
    for (n, field) in fields.iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        if field.is_absent() {
            continue;
        }
        let ty = match ty {
            Type::Row(fields) => fields.get(n).map(|field| field.ty.clone()),
            Type::Plain(_) => None,
        };
        let text = print(field, &ty.unwrap_or(Type::Plain(oid::TEXT)), names)?;
        let is_quoted = text.is_empty()
            || text.contains(|c: char| {
                matches!(c, '"' | '\\' | '(' | ')' | ',' | '\u{b}') || c.is_ascii_whitespace()
            });
        if is_quoted {
            out.push('"');
            text.chars().for_each(|c| {
                if matches!(c, '"' | '\\') {
                    out.push(c);
                }
                out.push(c);
            });
            out.push('"');
        } else {
            out.push_str(&text);
        }
    }
    out.push(')');
    Ok(out)
}

/// Parses an array; the elements are parsed by a function. Bounds before the braces are skipped:
/// arrays begin at 1 here.
pub(super) fn parse_array(
    text: &str,
    delimiter: char,
    element: &mut dyn FnMut(&str) -> Result<Value>,
) -> Result<Value> {
    let malformed = || Error::new("22P02", format!("malformed array literal: \"{text}\""));
    let trimmed = text.trim();
    let body = match trimmed.strip_prefix('[') {
        Some(_) => trimmed.split_once('=').map(|(_, body)| body.trim()).ok_or_else(malformed)?,
        None => trimmed,
    };
    let mut reader = Reader { chars: body.chars().collect(), at: 0, delimiter, element };
    let value = reader.array(1)?;
    match value {
        Some(value) if reader.at == reader.chars.len() => Ok(value),
        _ => Err(malformed()),
    }
}

struct Reader<'e> {
    chars: Vec<char>,
    at: usize,
    delimiter: char,
    element: &'e mut dyn FnMut(&str) -> Result<Value>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while self.peek().is_some_and(|c| c.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Reads an array; `None` if the text is none.
    fn array(&mut self, depth: usize) -> Result<Option<Value>> {
        if depth > DIMENSIONS_MAX {
            return Err(Error::new(
                "54000",
                format!(
                    "number of array dimensions exceeds the maximum allowed ({DIMENSIONS_MAX})"
                ),
            ));
        }
        if self.peek() != Some('{') {
            return Ok(None);
        }
        self.at += 1;
        let mut items = Vec::new();
        self.skip_spaces();
        if self.peek() == Some('}') {
            self.at += 1;
            return Ok(Some(Value::Array(items)));
        }
        loop {
            self.skip_spaces();
            let item = match self.peek() {
                Some('{') => self.array(depth + 1)?,
                _ => self.item()?,
            };
            let Some(item) = item else { return Ok(None) };
            items.push(item);
            self.skip_spaces();
            match self.peek() {
                Some('}') => {
                    self.at += 1;
                    let length = |item: &Value| match item {
                        Value::Array(items) => Some(items.len()),
                        _ => None,
                    };
                    // All parts of a dimension have one length.
                    let is_even = depth == DIMENSIONS_MAX
                        || items.iter().all(|item| length(item) == length(&items[0]));
                    return Ok(is_even.then_some(Value::Array(items)));
                }
                Some(c) if c == self.delimiter => self.at += 1,
                _ => return Ok(None),
            }
        }
    }

    /// Reads a part in quotes; `None` if it does not end.
    fn quoted(&mut self, text: &mut String) -> Option<()> {
        self.at += 1;
        loop {
            let mut c = self.peek()?;
            self.at += 1;
            match c {
                '"' => return Some(()),
                '\\' => {
                    c = self.peek()?;
                    self.at += 1;
                    text.push(c);
                }
                c => text.push(c),
            }
        }
    }

    /// Reads an element; `None` if there is none.
    fn item(&mut self) -> Result<Option<Value>> {
        let mut text = String::new();
        let mut is_quoted = false;
        // Spaces at the end count only if they are quoted.
        let mut length = 0;
        while let Some(c) = self.peek() {
            match c {
                '"' => {
                    is_quoted = true;
                    if self.quoted(&mut text).is_none() {
                        return Ok(None);
                    }
                    length = text.len();
                    continue;
                }
                '\\' => {
                    self.at += 1;
                    let Some(next) = self.peek() else { return Ok(None) };
                    text.push(next);
                    length = text.len();
                }
                '}' => break,
                '{' => return Ok(None),
                c if c == self.delimiter => break,
                c => {
                    text.push(c);
                    if !c.is_ascii_whitespace() {
                        length = text.len();
                    }
                }
            }
            self.at += 1;
        }
        text.truncate(length);
        if !is_quoted && text.is_empty() {
            return Ok(None);
        }
        if !is_quoted && text.eq_ignore_ascii_case("null") {
            return Ok(Some(Value::Null));
        }
        (self.element)(&text).map(Some)
    }
}
