//! The client's state of a transaction in progress.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proto::Result;
use proto::model::catalog::Catalog;
use proto::model::cut::{Cut, WritePosition};
use proto::model::ids::{BucketId, Epoch, TransactionPlace};
use proto::rpc::scan::UncommittedView;
use serde_json::Value;
use sextant::access::{BucketTransaction, EpochPin};

/// The changes of a transaction that its scan must include.
#[derive(Clone, Default)]
pub(in crate::sim) struct Own {
    /// The view of the scan; `None` without changes.
    pub view: Option<UncommittedView>,
    /// The last change of each document up to the place.
    pub changes: BTreeMap<String, Option<String>>,
    /// The positions that the transaction's epoch must cover.
    pub at_least: Option<WritePosition>,
    fate: Arc<Fate>,
}

/// The events in a transaction after the place of a scan.
#[derive(Default)]
struct Fate {
    /// True if the transaction has made further changes.
    is_passed: AtomicBool,
    /// True if the transaction has ended, or was rolled back to before the place.
    is_gone: AtomicBool,
}

impl Own {
    /// Applies the changes to the documents of an epoch.
    pub fn put_over(&self, documents: &mut BTreeMap<String, Value>) {
        for (id, document) in &self.changes {
            match document {
                Some(text) => {
                    let document = serde_json::from_str(text).expect("JSON");
                    documents.insert(id.clone(), document);
                }
                None => drop(documents.remove(id)),
            }
        }
    }

    /// True if the scan may be refused, because its place no longer exists in the transaction.
    pub fn is_gone(&self) -> bool {
        self.view.is_some() && self.fate.is_gone.load(Ordering::Relaxed)
    }

    /// True if the transaction has made further changes since the scan began.
    pub fn is_passed(&self) -> bool {
        self.fate.is_passed.load(Ordering::Relaxed)
    }
}

/// The last change of a document in a transaction.
#[derive(Clone, Debug)]
pub(super) struct Left {
    pub id: String,
    /// The document; `None` for a deletion.
    pub document: Option<String>,
    /// True if the first change was an INSERT.
    pub was_inserted: bool,
}

/// The epoch that a transaction reads, with its documents.
pub(super) struct Snapshot {
    pin: Box<dyn EpochPin>,
    pub cut: Arc<Cut>,
    /// The documents of the cut.
    pub documents: BTreeMap<String, Value>,
    /// The positions that the epoch must cover.
    pub at_least: Option<WritePosition>,
}

impl Snapshot {
    pub fn new(
        pin: Box<dyn EpochPin>,
        cut: Arc<Cut>,
        documents: BTreeMap<String, Value>,
        at_least: Option<WritePosition>,
    ) -> Self {
        Self { pin, cut, documents, at_least }
    }

    pub fn epoch(&self) -> Epoch {
        self.pin.epoch()
    }

    /// Returns the catalog of the transaction's first read.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.pin.catalog()
    }

    /// Leases the epoch of another bucket at the transaction's moment.
    pub async fn pin_at(&self, bucket: BucketId, timeout_ms: u64) -> Result<Box<dyn EpochPin>> {
        self.pin.pin_at(bucket, timeout_ms).await
    }
}

/// The client's state of a transaction in progress.
pub(super) struct Running {
    pub changes: Arc<dyn BucketTransaction>,
    /// The number of its commit in the client's history.
    pub statement: usize,
    pub snapshot: Option<Snapshot>,
    /// The effective writes of a commit, in the order of the last change of each document.
    pub left: Vec<Left>,
    /// The ids that the transaction has read or changed.
    pub hot: Vec<String>,
    pub steps_left: usize,
    /// True if its last statement was refused.
    pub is_failed: bool,
    /// True if its last step was a rollback to a savepoint.
    pub went_back: bool,
    /// The number of documents that the transaction has written.
    documents: usize,
    saved: Vec<(TransactionPlace, Vec<Left>)>,
    /// The scans of the transaction, each with its place.
    views: Vec<(TransactionPlace, Arc<Fate>)>,
}

impl Running {
    pub fn new(changes: Arc<dyn BucketTransaction>, statement: usize, steps_left: usize) -> Self {
        Self {
            changes,
            statement,
            snapshot: None,
            left: Vec::new(),
            hot: Vec::new(),
            steps_left,
            is_failed: false,
            went_back: false,
            documents: 0,
            saved: Vec::new(),
            views: Vec::new(),
        }
    }

    pub fn epoch(&self) -> Option<Epoch> {
        self.snapshot.as_ref().map(Snapshot::epoch)
    }

    pub fn place(&self) -> TransactionPlace {
        self.changes.own_changes().map(|own| own.place).unwrap_or_default()
    }

    /// Returns the mark of the next document.
    pub fn mark(&mut self) -> String {
        self.documents += 1;
        format!("{}.{}", self.statement, self.documents - 1)
    }

    /// True if the transaction sees a document; `None` if it reads the present document.
    pub fn exists(&self, id: &str) -> Option<bool> {
        let own = self.left.iter().find(|left| left.id == id);
        let own = own.map(|left| left.document.is_some());
        own.or_else(|| self.snapshot.as_ref().map(|seen| seen.documents.contains_key(id)))
    }

    /// Records an effective change.
    pub fn change(&mut self, id: String, document: Option<String>, is_insert: bool) {
        let before = self.left.iter().position(|left| left.id == id);
        let before = before.map(|at| self.left.remove(at));
        let was_inserted = before.map_or(is_insert, |before| before.was_inserted);
        self.left.push(Left { id, document, was_inserted });
        self.views.iter().for_each(|(_, fate)| fate.is_passed.store(true, Ordering::Relaxed));
    }

    /// Returns the present changes of the transaction, for a scan.
    pub fn own(&mut self) -> Own {
        let fate = Arc::<Fate>::default();
        self.views.push((self.place(), Arc::clone(&fate)));
        let changes = self.left.iter().map(|left| (left.id.clone(), left.document.clone()));
        let at_least = self.snapshot.as_ref().and_then(|seen| seen.at_least.clone());
        Own { view: self.changes.own_changes(), changes: changes.collect(), at_least, fate }
    }

    /// Sets a savepoint.
    pub fn save(&mut self) {
        self.saved.push((self.place(), self.left.clone()));
    }

    pub fn savepoints(&self) -> usize {
        self.saved.len()
    }

    /// Removes the changes after a savepoint, and the later savepoints; returns the place of the
    /// savepoint.
    pub fn back(&mut self, savepoint: usize) -> TransactionPlace {
        self.saved.truncate(savepoint + 1);
        let (place, left) = self.saved[savepoint].clone();
        self.left = left;
        self.leave(place);
        place
    }

    /// Records that the places after `to` were rolled back.
    pub fn leave(&mut self, to: TransactionPlace) {
        for (place, fate) in &self.views {
            fate.is_passed.store(true, Ordering::Relaxed);
            if *place > to {
                fate.is_gone.store(true, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.leave(TransactionPlace(0));
    }
}
