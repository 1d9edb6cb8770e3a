//! One open transaction on this node: the number of changes received so far (its *place*), and the
//! changes in each index (its *parts*).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use proto::lock::lock;
use proto::model::ids::{LocalIndexId, TransactionId, TransactionPlace};
use proto::model::index::IndexInfo;
use proto::plant::{self, Plant};
use proto::rpc::mutation::{ChangesDigest, CommitMarker, UncommittedChanges};
use proto::rpc::scan::UncommittedView;
use proto::{Error, ErrorCode, Result};

use crate::apply::documents::EpochDocuments;
use crate::late_commit::changes::part::TransactionChanges;
use crate::late_commit::changes::segments::split_into_segments;
use crate::late_commit::changes::usage::Usage;
use crate::late_commit::commit_rows::prepared::Preparation;

/// Fixed memory of a transaction in bytes, without its changes.
const TRANSACTION_BYTES: u64 = 512;

/// The changes of a transaction, by index.
pub type ChangesByIndex = BTreeMap<LocalIndexId, Arc<TransactionChanges>>;

/// Returns the error of changes that do not continue after the transaction's last received change.
fn not_continued(id: TransactionId, at: TransactionPlace, what: String) -> Error {
    let text = format!("the changes of transaction {id} up to place {at} are here, {what}");
    Error::new(ErrorCode::DropData, text)
}

/// The reasons for dropping the changes of a transaction before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// The transaction used the most memory when all transactions together exceeded the limit.
    Memory,
    /// The transaction used the most disk space when all transactions together exceeded the limit.
    Disk,
    /// The transaction's changes could not be written to disk or read from disk.
    DiskFailed,
}

/// The changes of a transaction in one index, for a scan that reads them, or the reason why there
/// are none.
pub enum VisibleChanges {
    /// The node has not received all changes that the scan needs.
    NotYet,
    /// The changes were dropped for this reason.
    GivenUp(GivenUp),
    /// The changes; `None` if the transaction has changed nothing in the index.
    Part(Option<Arc<TransactionChanges>>),
}

/// An open transaction. Only one caller at a time adds changes; at the same time scans may read
/// them and a spill may write them to disk.
pub struct OpenTransaction {
    id: TransactionId,
    usage: Arc<Usage>,
    state: Mutex<TransactionState>,
    preparation: Preparation,
}

/// The changes received so far.
struct TransactionState {
    place: TransactionPlace,
    /// The digest of the messages received so far.
    digest: ChangesDigest,
    /// Ranges of places whose changes were rolled back, ascending.
    gone: Vec<RangeInclusive<u64>>,
    parts: std::result::Result<ChangesByIndex, GivenUp>,
    /// Memory that is counted for this transaction in the memory of all transactions, in bytes.
    bytes: u64,
}

impl OpenTransaction {
    /// Creates a transaction without changes.
    pub fn new(id: TransactionId, usage: Arc<Usage>) -> Self {
        let (place, gone, parts) = (TransactionPlace(0), Vec::new(), Ok(ChangesByIndex::new()));
        usage.memory.fetch_add(TRANSACTION_BYTES, Ordering::Relaxed);
        let digest = ChangesDigest::default();
        let state = TransactionState { place, digest, gone, parts, bytes: TRANSACTION_BYTES };
        Self { id, usage, state: Mutex::new(state), preparation: Preparation::default() }
    }

