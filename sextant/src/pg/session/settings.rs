//! The settings of a session: Sextant's settings, and the settings of PostgreSQL that drivers set
//! or read when they connect.
//!
//! `SET` belongs to its transaction: ROLLBACK undoes it, COMMIT keeps it, and the effect of `SET
//! LOCAL` ends with either. An open transaction therefore stores the values after a commit and
//! after a rollback. Equal values are shared, so a transaction or a savepoint needs no copy.

use std::sync::Arc;
use std::time::Duration;

use proto::model::cut::WritePosition;
use proto::model::ids::{BucketId, TransactionId};
use proto::rpc::scan::{Consistency, HedgeAfter};
use proto::{Error, ErrorCode, Result};

use super::floors::{Floors, at_least};
use super::known_settings::{
    ACCEPTED, ConsistencySetting, FIXED, IDLE_IN_TRANSACTION_MS, is_shown, no_setting,
};
use super::values::{Positions, SHOWN_ONLY, TRANSACTION_READ_ONLY, Values, is_transaction_mode};

/// The setting that limits the time for which a transaction waits for its client.
const IDLE_IN_TRANSACTION: &str = "idle_in_transaction_session_timeout";

/// The setting that limits the time for which a session waits for a statement.
const IDLE_SESSION: &str = "idle_session_timeout";

/// The settings of a session.
#[derive(Debug, Default)]
pub(in crate::pg) struct Settings {
    now: Arc<Values>,
    /// The values at the start of the session, which RESET restores.
    started: Arc<Values>,
    /// The values that will be valid after the end of the transaction; `None` outside of a
    /// transaction.
    after: Option<EndValues>,
    /// The number of calls that may have changed a value, by which callers detect changes.
    changes: u64,
    /// The positions of this session's writes.
    written: Positions,
    /// The oldest epochs that the session's scans may read.
    pub(in crate::pg) floors: Floors,
    /// The name of the version of a data set that the session has read last.
    pub(in crate::pg) read_version: String,
    /// The session's last transaction that has written.
    pub(super) transaction: Option<TransactionId>,
    /// The default of `idle_session_timeout`.
    pub(in crate::pg) idle_session: Option<Duration>,
}

/// The settings at the time of a savepoint.
#[derive(Clone, Debug)]
pub(in crate::pg) struct SavedSettings {
    now: Arc<Values>,
    /// The values after a commit; `None` if they equal the present values.
    commit: Option<Arc<Values>>,
}

impl SavedSettings {
    /// Returns true if the values are shared with those of another savepoint.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let commits = self.commit.as_ref().zip(other.commit.as_ref());
        Arc::ptr_eq(&self.now, &other.now)
            && commits.is_none_or(|(one, other)| Arc::ptr_eq(one, other))
    }

    /// Returns the approximate memory of the values, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.now.bytes() + self.commit.as_ref().map_or(0, |values| values.bytes())
    }
}

/// The values of the settings after the transaction, for a commit and for a rollback.
#[derive(Debug)]
struct EndValues {
    commit: Arc<Values>,
    rollback: Arc<Values>,
}

impl Settings {
    /// Records the present values as those at the start of the session.
    pub(in crate::pg) fn start(&mut self) {
        self.started = Arc::clone(&self.now);
    }

    /// Changes a setting; `None` restores the value at the start of the session. In a
    /// transaction, ROLLBACK undoes the change. If the change is local, COMMIT undoes it too.
    pub(in crate::pg) fn set(
        &mut self,
        name: &str,
        value: Option<&str>,
        local: bool,
    ) -> Result<()> {
        if value.is_none() && is_transaction_mode(name) {
            let what = format!("parameter \"{name}\" cannot be reset");
            return Err(Error::new(ErrorCode::Unsupported, what));
        }
        let local = local || is_transaction_mode(name);
        self.changes += 1;
        let started = &self.started;
        let mut now = Values::clone(&self.now);
        now.change(name, value, started)?;
        match &mut self.after {
            Some(after) if !local => {
                Arc::make_mut(&mut after.commit).change(name, value, started)?;
            }
            // Without a transaction, a local change ends at once.
            None if local => return Ok(()),
            _ => {}
        }
        self.now = Arc::new(now);
        Ok(())
    }

