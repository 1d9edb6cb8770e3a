//! Durations as PostgreSQL writes them in settings.

/// Milliseconds of a number with one of PostgreSQL's units, or without one.
pub fn duration_ms(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|ch: char| !ch.is_ascii_digit()).unwrap_or(text.len());
    let factor: u64 = match text[digits..].trim() {
        "" | "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

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
