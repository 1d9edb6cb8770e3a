//! The formatting of numbers.

use super::super::spread::Spread;

/// Returns a number with at least three digits and with separators of thousands.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        0.0 => return "0".into(),
        10.0.. if value.abs() >= 99.95 => 0,
        9.995.. => 1,
        0.9995.. => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    let (whole, rest) = text.split_once('.').map_or((&*text, None), |(a, b)| (a, Some(b)));
    let mut grouped = String::new();
    for (n, digit) in whole.char_indices() {
        if n > 0 && (whole.len() - n).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    rest.map_or(grouped.clone(), |rest| format!("{grouped}.{rest}"))
}

/// Returns the median with the range of all rounds; only the median for one round.
pub fn spread(spread: Spread) -> String {
    let Spread { median, min, max } = spread;
    match min == max {
        true => number(median),
        false => format!("{} ({} to {})", number(median), number(min), number(max)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_or_more() {
        let texts = [0.0, 0.0314, 1.5, 9.999, 42.06, 999.6, 1234567.8].map(number);
        assert_eq!(texts, ["0", "0.031", "1.50", "10.0", "42.1", "1,000", "1,234,568"]);
    }

    #[test]
    fn a_spread_of_one_round_is_a_number() {
        let one = Spread { median: 2.0, min: 2.0, max: 2.0 };
        assert_eq!(spread(one), "2.00");
        assert_eq!(spread(Spread { max: 1000.0, ..one }), "2.00 (2.00 to 1,000)");
    }
}
