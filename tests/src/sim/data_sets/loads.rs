//! The loads of versions, and their cancellation.

use std::time::Duration;

use proto::model::catalog::Catalog;
use proto::model::data_set::{DataSet, Files};
use proto::model::ids::BucketId;
use proto::rpc::command::{CancelVersion, Command, LoadVersion, Outcome};
use proto::{Error, ErrorCode};
use tokio::time::{sleep, timeout};

use super::contents::{BROKEN_AT, is_broken, name, pattern};
use super::{DataSets, has_no_tokens};
use crate::sim::client::session::Session;
use crate::sim::client::workload::{STATEMENT, now};

/// The time for which a load is observed. A longer load delays the next one, and is mostly
/// cancelled.
const WATCHED: Duration = Duration::from_secs(8);
/// The maximum time between the beginning of a load and its cancellation, in milliseconds.
const CANCELLED_MS_MAX: u64 = 1_500;

impl DataSets {
    /// Loads versions one after another until the future is dropped.
    pub(super) async fn load(mut self, session: Session) {
        loop {
            sleep(Duration::from_millis(self.random.u64(200..2_500))).await;
            let catalog = session.router.catalog();
            let Some(set) = catalog.data_sets.get(&session.bucket.id) else { continue };
            let loading = set.loading().map(|(number, version)| (number, version.name.clone()));
            match loading {
                Some(loading) if self.random.u8(..3) == 0 => self.cancel(&session, loading).await,
                None if set.versions.len() >= self.enough() => {}
                _ => {
                    let count = self.next();
                    self.load_one(&session, count).await;
                }
            }
        }
    }

    /// Returns the number of versions after which no other is begun, because the version after the
    /// faults needs room: an index has at most four generations, including the one from before the
    /// first version, and tokens hold generations too.
    fn enough(&self) -> usize {
        if has_no_tokens(self.seed) { 3 } else { 2 }
    }

    async fn load_one(&mut self, session: &Session, count: u64) {
        let began = now();
        let Some(number) = self.begin(session, count).await else { return };
        if self.random.u8(..4) == 0 {
            sleep(Duration::from_millis(self.random.u64(..CANCELLED_MS_MAX))).await;
            return self.cancel(session, (number, name(count))).await;
        }
        let waiting = session.backend.wait_version(session.bucket.id, number);
        match timeout(WATCHED, waiting).await {
            Ok(Ok(())) if is_broken(count) => {
                self.violation(format!("version {} serves, though a row is broken", name(count)));
            }
            Ok(Ok(())) => self.count(|summary| summary.versions += 1),
            Ok(Err(error)) => self.judge_failure(count, began, &error),
            Err(_) => {}
        }
    }

    /// Begins to load a version; returns its number in the data set if it is known.
    pub(super) async fn begin(&self, session: &Session, count: u64) -> Option<u64> {
        let command = Command::LoadVersion(LoadVersion {
            bucket: session.bucket.id,
            version: name(count),
            files: Files { pattern: pattern(count), id: "id".into() },
            allow_empty: false,
        });
        match timeout(STATEMENT, session.backend.command(command.into())).await {
            Ok(Ok(Outcome::Version(_, number))) => Some(number),
            // Another version is loading, or there are too many.
            Ok(Err(error)) if error.is_retry() || error.code == ErrorCode::WrongState => None,
            Ok(other) => {
                self.violation(format!("LOAD VERSION '{}' ended with {other:?}", name(count)));
                None
            }
            Err(_) => None,
        }
    }

    /// Cancels a version if it is still being loaded.
    async fn cancel(&self, session: &Session, (number, version): (u64, String)) {
        let command = Command::CancelVersion(CancelVersion { bucket: session.bucket.id, version });
        let cancelled = timeout(STATEMENT, session.backend.command(command.into())).await;
        if let Ok(Ok(_)) = cancelled {
            self.cancelled.lock().expect("not poisoned").insert(number);
            self.count(|summary| summary.versions_cancelled += 1);
        }
    }

    /// Judges the error of a load. An unreadable row must be reported with its place; apart from
    /// that only a broken disk may end a load.
    fn judge_failure(&self, count: u64, began: Duration, error: &Error) {
        let is_excused = self.is_broken_since(began);
        let is_named = BROKEN_AT.iter().all(|place| error.message.contains(place));
        if error.code == ErrorCode::InvalidText && is_broken(count) && (is_named || is_excused) {
            return self.count(|summary| summary.versions_failed += 1);
        }
        if !error.is_retry() && !is_excused {
            self.violation(format!("the loading of version {} ended: {error}", name(count)));
        }
    }
}

/// Returns the data set in a catalog.
pub(super) fn set_of(catalog: &Catalog, id: BucketId) -> Option<&DataSet> {
    catalog.data_sets.get(&id)
}

/// Returns the number of the current version, or zero.
pub(super) fn current_of(catalog: &Catalog, id: BucketId) -> u64 {
    let current = set_of(catalog, id).and_then(DataSet::current);
    current.map_or(0, |(number, _)| number)
}
