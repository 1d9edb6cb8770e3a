//! The parser of JSON numbers. Any spelling of an integer that fits 64 bits (`1`, `1.0`, `1e0`)
//! gives exactly this integer.

use crate::value::number::Number;

/// The components of a number's JSON text: sign, digits and exponent.
struct NumberText<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    exponent: i32,
}

impl<'a> NumberText<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (rest, exponent) = match rest.split_once(['e', 'E']) {
            Some((rest, exponent)) => {
                let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
                if !digits(unsigned) {
                    return None;
                }
                // An exponent outside the range of i32 only means "huge" or "tiny".
                let huge = if exponent.starts_with('-') { i32::MIN / 2 } else { i32::MAX / 2 };
                (rest, exponent.parse().unwrap_or(huge))
            }
            None => (rest, 0),
        };
        let (whole, fraction) = match rest.split_once('.') {
            Some((whole, fraction)) if digits(fraction) => (whole, fraction),
            Some(_) => return None,
            None => (rest, ""),
        };
        if !digits(whole) || (whole.len() > 1 && whole.starts_with('0')) {
            return None;
        }
        Some(Self { negative, whole, fraction, exponent })
    }

    /// Returns the number if it is an integer of at most 20 digits, which 64-bit integers need at
    /// most.
    fn integer(&self) -> Option<i128> {
        let fraction = self.fraction.trim_end_matches('0');
        let zeros = i64::from(self.exponent) - fraction.len() as i64;
        let all = format!("{}{fraction}", self.whole);
        let digits = all.trim_end_matches('0');
        let zeros = zeros + (all.len() - digits.len()) as i64;
        let digits = digits.trim_start_matches('0');
        if digits.is_empty() {
            return Some(0);
        }
        if zeros < 0 || digits.len() as i64 + zeros > 20 {
            return None;
        }
        let magnitude = digits.parse::<i128>().ok()? * 10i128.pow(zeros as u32);
        Some(if self.negative { -magnitude } else { magnitude })
    }
}

impl Number {
    /// Parses a number in JSON's spelling; `None` for any other text, and for a number beyond the
    /// range of doubles.
    pub fn parse(text: &str) -> Option<Self> {
        // Fast path: most numbers are short integers without sign or leading zero.
        let bytes = text.as_bytes();
        if let [b'1'..=b'9', rest @ ..] = bytes
            && rest.len() < 18
            && rest.iter().all(u8::is_ascii_digit)
        {
            return text.parse().ok().map(Number::Int);
        }
        let spelling = NumberText::read(text)?;
        match spelling.integer() {
            Some(n) if i64::try_from(n).is_ok() || u64::try_from(n).is_ok() => {
                Some(Number::from_i128(n))
            }
            _ => Number::from_f64(text.parse().ok()?),
        }
    }
}

impl Number {
    /// Parses a number in SQL's spelling: JSON's, and also `+1`, `.5`, `1.` and `007`. `None` for
    /// any other text, including `inf` and `nan`, and for a number beyond the range of doubles.
    pub fn parse_sql(text: &str) -> Option<Self> {
        let (sign, rest) = match text.strip_prefix('-') {
            Some(rest) => ("-", rest),
            None => ("", text.strip_prefix('+').unwrap_or(text)),
        };
        let (digits, exponent) = rest.split_at(rest.find(['e', 'E']).unwrap_or(rest.len()));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !is_number(whole) {
            return None;
        }
        let whole = match whole.trim_start_matches('0') {
            "" => "0",
            digits => digits,
        };
        let fraction = if fraction.is_empty() { "0" } else { fraction };
        Self::parse(&format!("{sign}{whole}.{fraction}{exponent}"))
    }
}

/// Returns true if the text spells a number, of any size.
pub fn is_number(text: &str) -> bool {
    NumberText::read(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_numbers_are_parsed_exactly() {
        for text in [
            "9007199254740993",
            "+9007199254740993",
            "9007199254740993.",
            "9007199254740993.0",
            "009007199254740993.000",
            "9007199254740993e0",
            "900719925474099.3e1",
            ".9007199254740993E16",
        ] {
            let number = Number::parse_sql(text);
            assert_eq!(number, Some(Number::Int(9_007_199_254_740_993)), "{text}");
        }
        assert_eq!(Number::parse_sql("-.5"), Number::from_f64(-0.5));
        for text in ["", ".", "-", "+", "--1", "+-1", "1.-2", "inf", "nan", "1e", "e1", "1 ", "0x1"]
        {
            assert_eq!(Number::parse_sql(text), None, "{text:?}");
        }
    }

    #[test]
    fn extreme_exponents_neither_hang_nor_overflow() {
        assert_eq!(Number::parse("0e999999999999"), Some(Number::Int(0)));
        assert_eq!(Number::parse("1e-999999999999"), Some(Number::Int(0)));
        assert_eq!(Number::parse("1e999999999999"), None);
        assert_eq!(Number::parse(&format!("1{}e-400", "0".repeat(400))), Some(Number::Int(1)));
    }
}
