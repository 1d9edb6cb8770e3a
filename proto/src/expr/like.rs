//! `LIKE`: `%` matches any sequence of characters, `_` one character, and `\` makes the next
//! character literal. A `\` at the very end is literal itself.
//!
//! The `%` of a pattern separate its *segments*. The first segment must match at the beginning of
//! the text, the last one at its end. Every other segment is matched at its first match after the
//! previous segment; a later match could not help, since it leaves less text for the rest. A
//! segment without `_` is found by a search in linear time. A segment with `_` is tried at each
//! position, which is linear for most texts; for other texts the cost limit ends the search.

use std::borrow::Cow;

use super::cost::{CostMeter, TooCostly};

/// Returns true if the complete text matches the pattern.
pub(super) fn matches(text: &str, pattern: &str, cost: &CostMeter) -> Result<bool, TooCostly> {
    cost.add_bytes(pattern.len())?;
    let (first, rest) = split(pattern);
    let Some(at) = match_at_begin(text, first, cost)? else { return Ok(false) };
    let mut text = &text[at..];
    let Some(mut rest) = rest else { return Ok(text.is_empty()) };
    loop {
        let (segment, behind) = split(rest);
        let Some(behind) = behind else { return ends_with(text, segment, cost) };
        let Some(at) = find(text, segment, cost)? else { return Ok(false) };
        text = &text[at..];
        rest = behind;
    }
}

/// Splits a pattern into the segment before the first `%`, and the text after that `%`; `None`
/// without a `%`.
fn split(pattern: &str) -> (&str, Option<&str>) {
    let bytes = pattern.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'%' => return (&pattern[..at], Some(&pattern[at + 1..])),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    (pattern, None)
}

/// Returns the characters of a segment; `None` stands for `_`, which matches any character.
fn tokens(segment: &str) -> impl Iterator<Item = Option<char>> {
    let mut chars = segment.chars();
    std::iter::from_fn(move || match chars.next()? {
        '_' => Some(None),
        '\\' => Some(Some(chars.next().unwrap_or('\\'))),
        c => Some(Some(c)),
    })
}

/// Returns the literal text of a segment; `None` if it contains `_`.
fn literal_text(segment: &str) -> Option<Cow<'_, str>> {
    match segment.contains(['_', '\\']) {
        false => Some(Cow::Borrowed(segment)),
        true => tokens(segment).collect::<Option<String>>().map(Cow::Owned),
    }
}

/// Returns the end of the match if the segment matches at the beginning of the text.
fn match_at_begin(text: &str, segment: &str, cost: &CostMeter) -> Result<Option<usize>, TooCostly> {
    let mut chars = text.chars();
    for (n, token) in tokens(segment).enumerate() {
        match (chars.next(), token) {
            (Some(_), None) => {}
            (Some(c), Some(token)) if c == token => {}
            _ => return cost.add_bytes(n + 1).map(|()| None),
        }
    }
    let end = text.len() - chars.as_str().len();
    cost.add_bytes(end).map(|()| Some(end))
}

/// Returns the end of the segment's first match in the text.
fn find(text: &str, segment: &str, cost: &CostMeter) -> Result<Option<usize>, TooCostly> {
    if let Some(plain) = literal_text(segment) {
        let end = text.find(&*plain).map(|at| at + plain.len());
        return cost.add_bytes(end.unwrap_or(text.len())).map(|()| end);
    }
    for (at, _) in text.char_indices() {
        if let Some(length) = match_at_begin(&text[at..], segment, cost)? {
            return Ok(Some(at + length));
        }
    }
    Ok(None)
}

