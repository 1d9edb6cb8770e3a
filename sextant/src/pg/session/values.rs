//! The values of a session's settings, and functions that change a value by its text.

use std::collections::BTreeMap;

use proto::model::cut::WritePosition;
use proto::model::ids::BucketId;
use proto::rpc::scan::HedgeAfter;
use proto::{Error, ErrorCode, Result};

use super::known_settings::{
    ACCEPTED, ConsistencySetting, FIXED, check, no_setting, parse_consistency, parse_hedge_after,
    parse_ms,
};

/// The maximum length of all settings with their names, in bytes.
pub(super) const SETTINGS_BYTES_MAX: usize = 16 << 10;

/// The settings that clients can show but not set.
pub(super) const SHOWN_ONLY: [&str; 3] = ["read_version", "transaction_id", "write_position"];

/// The setting with the name of the user.
const SESSION_AUTHORIZATION: &str = "session_authorization";

/// The setting that forbids writes in a transaction.
pub(in crate::pg) const TRANSACTION_READ_ONLY: &str = "transaction_read_only";

/// Returns true for a mode of a transaction, whose value ends with the transaction.
pub(super) fn is_transaction_mode(name: &str) -> bool {
    matches!(name, TRANSACTION_READ_ONLY | "transaction_isolation")
}

/// The values of all settings.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    pub(super) reads: ConsistencySetting,
    pub(super) at_plus: Positions,
    pub(super) statement_timeout_ms: u64,
    pub(super) hedge_after: HedgeAfter,
    pub(super) others: BTreeMap<String, String>,
}

impl Values {
    /// Changes a setting; `None` restores its default.
    fn set(&mut self, name: &str, value: Option<&str>) -> Result<()> {
        match name {
            "consistency" => self.reads = parse_consistency(value.unwrap_or("any"))?,
            "at_plus" => self.at_plus = Positions::parse(value.unwrap_or(""))?,
            "statement_timeout" => self.statement_timeout_ms = parse_ms(value.unwrap_or("0"))?,
            "hedge_after" => self.hedge_after = parse_hedge_after(value.unwrap_or("auto"))?,
            "client_encoding" => drop(check(name, value.unwrap_or("UTF8"))?),
            SESSION_AUTHORIZATION => self.set_user(value)?,
            _ if name.contains('.') || ACCEPTED.iter().any(|(known, _)| *known == name) => {
                match value {
                    Some(value) => {
                        self.check_length(name, value)?;
                        self.others.insert(name.to_owned(), check(name, value)?)
                    }
                    None => self.others.remove(name),
                };
            }
            _ if SHOWN_ONLY.contains(&name) || FIXED.iter().any(|(known, _)| *known == name) => {
                return Err(Error::new(
                    ErrorCode::InvalidParameter,
                    format!("setting {name} is read-only"),
                ));
            }
            _ => return Err(no_setting(name)),
        }
        Ok(())
    }

    /// Sets the name of the user. Another name than that of the log-in is an error.
    fn set_user(&mut self, name: Option<&str>) -> Result<()> {
        match (self.others.get(SESSION_AUTHORIZATION), name) {
            (None, Some(name)) => {
                self.others.insert(SESSION_AUTHORIZATION.to_owned(), name.to_owned());
                Ok(())
            }
            (Some(own), Some(name)) if own != name => {
                let what = format!("a session of user \"{own}\" cannot become one of \"{name}\"");
                Err(Error::new(ErrorCode::NotAllowed, what).with_hint("log in as that user"))
            }
            _ => Ok(()),
        }
    }

    /// Returns an error if the settings would become too long. Their length is limited because
    /// each savepoint stores them.
    fn check_length(&self, name: &str, value: &str) -> Result<()> {
        let others = self.others.iter().filter(|(other, _)| *other != name);
        let bytes: usize = others.map(|(name, value)| name.len() + value.len()).sum();
        if bytes + name.len() + value.len() <= SETTINGS_BYTES_MAX {
            return Ok(());
        }
        let what = format!("the settings of a session have at most {SETTINGS_BYTES_MAX} bytes");
        Err(Error::new(ErrorCode::OverLimit, what).with_hint("RESET those that are not needed"))
    }

    /// Returns the approximate memory of the values, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let positions = self.at_plus.0.values().map(|at| size_of_val(&*at.positions));
        let others = self.others.iter().map(|(name, value)| name.len() + value.len());
        size_of::<Self>() + positions.chain(others).sum::<usize>()
    }

    /// Restores the value of a setting from the start of the session.
    fn reset(&mut self, name: &str, started: &Self) -> Result<()> {
        self.set(name, None)?;
        match name {
            "consistency" => self.reads = started.reads,
            "at_plus" => self.at_plus = started.at_plus.clone(),
            "statement_timeout" => self.statement_timeout_ms = started.statement_timeout_ms,
            "hedge_after" => self.hedge_after = started.hedge_after,
            _ => {
                let other = started.others.get_key_value(name);
                self.others.extend(other.map(|(name, value)| (name.clone(), value.clone())));
            }
        }
        Ok(())
    }

    /// Restores all settings except the name of the user and the modes of an open transaction.
    pub(super) fn reset_all(&mut self, started: &Self) {
        let is_kept = |name: &str| name == SESSION_AUTHORIZATION || is_transaction_mode(name);
        let mut kept = std::mem::take(&mut self.others);
        kept.retain(|name, _| is_kept(name));
        *self = started.clone();
        self.others.extend(kept);
    }

    /// Sets a value; `None` restores the value from the start of the session.
    pub(super) fn change(&mut self, name: &str, value: Option<&str>, started: &Self) -> Result<()> {
        match value {
            Some(_) => self.set(name, value),
            None => self.reset(name, started),
        }
    }
}

/// Positions of writes in several buckets. Their text has spaces between the positions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Positions(pub(super) BTreeMap<BucketId, WritePosition>);

impl Positions {
    /// Parses positions from text.
    fn parse(text: &str) -> Result<Self> {
        let mut positions = Self::default();
        for part in text.split_whitespace() {
            positions.add(part.parse()?);
        }
        Ok(positions)
    }

    /// Adds the position of a later write.
    pub(super) fn add(&mut self, position: WritePosition) {
        match self.0.get_mut(&position.bucket) {
            Some(known) => known.merge(&position),
            None => {
                self.0.insert(position.bucket, position);
            }
        }
    }

    /// Returns the positions as text, as `SHOW` prints them.
    pub(super) fn text(&self) -> String {
        self.0.values().map(WritePosition::to_string).collect::<Vec<_>>().join(" ")
    }
}
