//! The settings of a session: Sextant's own, and those of PostgreSQL that drivers set or read at start.
//!
//! `SET` belongs to its transaction: ROLLBACK undoes it, COMMIT keeps it, and `SET LOCAL` ends with both. So an open transaction keeps the
//! values for both of its possible ends. They are shared with the present ones until one of them changes, so a transaction and a savepoint
//! cost no copy.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proto::model::cut::WritePosition;
use proto::model::ids::{BucketId, TransactionId};
use proto::rpc::scan::{Consistency, HedgeAfter};
use proto::{Error, ErrorCode, Result};

use super::floors::{Floors, at_least};
use super::known_settings::{
    ACCEPTED, FIXED, IDLE_IN_TRANSACTION_MS, Reads, check, is_shown, no_setting, parse_consistency,
    parse_hedge_after, parse_ms,
};

/// Maximum length of all settings with their names.
const SETTINGS_BYTES_MAX: usize = 16 << 10;

/// Settings of a session that only it changes.
const SHOWN_ONLY: [&str; 3] = ["read_version", "transaction_id", "write_position"];

/// The settings of a session.
#[derive(Debug, Default)]
pub(in crate::pg) struct Settings {
    now: Arc<Values>,
    /// The values of the start-up packet, which RESET restores.
    started: Arc<Values>,
    /// In a transaction: the values after its end.
    after: Option<After>,
    /// Counts the calls that may change a value.
    changes: u64,
    /// The positions of this session's writes.
    written: Positions,
    /// The epochs below which its scans do not go back.
    pub(in crate::pg) floors: Floors,
    /// The version of a data set that it has read last, by its name.
    pub(in crate::pg) read_version: String,
    /// The last transaction of this session that has written.
    pub(super) transaction: Option<TransactionId>,
    /// The default of `idle_session_timeout`.
    pub(in crate::pg) idle_session: Option<Duration>,
}

/// The values of settings.
#[derive(Clone, Debug, Default)]
struct Values {
    reads: Reads,
    at_plus: Positions,
    statement_timeout_ms: u64,
    hedge_after: HedgeAfter,
    others: BTreeMap<String, String>,
}

/// The settings at a savepoint.
#[derive(Clone, Debug)]
pub(in crate::pg) struct SavedSettings {
    now: Arc<Values>,
    /// The values after a commit.
    commit: Option<Arc<Values>>,
}

impl SavedSettings {
    /// True if the values are the same as those of another savepoint, which are in memory once.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let commits = self.commit.as_ref().zip(other.commit.as_ref());
        Arc::ptr_eq(&self.now, &other.now)
            && commits.is_none_or(|(one, other)| Arc::ptr_eq(one, other))
    }

    /// About the memory of the values.
    pub(super) fn bytes(&self) -> usize {
        self.now.bytes() + self.commit.as_ref().map_or(0, |values| values.bytes())
    }
}

/// The values after the end of a transaction.
#[derive(Debug)]
struct After {
    commit: Arc<Values>,
    rollback: Arc<Values>,
}

/// Positions in several buckets; as text they are separated by spaces.
#[derive(Clone, Debug, Default, PartialEq)]
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
                        self.check_room(name, value)?;
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

    /// Sets the name of the user, which a session has from its log-in to its end.
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

    /// Refuses a value for which the session has no room: each savepoint keeps the settings.
    fn check_room(&self, name: &str, value: &str) -> Result<()> {
        let others = self.others.iter().filter(|(other, _)| *other != name);
        let bytes: usize = others.map(|(name, value)| name.len() + value.len()).sum();
        if bytes + name.len() + value.len() <= SETTINGS_BYTES_MAX {
            return Ok(());
        }
        let what = format!("the settings of a session have at most {SETTINGS_BYTES_MAX} bytes");
        Err(Error::new(ErrorCode::OverLimit, what).with_hint("RESET those that are not needed"))
    }

    /// About their memory.
    fn bytes(&self) -> usize {
        let positions = self.at_plus.0.values().map(|at| size_of_val(&*at.positions));
        let others = self.others.iter().map(|(name, value)| name.len() + value.len());
        size_of::<Self>() + positions.chain(others).sum::<usize>()
    }

    /// Restores a setting as the session has begun with it.
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

    /// Restores all settings but the name of the user and the modes of an open transaction.
    fn reset_all(&mut self, started: &Self) {
        let is_kept = |name: &str| name == SESSION_AUTHORIZATION || is_of_transaction(name);
        let mut kept = std::mem::take(&mut self.others);
        kept.retain(|name, _| is_kept(name));
        *self = started.clone();
        self.others.extend(kept);
    }

    fn change(&mut self, name: &str, value: Option<&str>, started: &Self) -> Result<()> {
        match value {
            Some(_) => self.set(name, value),
            None => self.reset(name, started),
        }
    }
}

