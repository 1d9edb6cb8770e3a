//! The settings of a session: Sextant's own, and those of PostgreSQL that drivers set or read at start.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::model::cut::WritePosition;
use proto::model::ids::BucketId;
use proto::rpc::scan::Consistency;
use proto::{Error, ErrorCode, Result};

use crate::sql::error::{unknown, unsupported};

/// The version that drivers see; they choose their queries by it.
pub(super) const SERVER_VERSION: &str = concat!("16.0 (Sextant ", env!("CARGO_PKG_VERSION"), ")");

/// PostgreSQL's settings that are stored and shown without any effect, with their defaults.
const ACCEPTED: [(&str, &str); 22] = [
    ("application_name", ""),
    ("bytea_output", "hex"),
    ("client_min_messages", "notice"),
    ("datestyle", "ISO, MDY"),
    ("default_transaction_isolation", "repeatable read"),
    ("default_transaction_read_only", "off"),
    ("extra_float_digits", "1"),
    ("idle_in_transaction_session_timeout", "0"),
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

/// Read-only settings.
const FIXED: [(&str, &str); 7] = [
    ("client_encoding", "UTF8"),
    ("integer_datetimes", "on"),
    ("is_superuser", "off"),
    ("max_identifier_length", "63"),
    ("server_encoding", "UTF8"),
    ("server_version", SERVER_VERSION),
    ("server_version_num", "160000"),
];

/// Settings that the protocol reports at start and at each change, in its spelling.
pub(super) const REPORTED: [&str; 13] = [
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

/// The settings of a session.
#[derive(Debug, Default)]
pub(super) struct Settings {
    request_plus: bool,
    at_plus: Positions,
    statement_timeout_ms: u64,
    others: BTreeMap<String, String>,
    /// The positions of this session's writes.
    pub(super) written: Positions,
}

/// Positions in several buckets; as text they are separated by spaces.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Positions(BTreeMap<BucketId, WritePosition>);

impl Positions {
    fn parse(text: &str) -> Result<Self> {
        let mut positions = Self::default();
        for part in text.split_whitespace() {
            positions.add(part.parse()?);
        }
        Ok(positions)
    }

    /// Adds a later position.
    pub(super) fn add(&mut self, position: WritePosition) {
        match self.0.get_mut(&position.bucket) {
            Some(known) => known.merge(&position),
            None => {
                self.0.insert(position.bucket, position);
            }
        }
    }

    fn text(&self) -> String {
        self.0.values().map(WritePosition::to_string).collect::<Vec<_>>().join(" ")
    }
}

impl Settings {
    /// Changes a setting; `None` restores its default.
    pub(super) fn set(&mut self, name: &str, value: Option<&str>) -> Result<()> {
        match name {
            "consistency" => self.request_plus = parse_consistency(value.unwrap_or("any"))?,
            "at_plus" => self.at_plus = Positions::parse(value.unwrap_or(""))?,
            "statement_timeout" => self.statement_timeout_ms = parse_ms(value.unwrap_or("0"))?,
            "client_encoding" => check_encoding(value.unwrap_or("UTF8"))?,
            _ if name.contains('.') || ACCEPTED.iter().any(|(known, _)| *known == name) => {
                match value {
                    Some(value) => self.others.insert(name.to_owned(), value.to_owned()),
                    None => self.others.remove(name),
                };
            }
            _ if name == "write_position" || FIXED.iter().any(|(known, _)| *known == name) => {
                return Err(Error::new(
                    ErrorCode::InvalidParameter,
                    format!("setting {name} is read-only"),
                ));
            }
            _ => return Err(no_setting(name)),
        }
        Ok(())
    }

    /// Restores all defaults, but keeps the positions of the session's writes.
    pub(super) fn reset(&mut self) {
        let written = std::mem::take(&mut self.written);
        let authorization = self.others.remove("session_authorization");
        *self = Self { written, ..Self::default() };
        self.others.extend(authorization.map(|user| ("session_authorization".to_owned(), user)));
    }

    /// Returns the value of a setting.
    pub(super) fn show(&self, name: &str) -> Result<String> {
        let listed = |list: &[(&str, &str)]| {
            list.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Ok(match name {
            "consistency" => if self.request_plus { "request_plus" } else { "any" }.to_owned(),
            "at_plus" => self.at_plus.text(),
            "statement_timeout" => self.statement_timeout_ms.to_string(),
            "write_position" => self.written.text(),
            _ => {
                let set = self.others.get(name).cloned();
                set.or_else(|| listed(&ACCEPTED))
                    .or_else(|| listed(&FIXED))
                    .ok_or_else(|| no_setting(name))?
            }
        })
    }

    /// Returns all settings by name.
    pub(super) fn all(&self) -> Vec<(String, String)> {
        let ours = ["at_plus", "consistency", "statement_timeout", "write_position"];
        let mut names: Vec<String> = ACCEPTED
            .iter()
            .chain(&FIXED)
            .map(|(name, _)| *name)
            .chain(ours)
            .map(str::to_owned)
            .chain(self.others.keys().cloned())
            .collect();
        names.sort();
        names.dedup();
        names.into_iter().filter_map(|name| Some((name.clone(), self.show(&name).ok()?))).collect()
    }

    /// Returns the consistency of scans of a bucket. `request_plus` covers every acknowledged write, so it includes the
    /// positions in `at_plus`.
    pub(super) fn consistency(&self, bucket: BucketId) -> Consistency {
        match self.at_plus.0.get(&bucket) {
            _ if self.request_plus => Consistency::RequestPlus,
            Some(position) => Consistency::AtPlus(position.positions.clone()),
            None => Consistency::Any,
        }
    }

    /// Returns the time-out of statements, if there is one.
    pub(super) fn statement_timeout(&self) -> Option<Duration> {
        match self.statement_timeout_ms {
            0 => None,
            ms => Some(Duration::from_millis(ms)),
        }
    }
}

fn no_setting(name: &str) -> Error {
    unknown(format!("there is no setting {name}")).with_hint(
        "SHOW ALL lists them; Sextant's own are consistency, at_plus and statement_timeout",
    )
}

fn parse_consistency(value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "any" => Ok(false),
        "request_plus" => Ok(true),
        _ => Err(Error::new(
            ErrorCode::InvalidParameter,
            format!("consistency must be any or request_plus, not {value:?}"),
        )
        .with_hint("to read your own writes use SET at_plus = '…'")),
    }
}

/// Parses milliseconds, or a number with one of PostgreSQL's units.
fn parse_ms(value: &str) -> Result<u64> {
    let value = value.trim();
    let digits = value.find(|ch: char| !ch.is_ascii_digit()).unwrap_or(value.len());
    let factor = match value[digits..].trim() {
        "" | "ms" => Some(1),
        "s" => Some(1000),
        "min" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    let parsed =
        value[..digits].parse::<u64>().ok().zip(factor).and_then(|(n, f)| n.checked_mul(f));
    // PostgreSQL has the same bound: a signed 32-bit number of milliseconds.
    parsed.filter(|ms| *ms <= i32::MAX as u64).ok_or_else(|| {
        let text = format!("{value:?} is not a duration such as 500 or 30s");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_checked_kept_and_reset() {
        let mut settings = Settings::default();
        for (name, value, shown) in [
            ("consistency", "REQUEST_PLUS", "request_plus"),
            ("statement_timeout", "2s", "2000"),
            ("client_encoding", "utf-8", "UTF8"),
            ("application_name", "psql", "psql"),
            ("my.own", "x", "x"),
            ("at_plus", " 2:0/1/5 1:3/a/7 ", "1:3/a/7 2:0/1/5"),
        ] {
            settings.set(name, Some(value)).unwrap();
            assert_eq!(settings.show(name).unwrap(), shown, "{name}");
        }
        assert_eq!(settings.consistency(BucketId(1)), Consistency::RequestPlus);
        settings.set("consistency", None).unwrap();
        assert!(matches!(settings.consistency(BucketId(1)), Consistency::AtPlus(_)));
        assert_eq!(settings.consistency(BucketId(9)), Consistency::Any);
        for (name, value, state) in [
            ("consistency", "strong", "22023"),
            ("statement_timeout", "-1", "22023"),
            ("statement_timeout", "5 days", "22023"),
            ("client_encoding", "LATIN1", "0A000"),
            ("server_version", "17", "22023"),
            ("at_plus", "nonsense", "22023"),
            ("colour", "red", "42P01"),
        ] {
            assert_eq!(
                settings.set(name, Some(value)).unwrap_err().code.sqlstate(),
                state,
                "{name}"
            );
        }
        settings.reset();
        assert_eq!(settings.show("statement_timeout").unwrap(), "0");
        assert!(settings.all().iter().any(|(name, _)| name == "write_position"));
    }
}
