//! One open transaction on this node: its place, and its parts by index.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use proto::lock::lock;
use proto::model::ids::{LocalIndexId, TransactionId, TransactionPlace};
use proto::model::index::IndexInfo;
use proto::plant::{self, Plant};
use proto::rpc::mutation::{BodiesDigest, CommitMarker, TransactionBodies};
use proto::rpc::scan::OwnView;
use proto::{Error, ErrorCode, Result};

use crate::apply::documents::EpochDocuments;
use crate::late_commit::changes::part::OwnPart;
use crate::late_commit::changes::segments::segments;
use crate::late_commit::changes::usage::Usage;
use crate::late_commit::commit_rows::prepared::Preparation;

/// Fixed memory of a transaction in bytes, without its parts.
const TRANSACTION_BYTES: u64 = 512;

/// The parts of a transaction, by index.
pub type Parts = BTreeMap<LocalIndexId, Arc<OwnPart>>;

/// The error of changes that do not continue at the transaction's place.
fn gap(id: TransactionId, at: TransactionPlace, what: String) -> Error {
    let text = format!("the changes of transaction {id} up to place {at} are here, {what}");
    Error::new(ErrorCode::DropData, text)
}

/// The reasons for which a transaction is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// The transaction used the most memory when all transactions together exceeded the limit.
    Memory,
    /// The transaction used the most disk space when all transactions together exceeded the limit.
    Disk,
    /// The transaction's changes could not be written to disk or read from disk.
    DiskFailed,
}

/// The part of a transaction that a view reads in an index.
pub enum TransactionPart {
    /// The node has not reached the view's place.
    NotYet,
    /// The transaction was given up.
    GivenUp(GivenUp),
    /// The transaction's part; `None` if the transaction has changed nothing in the index.
    Part(Option<Arc<OwnPart>>),
}

/// An open transaction. One caller at a time changes it; concurrently, views read it and a spill
/// writes its parts.
pub struct OpenTransaction {
    id: TransactionId,
    usage: Arc<Usage>,
    state: Mutex<State>,
    preparation: Preparation,
}

struct State {
    place: TransactionPlace,
    /// The digest of the messages up to the place.
    digest: BodiesDigest,
    /// Places that were rolled back, ascending.
    gone: Vec<RangeInclusive<u64>>,
    parts: std::result::Result<Parts, GivenUp>,
    /// Bytes of this transaction that are counted in the memory of all transactions.
    bytes: u64,
}

impl OpenTransaction {
    /// A transaction without changes.
    pub fn new(id: TransactionId, usage: Arc<Usage>) -> Self {
        let (place, gone, parts) = (TransactionPlace(0), Vec::new(), Ok(Parts::new()));
        usage.memory.fetch_add(TRANSACTION_BYTES, Ordering::Relaxed);
        let digest = BodiesDigest::default();
        let state = State { place, digest, gone, parts, bytes: TRANSACTION_BYTES };
        Self { id, usage, state: Mutex::new(state), preparation: Preparation::default() }
    }