/// The setting that bounds the time for which a transaction waits for its client.
const IDLE_IN_TRANSACTION: &str = "idle_in_transaction_session_timeout";

/// The setting that bounds the time for which a session waits for a statement.
const IDLE_SESSION: &str = "idle_session_timeout";

/// The setting that has the name of the user.
const SESSION_AUTHORIZATION: &str = "session_authorization";

/// The setting that forbids writes to a transaction.
pub(in crate::pg) const TRANSACTION_READ_ONLY: &str = "transaction_read_only";

/// A mode of a transaction ends with it.
fn is_of_transaction(name: &str) -> bool {
    matches!(name, TRANSACTION_READ_ONLY | "transaction_isolation")
}

impl Settings {
    /// Records the settings of the start-up packet.
    pub(in crate::pg) fn start(&mut self) {
        self.started = Arc::clone(&self.now);
    }

    /// Changes a setting; `None` restores the value at the session's begin. Inside a transaction the change ends with ROLLBACK, a local one with
    /// COMMIT too.
    pub(in crate::pg) fn set(
        &mut self,
        name: &str,
        value: Option<&str>,
        local: bool,
    ) -> Result<()> {
        if value.is_none() && is_of_transaction(name) {
            let what = format!("parameter \"{name}\" cannot be reset");
            return Err(Error::new(ErrorCode::Unsupported, what));
        }
        let local = local || is_of_transaction(name);
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

    /// Restores the values at the session's begin, but keeps the positions of the session's writes.
    pub(in crate::pg) fn reset(&mut self) {
        self.changes += 1;
        Arc::make_mut(&mut self.now).reset_all(&self.started);
        if let Some(after) = &mut self.after {
            Arc::make_mut(&mut after.commit).reset_all(&self.started);
        }
    }

    /// Begins a transaction, with its own modes from the defaults.
    pub(super) fn begin(&mut self) {
        let [commit, rollback] = [(); 2].map(|()| Arc::clone(&self.now));
        self.after = Some(After { commit, rollback });
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
            self.become_values(if commit { after.commit } else { after.rollback });
        }
    }

    fn become_values(&mut self, values: Arc<Values>) {
        if !Arc::ptr_eq(&self.now, &values) {
            self.changes += 1;
            self.now = values;
        }
    }

    /// True in a transaction, also in an implicit one.
    pub(super) fn has_begun(&self) -> bool {
        self.after.is_some()
    }

    /// The values that `ROLLBACK TO` restores.
    pub(in crate::pg) fn savepoint(&self) -> SavedSettings {
        let commit = self.after.as_ref().map(|after| Arc::clone(&after.commit));
        SavedSettings { now: Arc::clone(&self.now), commit }
    }

    /// Undoes the changes since a savepoint of the present transaction.
    pub(in crate::pg) fn back_to(&mut self, saved: &SavedSettings) {
        self.become_values(Arc::clone(&saved.now));
        if let (Some(after), Some(commit)) = (&mut self.after, &saved.commit) {
            after.commit = Arc::clone(commit);
        }
    }

    /// The time for which an open transaction may wait for its client, if it is limited.
    pub(in crate::pg) fn idle_in_transaction(&self) -> Option<Duration> {
        let value = self.now.others.get(IDLE_IN_TRANSACTION).map(String::as_str);
        let ms = value.unwrap_or(IDLE_IN_TRANSACTION_MS).parse().unwrap_or(0);
        (ms > 0).then(|| Duration::from_millis(ms))
    }

    /// The time for which the session may wait for a statement, if it is limited.
    pub(in crate::pg) fn idle_session(&self) -> Option<Duration> {
        match self.now.others.get(IDLE_SESSION) {
            None => self.idle_session,
            Some(value) => value.parse().ok().filter(|ms| *ms > 0).map(Duration::from_millis),
        }
    }

    /// True if statements must not write: by the transaction's mode, or by the default for transactions.
    pub(in crate::pg) fn is_read_only(&self) -> bool {
        let name = match self.after {
            Some(_) => TRANSACTION_READ_ONLY,
            None => "default_transaction_read_only",
        };
        self.now.others.get(name).is_some_and(|value| value == "on")
    }

    /// A number that changes whenever a value may have changed.
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
                // Outside of a transaction, the mode of the next one.
                let default = name.strip_prefix("transaction_").filter(|_| is_of_transaction(name));
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