fn ends_with(text: &str, segment: &str, cost: &CostMeter) -> Result<bool, TooCostly> {
    let Some(last) = tokens(segment).count().checked_sub(1) else { return Ok(true) };
    let Some((at, _)) = text.char_indices().rev().nth(last) else { return Ok(false) };
    Ok(match_at_begin(&text[at..], segment, cost)?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(text: &str, pattern: &str) -> bool {
        super::matches(text, pattern, &CostMeter::for_evaluation()).unwrap()
    }

    /// Matches by the definition, character by character, with a table of the matching prefixes.
    fn by_definition(text: &str, pattern: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let mut reached = vec![false; text.len() + 1];
        reached[0] = true;
        let mut pattern = pattern.chars();
        while let Some(c) = pattern.next() {
            let before = reached.clone();
            let literal = if c == '\\' { pattern.next().unwrap_or('\\') } else { c };
            for at in 0..=text.len() {
                reached[at] = match c {
                    '%' => before[..=at].contains(&true),
                    '_' => at > 0 && before[at - 1],
                    _ => at > 0 && before[at - 1] && text[at - 1] == literal,
                };
            }
        }
        reached[text.len()]
    }

    #[test]
    fn every_short_pattern_matches_as_defined() {
        let words = |alphabet: &[char], length: u32| {
            let count = alphabet.len().pow(length);
            let word = |mut n: usize| {
                let mut word = String::new();
                for _ in 0..length {
                    word.push(alphabet[n % alphabet.len()]);
                    n /= alphabet.len();
                }
                word
            };
            (0..count).map(word).collect::<Vec<_>>()
        };
        let texts: Vec<_> = (0..5).flat_map(|n| words(&['a', 'é', '%'], n)).collect();
        for pattern in (0..6).flat_map(|n| words(&['a', 'é', '%', '_', '\\'], n)) {
            for text in texts.iter().step_by(1 + pattern.len() % 3) {
                let expected = by_definition(text, &pattern);
                assert_eq!(matches(text, &pattern), expected, "{text:?} LIKE {pattern:?}");
            }
        }
    }

    #[test]
    fn wildcards_and_escapes() {
        for (text, pattern) in [
            ("", ""),
            ("", "%"),
            ("abc", "abc"),
            ("abc", "a%"),
            ("abc", "%c"),
            ("abc", "a_c"),
            ("abcabd", "%ab_"),
            ("aXbXc", "a%b%c"),
            ("é", "_"),
            ("a%c", "a\\%c"),
            ("a_c", "a\\_c"),
            ("a\\", "a\\\\"),
            ("a\\", "a\\"),
            ("mississippi", "%iss%ip%"),
            ("\n", "_"),
            ("a", "%%a%%"),
        ] {
            assert!(matches(text, pattern), "{text:?} LIKE {pattern:?}");
        }
        for (text, pattern) in [
            ("", "_"),
            ("abc", "ab"),
            ("ab", "abc"),
            ("abc", "a\\%"),
            ("ABC", "abc"),
            ("abc", "%d%"),
            ("aXc", "a\\_c"),
            ("a", "a\\a_"),
        ] {
            assert!(!matches(text, pattern), "{text:?} LIKE {pattern:?}");
        }
    }

    #[test]
    fn the_cost_is_linear_without_underscores_and_bounded_with_them() {
        let cost = |text: &str, pattern: &str| {
            let meter = CostMeter::for_evaluation();
            (super::matches(text, pattern, &meter), meter.spent())
        };
        let (text, long) = ("a".repeat(50_000), "a".repeat(20_000));
        assert_eq!(cost(&text, &format!("%{long}b%")), (Ok(false), 70_003));
        assert_eq!(cost(&text, &format!("%{long}%")).0, Ok(true));
        let (found, spent) = cost(&"a".repeat(5_000), &"%a".repeat(200).replace("%a%a", "%aa%b"));
        assert_eq!(found, Ok(false));
        assert!(spent < 10_000, "{spent}");
        let (found, spent) = cost(&text, &format!("%_{long}b%"));
        assert!(found.is_err());
        assert!(spent < super::super::cost::EVALUATION_COST_MAX + 100_000, "{spent}");
    }
}