    /// Adds changes. `DropData` if they do not continue after the last received change.
    pub fn add_changes(
        &self,
        bodies: &UncommittedChanges,
        indexes: &BTreeMap<LocalIndexId, Arc<IndexInfo>>,
    ) -> Result<()> {
        self.preparation.void_if_begun();
        let (place, digest, parts) = self.present_changes();
        if place != bodies.from {
            return Err(not_continued(
                self.id,
                place,
                format!("and the next ones begin at {}", bodies.from),
            ));
        }
        let place = (bodies.to, digest.with_changes(bodies));
        // A transaction that was given up only moves its place.
        let Ok(mut parts) = parts else {
            self.publish(place, ChangesByIndex::new());
            return Ok(());
        };
        for segment in split_into_segments(bodies)? {
            let documents = EpochDocuments::by_index(&segment)?;
            for (index, info) in indexes {
                if documents.count_of_index(*index) == 0 {
                    continue;
                }
                let part = || Arc::new(TransactionChanges::new(Arc::clone(info)));
                let part = parts.entry(*index).or_insert_with(part);
                if let Err(error) = part.add_changes(&documents, bodies.from) {
                    // The stream continues, so that no other transaction is affected.
                    self.fail(&error);
                    self.publish(place, ChangesByIndex::new());
                    return Ok(());
                }
            }
        }
        // Not earlier, because a view of the new place must find all of its changes.
        let is_full = parts.values().any(|part| part.is_full());
        self.publish(place, parts);
        if is_full {
            self.give_up(GivenUp::Memory);
        }
        Ok(())
    }

    /// Returns the present changes by index; an error if they were dropped.
    pub fn present_parts(&self) -> std::result::Result<ChangesByIndex, GivenUp> {
        lock(&self.state).parts.clone()
    }

    /// Undoes the changes after the place `to`.
    pub fn roll_back(&self, to: TransactionPlace) -> Result<()> {
        self.preparation.void_if_begun();
        let (place, digest, parts) = self.present_changes();
        if to > place {
            return Err(not_continued(self.id, place, format!("and it goes back to {to}")));
        }
        let to_place = (to, digest.with_rollback(to));
        if to == place {
            lock(&self.state).digest = to_place.1;
            return Ok(());
        }
        let up_to = |(index, part): (LocalIndexId, Arc<TransactionChanges>)| -> Result<_> {
            let is_kept = plant::is(Plant::SavepointKept);
            Ok((index, if is_kept { part } else { Arc::new(part.rolled_back_to(to)?) }))
        };
        let parts = parts.unwrap_or_default();
        self.publish(to_place, parts.into_iter().map(up_to).collect::<Result<_>>()?);
        let mut state = lock(&self.state);
        state.gone.retain(|gone| *gone.end() <= to.0);
        state.gone.push(to.0 + 1..=place.0);
        Ok(())
    }

    /// Removes the changes in an index. Returns them, because they may own files, which the caller
    /// must drop.
    pub fn remove_index(&self, index: LocalIndexId) -> Option<Arc<TransactionChanges>> {
        let mut state = lock(&self.state);
        let part = state.parts.as_mut().ok().and_then(|parts| parts.remove(&index));
        self.count(&mut state);
        part
    }

    /// Returns the transaction's changes in an index for a scan that reads them up to the place of
    /// `own`. The error is `SnapshotTooOld` if the change at that place was rolled back.
    pub fn changes_for_view(
        &self,
        own: UncommittedView,
        index: Option<LocalIndexId>,
    ) -> Result<VisibleChanges> {
        let state = lock(&self.state);
        if state.gone.iter().any(|gone| gone.contains(&own.place.0)) {
            let text = format!("transaction {} was rolled back from place {}", self.id, own.place);
            return Err(Error::new(ErrorCode::SnapshotTooOld, text)
                .with_hint("read what the transaction has now"));
        }
        if state.place < own.place {
            return Ok(VisibleChanges::NotYet);
        }
        let part = |parts: &ChangesByIndex| index.and_then(|index| parts.get(&index).cloned());
        Ok(match &state.parts {
            Ok(parts) => VisibleChanges::Part(part(parts)),
            Err(why) => VisibleChanges::GivenUp(*why),
        })
    }

    /// Drops the changes, so that scans of the transaction fail from now on. Returns false if they
    /// were dropped before.
    pub fn give_up(&self, why: GivenUp) -> bool {
        let mut state = lock(&self.state);
        if state.parts.is_err() {
            return false;
        }
        let parts = std::mem::replace(&mut state.parts, Err(why));
        self.count(&mut state);
        drop(state);
        self.usage.given_up.fetch_add(1, Ordering::Relaxed);
        tracing::info!(transaction = %self.id, ?why, "gave up the changes of an open transaction");
        // Large parts are not freed under the lock, which views take.
        drop(parts);
        true
    }

