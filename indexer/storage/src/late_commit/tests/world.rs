//! A small store with open transactions, and the expected contents of their views.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::env::Env;
use proto::model::ids::{Epoch, LocalIndexId, TransactionId, TransactionPlace};

use super::checking::*;
use super::testing::*;
use crate::engine::storage_engine::StorageEngine;
use crate::late_commit::store::LateCommitStore;
use crate::options::StoreOptions;
use crate::read::snapshot::Snapshot;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;

/// Number of documents of the bucket.
pub const DOCUMENTS: u64 = 60;

pub fn id(document: u64) -> String {
    format!("document {document:03} {}", "x".repeat(30))
}

pub fn options(memory: u64, disk: u64) -> StoreOptions {
    StoreOptions {
        open_transactions_bytes_max: Some(memory),
        open_transactions_disk_bytes_max: Some(disk),
        ..StoreOptions::default()
    }
}

/// Returns the seeds of a test; `SEED=n` in the environment selects a single one.
pub fn seeds(count: u64) -> std::ops::Range<u64> {
    match std::env::var("SEED").ok().map(|text| text.parse().expect("a number")) {
        Some(seed) => seed..seed + 1,
        None => 0..count,
    }
}

/// A store with both indexes, its expected contents, and open views.
pub struct World {
    pub store: StorageEngine,
    /// Documents by epoch; the first element is epoch 1, without documents.
    pub epochs: Vec<Documents>,
    /// The changes of each open transaction, with their places.
    pub open: BTreeMap<u64, Vec<(u64, String, State)>>,
    pub held: Vec<Held>,
}

impl World {
    pub async fn new(env: &Env, options: StoreOptions) -> Self {
        let store = built(env, options, Grouping::Together).await;
        Self { store, epochs: vec![Documents::new()], open: BTreeMap::new(), held: Vec::new() }
    }

    /// A world whose documents are in fragments.
    pub async fn filled(env: &Env, options: StoreOptions, dice: &mut Dice) -> Self {
        let mut world = Self::new(env, options).await;
        let all = (0..DOCUMENTS).map(|document| (id(document), dice.state())).collect();
        world.epoch(all).await;
        world.store.flush().await.unwrap();
        world
    }

    pub fn late(&self) -> &Arc<LateCommitStore> {
        self.store.late_commit()
    }

    pub async fn epoch(&mut self, changes: Documents) {
        let mut next = self.epochs.last().unwrap().clone();
        let packed = body((1..).zip(&changes).map(|(n, (id, state))| (n, id.as_str(), state)));
        next.extend(changes);
        self.epochs.push(next);
        self.store.apply(epoch(self.epochs.len() as u64, packed)).await.unwrap();
    }

    /// Sends one message with changes of a transaction, each of a given document.
    pub fn write(&mut self, transaction: u64, changes: Vec<(u64, State)>) {
        let all = self.open.entry(transaction).or_default();
        let from = all.last().map_or(0, |change| change.0);
        let message: Vec<_> =
            (from + 1..).zip(changes).map(|(at, (n, state))| (at, id(n), state)).collect();
        let to = from + message.len() as u64;
        let packed = body(message.iter().map(|(at, id, state)| (at - from, id.as_str(), state)));
        all.extend(message);
        self.late().add_changes(BUCKET, &bodies(transaction, from, to, packed)).unwrap();
    }

    pub fn write_some(&mut self, transaction: u64, count: u64, dice: &mut Dice) {
        let changes = (0..count).map(|_| (dice.roll(DOCUMENTS), dice.state())).collect();
        self.write(transaction, changes);
    }

    pub fn back_to(&mut self, transaction: u64, to: u64) {
        self.open.get_mut(&transaction).unwrap().retain(|change| change.0 <= to);
        let (id, to) = (TransactionId(transaction), TransactionPlace(to));
        self.late().roll_back(BUCKET, id, to).unwrap();
    }

    /// Ends a transaction; returns the last state of each document that it has changed.
    pub fn end(&mut self, transaction: u64) -> Documents {
        self.late().end_transactions(BUCKET, &[TransactionId(transaction)]);
        let changes = self.open.remove(&transaction).unwrap();
        changes.into_iter().map(|(_, id, state)| (id, state)).collect()
    }

    pub fn snapshot(
        &self,
        index: LocalIndexId,
        epoch: u64,
        transaction: u64,
        place: u64,
    ) -> proto::Result<Arc<dyn Snapshot>> {
        self.store.snapshot_of_transaction(index, Epoch(epoch), Some(own(transaction, place)))
    }

    /// Returns the view of a transaction at a place, with its expected rows.
    pub fn view(&self, index: LocalIndexId, epoch: u64, transaction: u64, place: u64) -> Held {
        let mut expected = self.epochs[epoch as usize - 1].clone();
        for (_, id, state) in self.open[&transaction].iter().filter(|change| change.0 <= place) {
            expected.insert(id.clone(), state.clone());
        }
        let snapshot = self.snapshot(index, epoch, transaction, place).unwrap();
        Held { snapshot, index, expected }
    }

    /// Opens a view of each transaction, at any epoch and place.
    pub fn hold(&mut self, dice: &mut Dice) {
        for (transaction, changes) in &self.open {
            let all = changes.len() as u64;
            let at = if dice.roll(2) == 0 { all - 1 } else { dice.roll(all) };
            let place = changes[at as usize].0;
            let epoch = 1 + dice.roll(self.epochs.len() as u64);
            let index = [BY_ID, BY_EXPR][dice.roll(2) as usize];
            let view = self.view(index, epoch, *transaction, place);
            self.held.push(view);
        }
    }

    /// Reads all open views, and each epoch outside of the transactions.
    pub fn check(&self, dice: &mut Dice) {
        self.held.iter().for_each(|held| check(held, dice));
        for (epoch, documents) in (1..).zip(&self.epochs) {
            for index in [BY_ID, BY_EXPR] {
                let snapshot = self.store.snapshot(index, Epoch(epoch)).unwrap();
                check(&Held { snapshot, index, expected: documents.clone() }, dice);
            }
        }
    }
}