    /// Restores the values at the start of the session, except the positions of the session's
    /// writes.
    pub(in crate::pg) fn reset(&mut self) {
        self.changes += 1;
        Arc::make_mut(&mut self.now).reset_all(&self.started);
        if let Some(after) = &mut self.after {
            Arc::make_mut(&mut after.commit).reset_all(&self.started);
        }
    }

    /// Begins a transaction, whose modes have the default values.
    pub(super) fn begin(&mut self) {
        let [commit, rollback] = [(); 2].map(|()| Arc::clone(&self.now));
        self.after = Some(EndValues { commit, rollback });
        for (mode, default) in [
            (TRANSACTION_READ_ONLY, "default_transaction_read_only"),
            ("transaction_isolation", "default_transaction_isolation"),
        ] {
            if let Some(value) = self.now.others.get(default).cloned() {
                self.changes += 1;
                Arc::make_mut(&mut self.now).others.insert(mode.to_owned(), value);
            }
        }
    }

    /// Ends the transaction, if there is one.
    pub(super) fn end(&mut self, commit: bool) {
        if let Some(after) = self.after.take() {
            self.replace_values(if commit { after.commit } else { after.rollback });
        }
    }

    /// Replaces the present values.
    fn replace_values(&mut self, values: Arc<Values>) {
        if !Arc::ptr_eq(&self.now, &values) {
            self.changes += 1;
            self.now = values;
        }
    }

    /// Returns true in a transaction, explicit or implicit.
    pub(super) fn has_begun(&self) -> bool {
        self.after.is_some()
    }

    /// Returns the values that `ROLLBACK TO` restores.
    pub(in crate::pg) fn savepoint(&self) -> SavedSettings {
        let commit = self.after.as_ref().map(|after| Arc::clone(&after.commit));
        SavedSettings { now: Arc::clone(&self.now), commit }
    }

    /// Undoes the changes since a savepoint of the present transaction.
    pub(in crate::pg) fn rollback_to(&mut self, saved: &SavedSettings) {
        self.replace_values(Arc::clone(&saved.now));
        if let (Some(after), Some(commit)) = (&mut self.after, &saved.commit) {
            after.commit = Arc::clone(commit);
        }
    }

    /// Returns the time for which an open transaction may wait for its client; `None` for no limit.
    pub(in crate::pg) fn idle_in_transaction(&self) -> Option<Duration> {
        let value = self.now.others.get(IDLE_IN_TRANSACTION).map(String::as_str);
        let ms = value.unwrap_or(IDLE_IN_TRANSACTION_MS).parse().unwrap_or(0);
        (ms > 0).then(|| Duration::from_millis(ms))
    }

    /// Returns the time for which the session may wait for a statement; `None` for no limit.
    pub(in crate::pg) fn idle_session(&self) -> Option<Duration> {
        match self.now.others.get(IDLE_SESSION) {
            None => self.idle_session,
            Some(value) => value.parse().ok().filter(|ms| *ms > 0).map(Duration::from_millis),
        }
    }

    /// Returns true if statements must not write. The mode of the transaction determines this;
    /// outside of a transaction the default mode.
    pub(in crate::pg) fn is_read_only(&self) -> bool {
        let name = match self.after {
            Some(_) => TRANSACTION_READ_ONLY,
            None => "default_transaction_read_only",
        };
        self.now.others.get(name).is_some_and(|value| value == "on")
    }