    /// Returns the consistency of scans of a bucket. `request_plus` covers every acknowledged write, so it includes the
    /// positions in `at_plus`.
    pub(super) fn consistency(&self, bucket: BucketId) -> Consistency {
        match self.now.at_plus.0.get(&bucket) {
            _ if self.now.reads == Reads::RequestPlus => Consistency::RequestPlus,
            Some(position) => Consistency::AtPlus(position.positions.clone()),
            None => Consistency::Any,
        }
    }

    /// The consistency of the first scan of a read-only transaction, in all buckets; `None` if it needs the newest moment, because the
    /// session requires it, has written, or has positions of other buckets.
    pub(super) fn consistency_at_first(&self, bucket: BucketId) -> Option<Consistency> {
        let has_others = self.now.at_plus.0.keys().any(|of| *of != bucket);
        let has_others = has_others || self.keeps_floors() && self.floors.has_others(bucket);
        let needs_newest =
            self.now.reads == Reads::RequestPlus || !self.written.0.is_empty() || has_others;
        (!needs_newest).then(|| match self.consistency(bucket) {
            Consistency::Any if self.keeps_floors() => at_least(self.floors.of_bucket(bucket)),
            other => other,
        })
    }

    /// True if scans without a position must not go back.
    pub(super) fn keeps_floors(&self) -> bool {
        self.now.reads == Reads::Any
    }

    /// Records the position of a write.
    pub(in crate::pg) fn note_write(&mut self, position: WritePosition) {
        self.floors.note_write(position.clone());
        self.written.add(position);
    }

    /// True if the client gets messages of a severity.
    pub(in crate::pg) fn shows(&self, severity: &str) -> bool {
        let level = self.now.others.get("client_min_messages").map_or("notice", String::as_str);
        is_shown(level, severity)
    }

    /// The digits to which doubles are rounded in text; `None` for all that they need.
    pub(in crate::pg) fn float_digits(&self) -> Option<usize> {
        let extra: i32 = self.now.others.get("extra_float_digits")?.parse().ok()?;
        (extra <= 0).then(|| usize::try_from(15 + extra).unwrap_or(1).max(1))
    }

    /// When scans query another copy in addition to a slow node.
    pub(in crate::pg) fn hedge_after(&self) -> HedgeAfter {
        self.now.hedge_after
    }

