//! Functions with regular expressions.

use std::sync::Arc;

use proto::value::Value;
use regex::{Captures, Regex};

use crate::data::FunctionRow;
use crate::error::{Error, Result};
use crate::functions::arithmetic::int4;
use crate::functions::context::{Arguments, Context, VALUE_BYTES_MAX};
use crate::functions::signature::{Scalar, SetOf};
use crate::types::oid;
use crate::types::order::size_bytes;

/// Returns the implementation of a function.
pub(super) fn find(row: &FunctionRow) -> Option<Scalar> {
    Some(match row.name.as_str() {
        "substring" if row.arguments[..] == [oid::TEXT, oid::TEXT] => |context, a| {
            let regex = context.patterns.regex(a.text(1)?, "")?;
            Ok(regex.captures(a.text(0)?).map_or(Value::Null, |found| first_group(&found)))
        },
        "substring" if row.arguments[..] == [oid::TEXT; 3] => |context, a| {
            let pattern = similar(a.text(1)?, a.text(2)?)?;
            let regex = context.patterns.regex(&pattern, "")?;
            Ok(regex.captures(a.text(0)?).map_or(Value::Null, |found| first_group(&found)))
        },
        "similar_to_escape" => |_, a| {
            let escape = if a.len() > 1 { a.text(1)? } else { "\\" };
            similar(a.text(0)?, escape).map(Value::String)
        },
        "regexp_like" => |context, a| {
            let (regex, _) = regex(context, a, 2)?;
            Ok(Value::Bool(regex.is_match(a.text(0)?)))
        },
        "regexp_match" => |context, a| {
            let (regex, _) = regex(context, a, 2)?;
            let found = regex.captures(a.text(0)?);
            Ok(found.map_or(Value::Null, |found| groups(&found)))
        },
        _ => return find_by_place(row),
    })
}

/// Functions that search from a place, or for a numbered match.
fn find_by_place(row: &FunctionRow) -> Option<Scalar> {
    Some(match row.name.as_str() {
        "regexp_count" => |context, a| {
            let (regex, _) = regex(context, a, 3)?;
            let from = start(a, 2)?;
            let text = a.text(0)?;
            int4(text.get(from..).map_or(0, |_| matches(&regex, text, from).count()))
        },
        "regexp_replace" => replace,
        "regexp_split_to_array" => |context, a| Ok(Value::Array(split(context, a)?)),
        "regexp_substr" => |context, a| {
            let (regex, _) = regex(context, a, 4)?;
            let (from, number) = (start(a, 2)?, number(a, 3)?);
            let group = if a.len() > 5 { group(a.int(5)?)? } else { 0 };
            let found = matches(&regex, a.text(0)?, from).nth(number);
            let found = found.and_then(|found| found.get(group).map(|found| found.as_str()));
            Ok(found.map_or(Value::Null, Value::from))
        },
        "regexp_instr" => |context, a| {
            let (regex, _) = regex(context, a, 5)?;
            let (from, number) = (start(a, 2)?, number(a, 3)?);
            let is_end = a.len() > 4 && a.int(4)? == 1;
            let group = if a.len() > 6 { group(a.int(6)?)? } else { 0 };
            let text = a.text(0)?;
            let found = matches(&regex, text, from).nth(number);
            let found = found.and_then(|found| found.get(group));
            let at = found.map(|found| if is_end { found.end() } else { found.start() });
            int4(at.map_or(0, |at| text[..at].chars().count() + 1))
        },
        _ => return None,
    })
}

/// Returns the implementation of a function that returns a set.
pub(super) fn find_set(row: &FunctionRow) -> Option<SetOf> {
    Some(match row.name.as_str() {
        "regexp_matches" => |context, a| {
            let (regex, is_global) = regex(context, a, 2)?;
            let count = if is_global { usize::MAX } else { 1 };
            let mut rows = Vec::new();
            for found in matches(&regex, a.text(0)?, 0).take(count) {
                push(context, groups(&found), &mut rows)?;
            }
            Ok(rows)
        },
        "regexp_split_to_table" => split,
        _ => return None,
    })
}

/// Returns the pattern of the second argument with the flags of another one, and whether `g` is among them.
fn regex(context: &mut Context<'_>, a: &Arguments<'_>, flags: usize) -> Result<(Arc<Regex>, bool)> {
    let flags = if a.len() > flags { a.text(flags)? } else { "" };
    if let Some(flag) = flags.chars().find(|flag| !"gicmnpqstwxbe".contains(*flag)) {
        let what = format!("invalid regular expression option: \"{flag}\"");
        return Err(Error::new("22023", what));
    }
    let regex = context.patterns.regex(a.text(1)?, &flags.replace('g', ""))?;
    context.limits.step(a.text(0)?.len() as u64 / 16)?;
    Ok((regex, flags.contains('g')))
}

/// Returns the byte at which a search begins; the argument counts characters from 1.
fn start(a: &Arguments<'_>, at: usize) -> Result<usize> {
    if a.len() <= at {
        return Ok(0);
    }
    let start = a.int(at)?;
    if start < 1 {
        let what = format!("invalid value for parameter \"start\": {start}");
        return Err(Error::new("22023", what));
    }
    let text = a.text(0)?;
    Ok(text.char_indices().nth(start as usize - 1).map_or(text.len(), |(byte, _)| byte))
}

/// Returns the number of a match, from 0; the argument counts from 1.
fn number(a: &Arguments<'_>, at: usize) -> Result<usize> {
    let number = if a.len() > at { a.int(at)? } else { 1 };
    if number < 1 {
        return Err(Error::new("22023", format!("invalid value for parameter \"n\": {number}")));
    }
    Ok(number as usize - 1)
}

