//! Moments as statements write them, in UTC: `2027-01-31`, `2027-01-31 12:00:00`.

const DAY_MS: u64 = 86_400_000;
/// No year after this one is read; a later moment is written as `infinity`.
const YEAR_MAX: u64 = 9_999;

/// Milliseconds since 1970 of a text: a day (its beginning), or a day and a time, in UTC; `infinity` is the end of all time.
pub fn unix_ms(text: &str) -> Option<u64> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("infinity") {
        return Some(u64::MAX);
    }
    let text = ["Z", "z", "+00:00", "+00"]
        .into_iter()
        .find_map(|zone| text.strip_suffix(zone).filter(|_| text.contains(':')))
        .unwrap_or(text)
        .trim_end();
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let [year, month, day] = numbers(date, '-')?[..] else { return None };
    let time = numbers(time.trim_start(), ':')?;
    let ([hour, minute] | [hour, minute, _]) = time[..] else { return None };
    let second = time.get(2).copied().unwrap_or(0);
    let is_day = (1970..=YEAR_MAX).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day);
    if !is_day || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = days_before_year(year) - days_before_year(1970)
        + (1..month).map(|month| days_of(year, month)).sum::<u64>()
        + day
        - 1;
    Some(days * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1_000)
}

/// A moment as text, in UTC: `2027-01-31 12:00:00+00`, as PostgreSQL prints it; without parts of a second.
pub fn text(unix_ms: u64) -> String {
    match parts(unix_ms) {
        Some((day, time)) => format!("{day} {time}+00"),
        None => "infinity".into(),
    }
}

/// Formats a time as in RFC 3339, with milliseconds: `2027-01-31T12:00:00.000Z`.
pub fn text_ms(unix_ms: u64) -> String {
    match parts(unix_ms) {
        Some((day, time)) => format!("{day}T{time}.{:03}Z", unix_ms % 1_000),
        None => "infinity".into(),
    }
}

/// The day and the time of a moment; `None` after the last year that is read.
fn parts(unix_ms: u64) -> Option<(String, String)> {
    let (mut days, ms) = (unix_ms / DAY_MS, unix_ms % DAY_MS);
    if days >= days_before_year(YEAR_MAX + 1) - days_before_year(1970) {
        return None;
    }
    days += days_before_year(1970);
    // A year has 365.2425 days, so this is the year, the previous one or the next one.
    let guess = days * 10_000 / 3_652_425 + 1;
    let starts = |year: &u64| days_before_year(*year) <= days;
    let year = (guess.saturating_sub(1).max(1)..=guess + 1).rev().find(starts).unwrap_or(1);
    days -= days_before_year(year);
    let mut month = 1;
    while days >= days_of(year, month) {
        days -= days_of(year, month);
        month += 1;
    }
    let s = ms / 1_000;
    let (hour, minute, second) = (s / 3_600, s / 60 % 60, s % 60);
    let day = format!("{year:04}-{month:02}-{:02}", days + 1);
    Some((day, format!("{hour:02}:{minute:02}:{second:02}")))
}

/// The numbers of a text without signs, each of at most four digits.
fn numbers(text: &str, between: char) -> Option<Vec<u64>> {
    let number = |part: &str| {
        let is_number = (1..=4).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        part.parse().ok().filter(|_| is_number)
    };
    text.split(between).map(number).collect()
}

/// The days from the beginning of the year 1 to that of a year.
fn days_before_year(year: u64) -> u64 {
    let before = year - 1;
    before * 365 + before / 4 - before / 100 + before / 400
}

fn days_of(year: u64, month: u64) -> u64 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_day_or_a_day_and_a_time_in_utc() {
        let read = [
            ("1970-01-01", 0),
            ("1970-01-02 00:00:01", DAY_MS + 1_000),
            ("2000-02-29", 951_782_400_000),
            ("2027-01-31", 1_801_353_600_000),
            (" 2027-01-31T12:30 ", 1_801_398_600_000),
            ("2027-01-31T12:30:00Z", 1_801_398_600_000),
            ("2027-01-31 12:30:00+00", 1_801_398_600_000),
            ("9999-12-31 23:59:59", 253_402_300_799_000),
            ("Infinity", u64::MAX),
        ];
        for (text, ms) in read {
            assert_eq!(unix_ms(text), Some(ms), "{text}");
        }
        let wrong = [
            "",
            "2027",
            "2027-01",
            "2027-13-01",
            "2027-00-01",
            "2027-02-29",
            "2100-02-29",
            "2027-01-32",
            "2027-01-00",
            "1969-12-31",
            "10000-01-01",
            "2027-01-31 24:00",
            "2027-01-31 12",
            "2027-01-31 12:60",
            "2027-01-31 12:00:60",
            "2027-01-31 12:00:00+01",
            "-2027-01-31",
            "2027-01-31-1",
            "tomorrow",
            "2027-01-31 12:00:00:00",
            "2027-+1-31",
        ];
        for text in wrong {
            assert_eq!(unix_ms(text), None, "{text}");
        }
    }

    #[test]
    fn each_day_is_read_as_it_is_printed() {
        for day in (0..2_932_897).step_by(13).chain([59, 60, 364, 365, 11_016, 11_017, 2_932_896]) {
            let ms = day * DAY_MS + 3_723_000;
            assert_eq!(unix_ms(&text(ms)), Some(ms), "{}", text(ms));
        }
        assert_eq!(text(1_801_398_600_999), "2027-01-31 12:30:00+00");
        assert_eq!(text_ms(1_801_398_600_099), "2027-01-31T12:30:00.099Z");
        for ms in [253_402_300_800_000, u64::MAX] {
            assert_eq!(text(ms), "infinity");
        }
    }
}
