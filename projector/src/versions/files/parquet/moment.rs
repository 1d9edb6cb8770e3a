//! Converts dates, times of a day and timestamps to text, with all digits of their unit.

/// The unit of a time or timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
}

impl Unit {
    /// Returns the number of units per second, and the number of digits after the point.
    fn of_second(self) -> (i64, usize) {
        match self {
            Self::Millis => (1_000, 3),
            Self::Micros => (1_000_000, 6),
            Self::Nanos => (1_000_000_000, 9),
        }
    }

    /// Returns the number of units in a day.
    pub fn of_day(self) -> i64 {
        24 * 60 * 60 * self.of_second().0
    }
}

/// Splits a timestamp into the day since 1970-01-01 and the time of that day.
pub fn day_and_time(since_1970: i64, unit: Unit) -> (i64, i64) {
    (since_1970.div_euclid(unit.of_day()), since_1970.rem_euclid(unit.of_day()))
}

/// Returns a time of a day as text.
pub fn time(time: i64, unit: Unit) -> String {
    let (of_second, digits) = unit.of_second();
    let (seconds, fraction) = (time / of_second, time % of_second);
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{fraction:0digits$}", seconds % 60)
}

/// Returns the date `days` days after 1970-01-01 as text, in the Gregorian calendar.
pub fn date(days: i64) -> String {
    // Days since the first of March of the year 0, in eras of 400 years: a leap day is the last of its year.
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}
