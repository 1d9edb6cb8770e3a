//! One open transaction on this node: its place, and its parts by index.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use proto::lock::lock;
use proto::model::ids::{LocalIndexId, TransactionId, TransactionPlace};
use proto::model::index::IndexInfo;
use proto::rpc::mutation::TransactionBodies;
use proto::rpc::scan::OwnView;
use proto::{Error, ErrorCode, Result};

use crate::apply::documents::EpochDocuments;
use crate::late_commit::part::OwnPart;
use crate::late_commit::segments::segments;

/// Bytes of a transaction besides its parts.
const TRANSACTION_BYTES: u64 = 512;

/// The parts of a transaction, by index.
type Parts = BTreeMap<LocalIndexId, Arc<OwnPart>>;

/// The error of changes that do not continue at the transaction's place.
fn gap(id: TransactionId, at: TransactionPlace, what: String) -> Error {
    let text = format!("the changes of transaction {id} up to place {at} are here, {what}");
    Error::new(ErrorCode::DropData, text)
}

/// The part of a transaction in an index, as a view sees it.
pub enum Seen {
    /// The node has not come to the view's place.
    NotYet,
    /// The transaction was given up.
    GivenUp,
    /// The transaction's part; `None` if it has changed nothing there.
    Part(Option<Arc<OwnPart>>),
}

/// An open transaction. One caller at a time changes it; views look at it beside that.
pub struct OpenTransaction {
    id: TransactionId,
    /// Bytes of all open transactions of the node.
    total: Arc<AtomicU64>,
    state: Mutex<State>,
}

struct State {
    place: TransactionPlace,
    /// Places that were rolled back, ascending.
    gone: Vec<RangeInclusive<u64>>,
    /// `None` if the transaction was given up.
    parts: Option<Parts>,
    /// Bytes of this transaction in the total.
    bytes: u64,
}

impl OpenTransaction {
    /// A transaction without changes.
    pub fn new(id: TransactionId, total: Arc<AtomicU64>) -> Self {
        let (place, gone, parts) = (TransactionPlace(0), Vec::new(), Some(Parts::new()));
        total.fetch_add(TRANSACTION_BYTES, Ordering::Relaxed);
        let state = State { place, gone, parts, bytes: TRANSACTION_BYTES };
        Self { id, total, state: Mutex::new(state) }
    }

    /// Takes changes, which must continue at the transaction's place. Gives the transaction up if all transactions then exceed
    /// `bytes_max`.
    pub fn take(
        &self,
        bodies: &TransactionBodies,
        indexes: &BTreeMap<LocalIndexId, Arc<IndexInfo>>,
        bytes_max: u64,
    ) -> Result<()> {
        let (place, parts) = self.present();
        if place != bodies.from {
            return Err(gap(self.id, place, format!("and the next ones begin at {}", bodies.from)));
        }
        // The body alone may be larger than what is left: then nothing of it is worked on.
        let is_over =
            |more: u64| self.total.load(Ordering::Relaxed).saturating_add(more) > bytes_max;
        let mut parts = parts.filter(|_| !is_over(bodies.body.len() as u64));
        if let Some(parts) = &mut parts {
            for segment in segments(bodies)? {
                let documents = EpochDocuments::by_index(&segment)?;
                for (index, info) in indexes {
                    if documents.count_of_index(*index) > 0 {
                        let part = || Arc::new(OwnPart::new(Arc::clone(info)));
                        parts.entry(*index).or_insert_with(part).take(&documents, bodies.from)?;
                    }
                }
            }
        }
        // Only now: a view of the new place must find all of its changes.
        self.publish(bodies.to, parts);
        let has_full = |parts: &Parts| parts.values().any(|part| part.is_full());
        if is_over(0) || self.present().1.as_ref().is_some_and(has_full) {
            self.publish(bodies.to, None);
        }
        Ok(())
    }

    /// Goes back to an earlier place.
    pub fn go_back(&self, to: TransactionPlace) -> Result<()> {
        let (place, parts) = self.present();
        if to > place {
            return Err(gap(self.id, place, format!("and it goes back to {to}")));
        }
        if to == place {
            return Ok(());
        }
        let up_to = |(index, part): (LocalIndexId, Arc<OwnPart>)| -> Result<_> {
            Ok((index, Arc::new(part.up_to(to)?)))
        };
        let parts = parts.map(|parts| parts.into_iter().map(up_to).collect::<Result<Parts>>());
        self.publish(to, parts.transpose()?);
        let mut state = lock(&self.state);
        state.gone.retain(|gone| *gone.end() <= to.0);
        state.gone.push(to.0 + 1..=place.0);
        Ok(())
    }

    /// Removes the part of an index.
    pub fn leave(&self, index: LocalIndexId) {
        let (place, parts) = self.present();
        self.publish(
            place,
            parts.map(|mut parts| {
                parts.remove(&index);
                parts
            }),
        );
    }

    /// Looks for what a view sees of an index. `SnapshotTooOld` if the transaction was rolled back from the view's place.
    pub fn seen(&self, own: OwnView, index: Option<LocalIndexId>) -> Result<Seen> {
        let state = lock(&self.state);
        if state.gone.iter().any(|gone| gone.contains(&own.place.0)) {
            let text = format!("transaction {} was rolled back from place {}", self.id, own.place);
            return Err(Error::new(ErrorCode::SnapshotTooOld, text)
                .with_hint("read what the transaction has now"));
        }
        if state.place < own.place {
            return Ok(Seen::NotYet);
        }
        let part = |parts: &Parts| index.and_then(|index| parts.get(&index).cloned());
        Ok(state.parts.as_ref().map_or(Seen::GivenUp, |parts| Seen::Part(part(parts))))
    }

    fn present(&self) -> (TransactionPlace, Option<Parts>) {
        let state = lock(&self.state);
        (state.place, state.parts.clone())
    }

    /// Makes parts visible, and counts their bytes.
    fn publish(&self, place: TransactionPlace, parts: Option<Parts>) {
        let of_parts: u64 = parts.iter().flat_map(Parts::values).map(|part| part.bytes()).sum();
        let bytes = TRANSACTION_BYTES + of_parts;
        let mut state = lock(&self.state);
        self.total.fetch_add(bytes, Ordering::Relaxed);
        self.total.fetch_sub(state.bytes, Ordering::Relaxed);
        let before = std::mem::replace(&mut state.parts, parts);
        (state.place, state.bytes) = (place, bytes);
        drop(state);
        // Large parts are not freed under the lock, which views take.
        drop(before);
    }
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        self.total.fetch_sub(lock(&self.state).bytes, Ordering::Relaxed);
    }
}
