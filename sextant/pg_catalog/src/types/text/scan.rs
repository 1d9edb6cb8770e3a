//! Values from text.

use proto::value::Value;

use super::array::parse_array;
use super::number::{invalid, parse_integer, parse_number};
use super::object::{kind, parse_object};
use crate::data::data;
use crate::error::{Error, Result};
use crate::types::json;
use crate::types::names::Names;
use crate::types::oid::{self, Oid};

/// The bytes of a `name`.
const NAME_BYTES_MAX: usize = 63;

/// Parses the text of a value as the input function of its type does it. An error if the text is no value
/// (22P02, 22003), or names no object (42P01 and others).
pub fn parse(text: &str, ty: Oid, names: &Names<'_>) -> Result<Value> {
    let plain = data().base(ty);
    if kind(plain).is_some() {
        return parse_object(text, plain, names);
    }
    match plain {
        oid::BOOL => parse_bool(text).map(Value::Bool),
        oid::INT2 | oid::INT4 | oid::INT8 | oid::OID | oid::XID | oid::CID => {
            parse_integer(text, plain)
        }
        oid::FLOAT4 | oid::FLOAT8 | oid::NUMERIC => parse_number(text, plain),
        oid::NAME => Ok(Value::from(truncate_name(text))),
        oid::CHAR => Ok(Value::from(first_char(text))),
        oid::JSON => json::parse(text).map(|_| Value::from(text)),
        oid::JSONB => json::normalized(text).map(Value::String),
        oid::INT2VECTOR | oid::OIDVECTOR => {
            let element = if plain == oid::INT2VECTOR { oid::INT2 } else { oid::OID };
            let items = text.split_ascii_whitespace().map(|item| parse_integer(item, element));
            items.collect::<Result<_>>().map(Value::Array)
        }
        oid::RECORD => {
            Err(Error::unsupported("input of anonymous composite types is not implemented"))
        }
        oid::VOID => Ok(Value::from("")),
        _ => parse_other(text, plain, names),
    }
}

fn parse_other(text: &str, ty: Oid, names: &Names<'_>) -> Result<Value> {
    let row = data().type_row(ty);
    let Some(row) = row else {
        return Err(Error::unsupported(format!("values of type {ty} cannot be read from text")));
    };
    if row.category == 'A' && row.kind == 'b' {
        let delimiter = data().type_row(row.element).map_or(',', |element| element.delimiter);
        return parse_array(text, delimiter, &mut |item| parse(item, row.element, names));
    }
    // The dates, times, intervals, uuid and bytea have no values in `proto::value` yet.
    let is_text = matches!(
        ty,
        oid::TEXT
            | oid::VARCHAR
            | oid::BPCHAR
            | oid::UNKNOWN
            | oid::CSTRING
            | oid::XML
            | oid::PG_NODE_TREE
            | oid::ACLITEM
            | oid::INET
            | oid::TID
    );
    if is_text || matches!(row.name.as_str(), "refcursor" | "cidr" | "jsonpath") {
        return Ok(Value::from(text));
    }
    let name = names.type_name(ty, None).unwrap_or_else(|| row.name.clone());
    Err(Error::unsupported(format!("the catalogue reads no values of type {name} from text"))
        .with_hint("compare its text instead"))
}

/// Returns a text as a `name`: its first 63 bytes, cut between characters.
pub fn truncate_name(text: &str) -> &str {
    if text.len() <= NAME_BYTES_MAX {
        return text;
    }
    let end = (0..=NAME_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// Returns the first character of a text that is a "char": one byte.
fn first_char(text: &str) -> &str {
    let end = text.char_indices().nth(1).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

fn parse_bool(text: &str) -> Result<bool> {
    let word = text.trim().to_ascii_lowercase();
    let is_prefix = |whole: &str, min: usize| word.len() >= min && whole.starts_with(&word);
    if is_prefix("true", 1) || is_prefix("yes", 1) || word == "on" || word == "1" {
        return Ok(true);
    }
    if is_prefix("false", 1) || is_prefix("no", 1) || is_prefix("off", 2) || word == "0" {
        return Ok(false);
    }
    Err(invalid("boolean", text))
}
