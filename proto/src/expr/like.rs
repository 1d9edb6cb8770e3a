//! `LIKE`: `%` matches any run of characters, `_` one character, `\` takes the next one literally (a
//! `\` at the very end stands for itself).
//!
//! The match is greedy with one backtracking point, the last `%`: an earlier `%` never needs to give characters back,
//! because a later one can take any run that the earlier one could. Time is at most text × pattern, in constant space.

use std::str::Chars;

/// True if the whole text matches the pattern.
pub(super) fn matches(text: &str, pattern: &str) -> bool {
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    let mut last_percent: Option<(Chars<'_>, Chars<'_>)> = None;
    loop {
        let mut rest = pattern.clone();
        let token = rest.next();
        if token == Some('%') {
            pattern = rest;
            last_percent = Some((text.clone(), pattern.clone()));
            continue;
        }
        let fits = match (token, text.next()) {
            (None, None) => return true,
            (Some('_'), Some(_)) => true,
            (Some('\\'), Some(c)) => rest.next().unwrap_or('\\') == c,
            (Some(token), Some(c)) => token == c,
            (Some(_), None) => return false,
            (None, Some(_)) => false,
        };
        if fits {
            pattern = rest;
            continue;
        }
        // Backtrack: the last `%` takes one more character.
        let Some((from, after)) = &mut last_percent else { return false };
        if from.next().is_none() {
            return false;
        }
        text = from.clone();
        pattern = after.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

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
    fn many_wildcards_take_no_exponential_time() {
        assert!(!matches(&"a".repeat(5_000), &"%a".repeat(200).replace("%a%a", "%aa%b")));
    }
}
