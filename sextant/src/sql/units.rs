//! Parsers of durations and sizes, with the units of PostgreSQL's settings.

/// Parses a duration and returns it in milliseconds. The text has one of PostgreSQL's units, or
/// no unit, which means milliseconds.
pub fn duration_ms(text: &str) -> Option<u64> {
    number(text, |unit| match unit {
        "" | "ms" => Some(1),
        "s" => Some(1_000),
        "min" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    })
}

/// Parses a size and returns it in bytes. The text has one of PostgreSQL's units, or no unit,
/// which means bytes. A kilobyte has 1,024 bytes, as in PostgreSQL.
pub fn bytes(text: &str) -> Option<u64> {
    number(text, |unit| match unit {
        "" | "B" => Some(1),
        "kB" => Some(1 << 10),
        "MB" => Some(1 << 20),
        "GB" => Some(1 << 30),
        "TB" => Some(1 << 40),
        _ => None,
    })
}

/// Parses a number with a unit; `factor` returns the factor of a unit.
fn number(text: &str, factor: impl FnOnce(&str) -> Option<u64>) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|ch: char| !ch.is_ascii_digit()).unwrap_or(text.len());
    let factor = factor(text[digits..].trim())?;
    text[..digits].parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_number_with_one_of_the_units() {
        let read = ["500", "20kB", " 3 MB", "10GB"].map(bytes);
        assert_eq!(read, [500, 20 << 10, 3 << 20, 10 << 30].map(Some));
        for wrong in ["", "MB", "-1", "1.5GB", "3 mb", "18446744073709551615TB"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_duration_is_a_number_with_one_of_the_units() {
        let read = ["500", "20ms", " 3 s", "10min", "2h", "1d"].map(duration_ms);
        assert_eq!(read, [500, 20, 3_000, 600_000, 7_200_000, 86_400_000].map(Some));
        for wrong in
            ["", "min", "-1", "1.5s", "3 weeks", "99999999999999999999", "18446744073709551615h"]
        {
            assert_eq!(duration_ms(wrong), None, "{wrong}");
        }
    }
}
