//! Conversions between times and their texts in statements, in UTC: `2027-01-31`, `2027-01-31
//! 12:00:00`.

use time::{Date, Month, OffsetDateTime, Time};

/// Parses a time in UTC and returns it in milliseconds since 1970. The text is a day (which means
/// its beginning), a day and a time, or `infinity` (the end of all time). Returns `None` for
/// other texts and for years after 9999.
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
    let small = |number: u16| u8::try_from(number).ok();
    let month = Month::try_from(small(month)?).ok()?;
    let date = Date::from_calendar_date(year.into(), month, small(day)?).ok()?;
    let second = time.get(2).copied().unwrap_or(0);
    let time = Time::from_hms(small(hour)?, small(minute)?, small(second)?).ok()?;
    let s = u64::try_from(date.with_time(time).assume_utc().unix_timestamp()).ok()?;
    Some(s * 1_000)
}

/// Returns a time as text in UTC, as PostgreSQL prints it, without fractions of a second:
/// `2027-01-31 12:00:00+00`.
pub fn text(unix_ms: u64) -> String {
    match parts(unix_ms) {
        Some((day, time)) => format!("{day} {time}+00"),
        None => "infinity".into(),
    }
}

/// Returns a time as text in the form of RFC 3339, with milliseconds: `2027-01-31T12:00:00.000Z`.
pub fn text_ms(unix_ms: u64) -> String {
    match parts(unix_ms) {
        Some((day, time)) => format!("{day}T{time}.{:03}Z", unix_ms % 1_000),
        None => "infinity".into(),
    }
}

/// Returns the texts of the day and of the time of day; `None` after the year 9999.
fn parts(unix_ms: u64) -> Option<(String, String)> {
    let s = i64::try_from(unix_ms / 1_000).ok()?;
    let at = OffsetDateTime::from_unix_timestamp(s).ok()?;
    let (hour, minute, second) = at.to_hms();
    let day = format!("{:04}-{:02}-{:02}", at.year(), u8::from(at.month()), at.day());
    Some((day, format!("{hour:02}:{minute:02}:{second:02}")))
}

/// Returns the numbers in a text that are separated by `between`. The numbers have no signs and
/// at most four digits. Returns `None` for other texts.
fn numbers(text: &str, between: char) -> Option<Vec<u16>> {
    let number = |part: &str| {
        let is_number = (1..=4).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        part.parse().ok().filter(|_| is_number)
    };
    text.split(between).map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 86_400_000;

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