    /// Adds changes, which must continue at the transaction's place; `DropData` otherwise.
    pub fn take(
        &self,
        bodies: &TransactionBodies,
        indexes: &BTreeMap<LocalIndexId, Arc<IndexInfo>>,
    ) -> Result<()> {
        self.preparation.void_what_is_written();
        let (place, digest, parts) = self.present();
        if place != bodies.from {
            return Err(gap(self.id, place, format!("and the next ones begin at {}", bodies.from)));
        }
        let place = (bodies.to, digest.with_bodies(bodies));
        // A transaction that was given up only moves its place.
        let Ok(mut parts) = parts else {
            self.publish(place, Parts::new());
            return Ok(());
        };
        for segment in segments(bodies)? {
            let documents = EpochDocuments::by_index(&segment)?;
            for (index, info) in indexes {
                if documents.count_of_index(*index) == 0 {
                    continue;
                }
                let part = || Arc::new(OwnPart::new(Arc::clone(info)));
                let part = parts.entry(*index).or_insert_with(part);
                if let Err(error) = part.take(&documents, bodies.from) {
                    // The stream continues, so that no other transaction is affected.
                    self.fail(&error);
                    self.publish(place, Parts::new());
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

    /// Returns the present parts; an error if the transaction was given up.
    pub fn present_parts(&self) -> std::result::Result<Parts, GivenUp> {
        lock(&self.state).parts.clone()
    }

    /// Rolls the transaction back to an earlier place.
    pub fn go_back(&self, to: TransactionPlace) -> Result<()> {
        self.preparation.void_what_is_written();
        let (place, digest, parts) = self.present();
        if to > place {
            return Err(gap(self.id, place, format!("and it goes back to {to}")));
        }
        let to_place = (to, digest.with_back(to));
        if to == place {
            lock(&self.state).digest = to_place.1;
            return Ok(());
        }
        let up_to = |(index, part): (LocalIndexId, Arc<OwnPart>)| -> Result<_> {
            let is_kept = plant::is(Plant::SavepointKept);
            Ok((index, if is_kept { part } else { Arc::new(part.up_to(to)?) }))
        };
        let parts = parts.unwrap_or_default();
        self.publish(to_place, parts.into_iter().map(up_to).collect::<Result<_>>()?);
        let mut state = lock(&self.state);
        state.gone.retain(|gone| *gone.end() <= to.0);
        state.gone.push(to.0 + 1..=place.0);
        Ok(())
    }

    /// Removes the part of an index, and returns it, since it may own files.
    pub fn leave(&self, index: LocalIndexId) -> Option<Arc<OwnPart>> {
        let mut state = lock(&self.state);
        let part = state.parts.as_mut().ok().and_then(|parts| parts.remove(&index));
        self.count(&mut state);
        part
    }

    /// Returns the part of the transaction that a view reads in an index. The error is `SnapshotTooOld` if the transaction was rolled back
    /// from the view's place.
    pub fn seen(&self, own: OwnView, index: Option<LocalIndexId>) -> Result<TransactionPart> {
        let state = lock(&self.state);
        if state.gone.iter().any(|gone| gone.contains(&own.place.0)) {
            let text = format!("transaction {} was rolled back from place {}", self.id, own.place);
            return Err(Error::new(ErrorCode::SnapshotTooOld, text)
                .with_hint("read what the transaction has now"));
        }
        if state.place < own.place {
            return Ok(TransactionPart::NotYet);
        }
        let part = |parts: &Parts| index.and_then(|index| parts.get(&index).cloned());
        Ok(match &state.parts {
            Ok(parts) => TransactionPart::Part(part(parts)),
            Err(why) => TransactionPart::GivenUp(*why),
        })
    }

    /// Drops the rows, so that the transaction's own views fail from now on. Returns false if it
    /// was given up before.
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

    /// Gives the transaction up after `error`, a failed read or write of its files.
    pub fn fail(&self, error: &Error) {
        if self.give_up(GivenUp::DiskFailed) {
            tracing::warn!(
                transaction = %self.id, %error,
                "the changes of an open transaction cannot be kept on disk; its own scans fail until its commit"
            );
        }
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> u64 {
        lock(&self.state).bytes
    }

    /// Bytes in memory that are freed when the transaction ends or is given up.
    pub fn row_bytes(&self) -> u64 {
        self.bytes() - TRANSACTION_BYTES
    }

    /// Bytes of files.
    pub fn disk_bytes(&self) -> u64 {
        self.parts().iter().map(|part| part.disk_bytes()).sum()
    }

    /// The transaction's parts, one for each index.
    pub fn parts(&self) -> Vec<Arc<OwnPart>> {
        let state = lock(&self.state);
        state.parts.iter().flat_map(Parts::values).cloned().collect()
    }

    /// Recomputes the bytes in memory, after a part was spilled.
    pub fn recount(&self) {
        self.count(&mut lock(&self.state));
    }

    /// Returns the state of the rows that are written ahead of the commit.
    pub fn preparation(&self) -> &Preparation {
        &self.preparation
    }

    /// Returns the parts if the transaction has reached its last place `last` and was not given up.
    pub fn parts_at(&self, last: TransactionPlace) -> Result<Parts> {
        let state = lock(&self.state);
        match &state.parts {
            Ok(parts) if state.place == last => Ok(parts.clone()),
            Ok(_) => Err(gap(self.id, state.place, format!("and its last place is {last}"))),
            Err(why) => Err(gap(self.id, state.place, format!("but were given up ({why:?})"))),
        }
    }

    /// Returns the parts of the transaction that a marker has committed; an error if any of its
    /// changes are missing.
    pub fn committed(&self, marker: &CommitMarker) -> Result<Parts> {
        let state = lock(&self.state);
        let is_whole = (state.place, state.digest) == (marker.place, marker.digest);
        match &state.parts {
            Ok(parts) if is_whole => Ok(parts.clone()),
            Ok(_) => {
                Err(gap(self.id, state.place, format!("and it was committed at {}", marker.place)))
            }
            Err(why) => Err(gap(self.id, state.place, format!("but were given up ({why:?})"))),
        }
    }

    fn present(&self) -> (TransactionPlace, BodiesDigest, std::result::Result<Parts, GivenUp>) {
        let state = lock(&self.state);
        (state.place, state.digest, state.parts.clone())
    }

    /// Makes parts visible, unless the transaction was given up meanwhile, and counts their bytes.
    fn publish(&self, place: (TransactionPlace, BodiesDigest), parts: Parts) {
        let mut state = lock(&self.state);
        (state.place, state.digest) = place;
        let before = match &mut state.parts {
            Ok(present) => std::mem::replace(present, parts),
            Err(_) => parts,
        };
        self.count(&mut state);
        drop(state);
        // A preparation that has begun meanwhile has the earlier parts.
        self.preparation.void_what_is_written();
        // Large parts are not freed under the lock, which views take.
        drop(before);
    }

    fn count(&self, state: &mut MutexGuard<'_, State>) {
        let of_parts: u64 =
            state.parts.iter().flat_map(Parts::values).map(|part| part.bytes()).sum();
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