    /// Returns the time-out of statements, if there is one.
    pub(in crate::pg) fn statement_timeout(&self) -> Option<Duration> {
        match self.now.statement_timeout_ms {
            0 => None,
            ms => Some(Duration::from_millis(ms)),
        }
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
            ("hedge_after", "Off", "off"),
            ("hedge_after", "30ms", "30"),
            ("client_encoding", "utf-8", "UTF8"),
            ("application_name", "psql", "psql"),
            ("my.own", "x", "x"),
            ("client_min_messages", "Debug", "debug2"),
            ("datestyle", "iso, dmy", "ISO, DMY"),
            ("extra_float_digits", " 0", "0"),
            ("timezone", "europe/berlin", "Europe/Berlin"),
            ("timezone", "-5", "<-05>+05"),
            ("timezone", "5.5", "<+05:30>-05:30"),
            ("timezone", "GMT-03:00", "GMT-03:00"),
            ("intervalstyle", "ISO_8601", "iso_8601"),
            ("synchronous_commit", "Remote_Apply", "remote_apply"),
            ("work_mem", "64MB", "64MB"),
            ("jit", "true", "on"),
            ("at_plus", " 2:0/1/5 1:3/a/7 ", "1:3/a/7 2:0/1/5"),
        ] {
            settings.set(name, Some(value), false).unwrap();
            assert_eq!(settings.show(name).unwrap(), shown, "{name}");
        }
        assert_eq!(settings.consistency(BucketId(1)), Consistency::RequestPlus);
        settings.set("consistency", None, false).unwrap();
        assert!(matches!(settings.consistency(BucketId(1)), Consistency::AtPlus(_)));
        assert_eq!(settings.consistency(BucketId(9)), Consistency::Any);
        for (name, value, state) in [
            ("consistency", "strong", "22023"),
            ("statement_timeout", "-1", "22023"),
            ("hedge_after", "0", "22023"),
            ("hedge_after", "soon", "22023"),
            ("statement_timeout", "5 days", "22023"),
            ("client_encoding", "LATIN1", "0A000"),
            ("server_version", "17", "22023"),
            ("at_plus", "nonsense", "22023"),
            ("colour", "red", "42704"),
            ("default_transaction_read_only", "perhaps", "22023"),
            ("default_transaction_isolation", "snapshot", "22023"),
            ("standard_conforming_strings", "off", "0A000"),
            ("idle_session_timeout", "-5", "22023"),
            ("client_min_messages", "loud", "22023"),
            ("datestyle", "German", "0A000"),
            ("datestyle", "tomorrow", "22023"),
            ("extra_float_digits", "4", "22023"),
            ("timezone", "Europe/Atlantis", "22023"),
            ("timezone", "PST", "22023"),
            ("timezone", "200", "22023"),
            ("intervalstyle", "german", "22023"),
            ("work_mem", "abc", "22023"),
            ("work_mem", "1kB", "22023"),
            ("jit", "perhaps", "22023"),
            ("lock_timeout", "soon", "22023"),
            ("synchronous_commit", "later", "22023"),
        ] {
            assert_eq!(
                settings.set(name, Some(value), false).unwrap_err().code.sqlstate(),
                state,
                "{name}"
            );
        }
        settings.reset();
        assert_eq!(settings.show("statement_timeout").unwrap(), "0");
        assert!(settings.all().iter().any(|(name, _)| name == "write_position"));
    }

    #[test]
    fn a_change_ends_with_rollback_and_a_local_one_with_commit_too() {
        let shown = |settings: &Settings| {
            ["application_name", "statement_timeout", "transaction_read_only"]
                .map(|name| settings.show(name).unwrap())
        };
        let mut settings = Settings::default();
        settings.set("application_name", Some("before"), false).unwrap();
        settings.set("default_transaction_read_only", Some("1"), false).unwrap();
        for commit in [false, true] {
            settings.begin();
            settings.set("application_name", Some("kept"), false).unwrap();
            settings.set("statement_timeout", Some("1s"), true).unwrap();
            settings.set("transaction_read_only", Some("off"), false).unwrap();
            assert_eq!(shown(&settings), ["kept", "1000", "off"]);
            assert!(!settings.is_read_only());
            settings.end(commit);
            let name = if commit { "kept" } else { "before" };
            assert_eq!(shown(&settings), [name, "0", "on"]);
            assert!(settings.is_read_only());
        }
        settings.set("statement_timeout", Some("1s"), true).unwrap();
        assert_eq!(settings.show("statement_timeout").unwrap(), "0", "there is no transaction");
        settings.begin();
        settings.reset();
        settings.end(false);
        assert_eq!(settings.show("application_name").unwrap(), "kept");
    }

    #[test]
    fn a_reset_restores_the_values_of_the_start_up_packet() {
        let given = [
            ("application_name", "pool", "psql"),
            ("default_transaction_read_only", "on", "off"),
            ("statement_timeout", "5000", "7"),
            ("hedge_after", "30", "off"),
            ("consistency", "request_plus", "any"),
            ("at_plus", "1:3/a/7", ""),
            ("my.own", "x", "y"),
        ];
        let shown = |settings: &Settings| given.map(|(name, ..)| settings.show(name).unwrap());
        let mut settings = Settings::default();
        for (name, value, _) in given {
            settings.set(name, Some(value), false).unwrap();
        }
        settings.start();
        let begin = shown(&settings);
        let change = |settings: &mut Settings| {
            for (name, _, other) in given {
                settings.set(name, Some(other), false).unwrap();
            }
            settings.set("work_mem", Some("64MB"), false).unwrap();
            shown(settings)
        };
        let changed = change(&mut settings);
        assert!(begin.iter().zip(&changed).all(|(one, other)| one != other), "{changed:?}");
        for (name, ..) in given {
            settings.set(name, None, false).unwrap();
        }
        assert_eq!(shown(&settings), begin, "RESET name");
        change(&mut settings);
        settings.reset();
        assert_eq!(shown(&settings), begin, "RESET ALL");
        assert_eq!(settings.show("work_mem").unwrap(), "4MB", "a default");
        for commit in [false, true] {
            change(&mut settings);
            settings.begin();
            settings.reset();
            settings.end(commit);
            assert_eq!(&shown(&settings), if commit { &begin } else { &changed });
        }
    }

    #[test]
    fn a_value_that_is_refused_does_not_come_with_the_end_of_the_transaction() {
        let (mut settings, long) = (Settings::default(), "x".repeat(SETTINGS_BYTES_MAX * 2 / 3));
        settings.begin();
        settings.set("my.own", Some(&long), true).unwrap();
        assert!(settings.set("my.other", Some(&long), false).is_err());
        settings.end(true);
        assert_eq!(settings.show("my.other").ok(), Settings::default().show("my.other").ok());
    }

    #[test]
    fn a_transaction_keeps_its_modes_over_reset_all() {
        let mut settings = Settings::default();
        settings.begin();
        settings.set("transaction_read_only", Some("on"), false).unwrap();
        settings.reset();
        assert!(settings.is_read_only());
        settings.end(true);
        assert!(!settings.is_read_only());
    }
}