    /// Returns a number that increases whenever a value may have changed.
    pub(in crate::pg) fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the value of a setting.
    pub(in crate::pg) fn show(&self, name: &str) -> Result<String> {
        let listed = |list: &[(&str, &str)]| {
            list.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Ok(match name {
            "consistency" => self.now.reads.name().to_owned(),
            "at_plus" => self.now.at_plus.text(),
            "statement_timeout" => self.now.statement_timeout_ms.to_string(),
            "hedge_after" => match self.now.hedge_after {
                HedgeAfter::Usual => "auto".to_owned(),
                HedgeAfter::Never => "off".to_owned(),
                HedgeAfter::Millis(ms) => ms.to_string(),
            },
            "write_position" => self.written.text(),
            "read_version" => self.read_version.clone(),
            IDLE_SESSION => self
                .idle_session()
                .map_or_else(|| "0".to_owned(), |idle| idle.as_millis().to_string()),
            "transaction_id" => self.transaction.map(|id| id.to_string()).unwrap_or_default(),
            _ => {
                // Outside of a transaction, this shows the mode of the next transaction.
                let default =
                    name.strip_prefix("transaction_").filter(|_| is_transaction_mode(name));
                let default = default.map(|mode| format!("default_transaction_{mode}"));
                let set = self.now.others.get(name);
                let set = set.or_else(|| self.now.others.get(default.as_deref()?)).cloned();
                set.or_else(|| listed(&ACCEPTED))
                    .or_else(|| listed(&FIXED))
                    .ok_or_else(|| no_setting(name))?
            }
        })
    }

    /// Returns all settings by name.
    pub(in crate::pg) fn all(&self) -> Vec<(String, String)> {
        let ours = ["at_plus", "consistency", "hedge_after", "statement_timeout"]
            .into_iter()
            .chain(SHOWN_ONLY);
        let mut names: Vec<String> = ACCEPTED
            .iter()
            .chain(&FIXED)
            .map(|(name, _)| *name)
            .chain(ours)
            .map(str::to_owned)
            .chain(self.now.others.keys().cloned())
            .collect();
        names.sort();
        names.dedup();
        names.into_iter().filter_map(|name| Some((name.clone(), self.show(&name).ok()?))).collect()
    }

    /// Returns the consistency of scans of a bucket. `request_plus` covers every acknowledged
    /// write, so it also covers the positions that `at_plus` requires.
    pub(super) fn consistency(&self, bucket: BucketId) -> Consistency {
        match self.now.at_plus.0.get(&bucket) {
            _ if self.now.reads == ConsistencySetting::RequestPlus => Consistency::RequestPlus,
            Some(position) => Consistency::AtPlus(position.positions.clone()),
            None => Consistency::Any,
        }
    }

    /// Returns the consistency of the first scan of a read-only transaction. The chosen moment
    /// applies to all buckets. Returns `None` if the transaction needs the newest epochs, because
    /// the session requires them, has written, or requires positions of other buckets.
    pub(super) fn consistency_at_first(&self, bucket: BucketId) -> Option<Consistency> {
        let has_others = self.now.at_plus.0.keys().any(|of| *of != bucket);
        let has_others = has_others || self.keeps_floors() && self.floors.has_read_others(bucket);
        let needs_newest = self.now.reads == ConsistencySetting::RequestPlus
            || !self.written.0.is_empty()
            || has_others;
        (!needs_newest).then(|| match self.consistency(bucket) {
            Consistency::Any if self.keeps_floors() => {
                at_least(self.floors.floor_of_bucket(bucket))
            }
            other => other,
        })
    }

    /// Returns true if scans must not read older epochs than earlier scans of the session.
    pub(super) fn keeps_floors(&self) -> bool {
        self.now.reads == ConsistencySetting::Any
    }

    /// Records the position of a write.
    pub(in crate::pg) fn note_write(&mut self, position: WritePosition) {
        self.floors.note_write(position.clone());
        self.written.add(position);
    }

    /// Returns true if the client gets messages of a severity.
    pub(in crate::pg) fn shows(&self, severity: &str) -> bool {
        let level = self.now.others.get("client_min_messages").map_or("notice", String::as_str);
        is_shown(level, severity)
    }

    /// Returns the number of digits to which doubles are rounded in text; `None` for all digits.
    pub(in crate::pg) fn float_digits(&self) -> Option<usize> {
        let extra: i32 = self.now.others.get("extra_float_digits")?.parse().ok()?;
        (extra <= 0).then(|| usize::try_from(15 + extra).unwrap_or(1).max(1))
    }

    /// Returns the time after which a scan queries another copy in addition to a slow node.
    pub(in crate::pg) fn hedge_after(&self) -> HedgeAfter {
        self.now.hedge_after
    }

    /// Returns the time-out of statements; `None` if there is none.
    pub(in crate::pg) fn statement_timeout(&self) -> Option<Duration> {
        match self.now.statement_timeout_ms {
            0 => None,
            ms => Some(Duration::from_millis(ms)),
        }
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