fn group(group: i64) -> Result<usize> {
    let what = || Error::new("22023", format!("invalid value for parameter \"subexpr\": {group}"));
    usize::try_from(group).map_err(|_| what())
}

fn matches<'r, 't: 'r>(
    regex: &'r Regex,
    text: &'t str,
    from: usize,
) -> impl Iterator<Item = Captures<'t>> + 'r {
    let mut at = Some(from);
    std::iter::from_fn(move || {
        let found = regex.captures_at(text, at?)?;
        let whole = found.get(0)?;
        // An empty match is followed by a search from the next character on.
        at = if whole.end() > whole.start() {
            Some(whole.end())
        } else {
            text[whole.end()..].chars().next().map(|c| whole.end() + c.len_utf8())
        };
        Some(found)
    })
}

/// Returns the first group, or the whole match if the pattern has none.
fn first_group(found: &Captures<'_>) -> Value {
    found.get(usize::from(found.len() > 1)).map_or(Value::Null, |group| Value::from(group.as_str()))
}

/// Returns the groups, or the whole match if the pattern has none.
fn groups(found: &Captures<'_>) -> Value {
    let first = usize::from(found.len() > 1);
    let groups = found.iter().skip(first);
    Value::Array(
        groups.map(|group| group.map_or(Value::Null, |g| Value::from(g.as_str()))).collect(),
    )
}

fn replace(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    // With numbers, the flags are the sixth argument.
    let has_numbers = a.len() > 3 && a.oid(3) == oid::INT4;
    let (regex, is_global) = regex(context, a, if has_numbers { 5 } else { 3 })?;
    let from = if has_numbers { start(a, 3)? } else { 0 };
    let only = if has_numbers && a.len() > 4 { a.int(4)? } else { i64::from(!is_global) };
    let (text, new) = (a.text(0)?, a.text(2)?);
    let (mut out, mut last) = (String::new(), 0);
    for (n, found) in matches(&regex, text, from).enumerate() {
        context.limits.step(1)?;
        if only > 0 && n as i64 + 1 != only {
            continue;
        }
        let Some(whole) = found.get(0) else { break };
        out.push_str(&text[last..whole.start()]);
        expand(new, &found, &mut out);
        last = whole.end();
        if out.len() > VALUE_BYTES_MAX {
            context.check_bytes(out.len())?;
        }
        if only > 0 {
            break;
        }
    }
    out.push_str(&text[last..]);
    Ok(Value::String(out))
}

/// Writes a replacement: `\1` is the first group, `\&` the match, `\\` a backslash.
fn expand(new: &str, found: &Captures<'_>, out: &mut String) {
    let mut chars = new.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some(digit @ '1'..='9') => {
                let group = digit as usize - '0' as usize;
                out.push_str(found.get(group).map_or("", |group| group.as_str()));
            }
            Some('&') => out.push_str(found.get(0).map_or("", |group| group.as_str())),
            Some('\\') | None => out.push('\\'),
            Some(c) => out.extend(['\\', c]),
        }
    }
}

/// Adds a part of a text, which is counted: a short pattern finds many in a long text.
fn push(context: &mut Context<'_>, part: Value, parts: &mut Vec<Value>) -> Result<()> {
    context.limits.step(1)?;
    context.limits.store(size_bytes(&part))?;
    parts.push(part);
    Ok(())
}

/// Splits a text at the matches; empty matches at its ends, and right after a match, do not count.
fn split(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<Vec<Value>> {
    let (regex, _) = regex(context, a, 2)?;
    let text = a.text(0)?;
    let (mut parts, mut last) = (Vec::new(), 0);
    for found in matches(&regex, text, 0) {
        let Some(whole) = found.get(0) else { break };
        if whole.is_empty() && (whole.start() == last || whole.end() == text.len()) {
            continue;
        }
        push(context, Value::from(&text[last..whole.start()]), &mut parts)?;
        last = whole.end();
    }
    push(context, Value::from(&text[last..]), &mut parts)?;
    Ok(parts)
}

/// Returns the regular expression of a pattern of SIMILAR TO. `substring` marks the part that it
/// returns with two escaped double quotes: it becomes a group.
fn similar(pattern: &str, escape: &str) -> Result<String> {
    let mut letters = escape.chars();
    let escape = letters.next();
    if letters.next().is_some() {
        return Err(Error::new("22019", "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    }
    let mut out = String::from("^(?:");
    let (mut chars, mut quotes, mut is_class) = (pattern.chars(), 0, false);
    while let Some(c) = chars.next() {
        match c {
            c if Some(c) == escape => match chars.next() {
                Some('"') => {
                    quotes += 1;
                    // The parts before and after match as little and as much as they can.
                    out.push_str(match quotes {
                        1 => "){1,1}?(",
                        2 => "){1,1}(?:",
                        _ => {
                            let what = "SQL regular expression may not contain more than two escape-double-quote separators";
                            return Err(Error::new("2200C", what));
                        }
                    });
                }
                Some(c) => out.extend(['\\', c]),
                None => out.push_str("\\\\"),
            },
            c if is_class => {
                if c == '\\' {
                    out.push('\\');
                }
                is_class = c != ']';
                out.push(c);
            }
            '[' => {
                is_class = true;
                out.push('[');
            }
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '\\' | '.' | '^' | '$' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out.push_str(")$");
    Ok(out)
}
