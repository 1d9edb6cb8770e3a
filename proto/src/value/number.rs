//! JSON numbers, with one representation for each mathematical value, exact for 64-bit integers.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A JSON number in canonical form, which the constructors ensure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Number {
    /// Any integer in the range of `i64`.
    Int(i64),
    /// An integer above `i64::MAX`.
    Uint(u64),
    /// A double that is not an integer in the range of `i64` or `u64`. Never NaN. Infinite only
    /// as the result of a cast, because JSON has no infinite number.
    Float(f64),
}

// A number is never NaN, so equality is total.
impl Eq for Number {}

/// 2^63, the first number above the range of `i64`, as a double.
const TWO_63: f64 = 9_223_372_036_854_775_808.0;
const TWO_64: f64 = 18_446_744_073_709_551_616.0;

impl Number {
    /// Creates a number from a signed integer.
    pub fn from_i64(n: i64) -> Self {
        Self::Int(n)
    }

    /// Creates a number from an unsigned integer.
    pub fn from_u64(n: u64) -> Self {
        i64::try_from(n).map_or(Self::Uint(n), Self::Int)
    }

    /// Returns the number of a double; `None` if it is not finite. `-0.0` becomes 0.
    pub fn from_f64(f: f64) -> Option<Self> {
        Self::from_double(f).filter(|_| f.is_finite())
    }

    /// Returns the number of a double, which may be infinite; `None` for NaN. `-0.0` becomes 0.
    pub fn from_double(f: f64) -> Option<Self> {
        if f.is_nan() {
            None
        } else if f.trunc() != f || !(-TWO_63..TWO_64).contains(&f) {
            Some(Self::Float(f))
        } else if f < TWO_63 {
            Some(Self::Int(f as i64))
        } else {
            Some(Self::Uint(f as u64))
        }
    }

    /// Returns the number of an integer: exact if it fits 64 bits, otherwise the nearest double.
    pub fn from_i128(n: i128) -> Self {
        if let Ok(n) = i64::try_from(n) {
            Self::Int(n)
        } else if let Ok(n) = u64::try_from(n) {
            Self::Uint(n)
        } else {
            // The nearest double of an i128 is finite; it may still land on i64::MIN.
            Self::from_f64(n as f64).unwrap_or(Self::Int(0))
        }
    }

    /// Returns the integer; `None` for a double.
    pub fn as_i128(self) -> Option<i128> {
        match self {
            Self::Int(n) => Some(n.into()),
            Self::Uint(n) => Some(n.into()),
            Self::Float(_) => None,
        }
    }

    /// Returns the integer; `None` if it is not in the range of `i64` or not an integer.
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Self::Int(n) => Some(n),
            _ => None,
        }
    }

    /// Returns the nearest double.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Int(n) => n as f64,
            Self::Uint(n) => n as f64,
            Self::Float(f) => f,
        }
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (*self, *other) {
            (Self::Float(a), Self::Float(b)) => a.total_cmp(&b),
            (Self::Float(f), other) => other.compare_to_float(f).reverse(),
            (_, Self::Float(f)) => self.compare_to_float(f),
            _ => self.as_i128().cmp(&other.as_i128()),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Number {
    /// Compares an integer with a canonical float exactly. The float is outside the range of
    /// 64-bit integers, or has a fraction; in the second case its floor is an exact integer.
    fn compare_to_float(&self, f: f64) -> Ordering {
        if f >= TWO_64 {
            return Ordering::Less;
        }
        if f < -TWO_63 {
            return Ordering::Greater;
        }
        match self.as_i128() {
            Some(n) if n <= f.floor() as i128 => Ordering::Less,
            _ => Ordering::Greater,
        }
    }
}

impl fmt::Display for Number {
    /// Writes the number as JSON: integers with all digits, doubles in the shortest form that
    /// parses to the same double, infinity by its SQL name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(n) => n.fmt(f),
            Self::Uint(n) => n.fmt(f),
            Self::Float(f64::INFINITY) => f.write_str("Infinity"),
            Self::Float(f64::NEG_INFINITY) => f.write_str("-Infinity"),
            // `Debug` differs from `Display` in using exponents where the number is long.
            Self::Float(n) => fmt::Debug::fmt(n, f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::tree::{Value, compare};

    fn json(text: &str) -> Value {
        Value::parse_json(text.as_bytes()).expect(text)
    }

    #[test]
    fn a_number_has_one_form_however_it_is_spelled() {
        for same in ["1", "1.0", "1e0", "10e-1", "0.1e1"] {
            assert_eq!(json(same), Value::int(1), "{same}");
        }
        assert_eq!(json("-0.0"), Value::int(0));
        assert_eq!(json("9007199254740993.0"), Value::int(9_007_199_254_740_993));
        assert_eq!(json("18446744073709551615"), Value::Number(Number::Uint(u64::MAX)));
        assert_eq!(json("1.8446744073709551615e19"), Value::Number(Number::Uint(u64::MAX)));
        assert_eq!(json("18446744073709551616"), Value::Number(Number::Float(TWO_64)));
    }

    #[test]
    fn numbers_compare_by_exact_value() {
        let ascending = [
            "-1e300",
            "-9223372036854775808",
            "-1.5",
            "-1",
            "-0.5",
            "0",
            "5e-324",
            "0.5",
            "1",
            "4503599627370495.5",
            "4503599627370496",
            "9007199254740993",
            "9223372036854775807",
            "9223372036854775808",
            "18446744073709551615",
            "18446744073709551616",
            "1e300",
        ];
        let infinity = |sign: f64| Value::Number(Number::Float(sign * f64::INFINITY));
        for number in ascending {
            assert_eq!(compare(&infinity(-1.0), &json(number)), Ordering::Less, "{number}");
            assert_eq!(compare(&infinity(1.0), &json(number)), Ordering::Greater, "{number}");
        }
        for pair in ascending.windows(2) {
            assert_eq!(compare(&json(pair[0]), &json(pair[1])), Ordering::Less, "{pair:?}");
            assert_eq!(compare(&json(pair[1]), &json(pair[0])), Ordering::Greater, "{pair:?}");
        }
    }
}