    /// Drops the changes because of `error`, a failed read or write of their files.
    pub fn fail(&self, error: &Error) {
        if self.give_up(GivenUp::DiskFailed) {
            tracing::warn!(
                transaction = %self.id, %error,
                "the changes of an open transaction cannot be kept on disk; its own scans fail until its commit"
            );
        }
    }

    /// Returns the memory use in bytes.
    pub fn bytes(&self) -> u64 {
        lock(&self.state).bytes
    }

    /// Returns the bytes of memory that are freed when the changes are dropped.
    pub fn row_bytes(&self) -> u64 {
        self.bytes() - TRANSACTION_BYTES
    }

    /// Returns the size of the changes on disk, in bytes.
    pub fn disk_bytes(&self) -> u64 {
        self.parts().iter().map(|part| part.disk_bytes()).sum()
    }

    /// Returns the changes, one value for each index.
    pub fn parts(&self) -> Vec<Arc<TransactionChanges>> {
        let state = lock(&self.state);
        state.parts.iter().flat_map(ChangesByIndex::values).cloned().collect()
    }

    /// Counts the memory again, after changes were written to disk.
    pub fn recount(&self) {
        self.count(&mut lock(&self.state));
    }

    /// Returns the progress of writing the rows ahead of the commit.
    pub fn preparation(&self) -> &Preparation {
        &self.preparation
    }

    /// Returns the changes by index. An error if the last received change is not at the place
    /// `last`, or if the changes were dropped.
    pub fn parts_at(&self, last: TransactionPlace) -> Result<ChangesByIndex> {
        let state = lock(&self.state);
        match &state.parts {
            Ok(parts) if state.place == last => Ok(parts.clone()),
            Ok(_) => {
                Err(not_continued(self.id, state.place, format!("and its last place is {last}")))
            }
            Err(why) => {
                Err(not_continued(self.id, state.place, format!("but were given up ({why:?})")))
            }
        }
    }

    /// Returns the changes of a committed transaction by index; an error if they are not exactly
    /// those that the marker names.
    pub fn committed(&self, marker: &CommitMarker) -> Result<ChangesByIndex> {
        let state = lock(&self.state);
        let is_whole = (state.place, state.digest) == (marker.place, marker.digest);
        match &state.parts {
            Ok(parts) if is_whole => Ok(parts.clone()),
            Ok(_) => Err(not_continued(
                self.id,
                state.place,
                format!("and it was committed at {}", marker.place),
            )),
            Err(why) => {
                Err(not_continued(self.id, state.place, format!("but were given up ({why:?})")))
            }
        }
    }

    /// Returns the place of the last change, the digest of the messages, and the changes by index.
    fn present_changes(
        &self,
    ) -> (TransactionPlace, ChangesDigest, std::result::Result<ChangesByIndex, GivenUp>) {
        let state = lock(&self.state);
        (state.place, state.digest, state.parts.clone())
    }

    /// Makes changes visible, unless they were dropped meanwhile, and counts their memory.
    fn publish(&self, place: (TransactionPlace, ChangesDigest), parts: ChangesByIndex) {
        let mut state = lock(&self.state);
        (state.place, state.digest) = place;
        let before = match &mut state.parts {
            Ok(present) => std::mem::replace(present, parts),
            Err(_) => parts,
        };
        self.count(&mut state);
        drop(state);
        // A preparation that has begun meanwhile has the earlier parts.
        self.preparation.void_if_begun();
        // Large parts are not freed under the lock, which views take.
        drop(before);
    }

    /// Counts the memory of the changes again.
    fn count(&self, state: &mut MutexGuard<'_, TransactionState>) {
        let of_parts: u64 =
            state.parts.iter().flat_map(ChangesByIndex::values).map(|part| part.bytes()).sum();
        let bytes = TRANSACTION_BYTES + of_parts;
        self.usage.memory.fetch_add(bytes, Ordering::Relaxed);
        self.usage.memory.fetch_sub(state.bytes, Ordering::Relaxed);
        state.bytes = bytes;
    }
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        self.usage.memory.fetch_sub(lock(&self.state).bytes, Ordering::Relaxed);
    }
}
