//! The nodes of a run with moves, each with its store, and the documents that they index.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use proto::env::Env;
use proto::env::sim::{SimFs, Turns, world};
use proto::model::ids::{Epoch, Generation, IndexId, LocalIndexId, NodeId, SliceNo};
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};
use proto::rpc::scan::KeyRange;
use storage::log::LogOptions;
use storage::{EpochBatch, SliceStore, StorageEngine, StoreOptions};

use super::shape::Known;
use super::{BUCKET, wait_for_work};

/// The index of such a run.
pub(super) const INDEX: LocalIndexId =
    LocalIndexId { index: IndexId(1), generation: Generation(3) };
/// Entries, each with its included values.
pub(super) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// The contents of each document, each with the epoch from which it counts; `None` for an absent
/// document.
pub(super) type Documents = BTreeMap<String, Vec<(u64, Option<u64>)>>;

/// Returns the entries of a slice at an epoch, computed from the documents.
pub(super) fn rows_at(known: &Known, documents: &Documents, slice: SliceNo, epoch: u64) -> Rows {
    let mut rows = Rows::new();
    for (id, versions) in documents {
        let at = versions.iter().rev().find(|(since, _)| *since <= epoch);
        let Some((_, Some(content))) = at else { continue };
        for (of, key, include) in known.entries(id, *content) {
            if of == slice {
                rows.insert([&key[..], id.as_bytes()].concat(), include);
            }
        }
    }
    rows
}

/// Returns packed documents: seqno, id and content.
pub(super) fn packed(known: &Known, documents: &[(u64, &str, Option<u64>)]) -> Bytes {
    let mut writer = KeyVersionsWriter::default();
    for (seqno, id, content) in documents {
        let entries = content.map(|content| known.entries(id, content)).unwrap_or_default();
        let kind = if content.is_some() { MutationKind::Upsert } else { MutationKind::Deletion };
        writer.mutation(*seqno, kind, id, 1);
        writer.index(INDEX, entries.len());
        entries.iter().for_each(|(slice, key, include)| writer.entry(*slice, key, include));
    }
    writer.finish()
}

/// A node with its store.
pub(super) struct Side {
    env: Env,
    pub(super) fs: SimFs,
    pub(super) node: NodeId,
    /// The store; `None` while the machine is down.
    store: Option<Arc<StorageEngine>>,
    /// The first epoch that the node applies.
    pub(super) first: u64,
}

fn open(env: &Env, node: NodeId) -> proto::Result<Arc<StorageEngine>> {
    let memory_bytes = 64 << 10;
    let log = LogOptions { segment_bytes: memory_bytes / 16, ..LogOptions::default() };
    let options =
        StoreOptions { memory_bytes, log_bytes: memory_bytes / 4, log, ..StoreOptions::default() };
    Ok(Arc::new(StorageEngine::open(env, node, &PathBuf::from("/node"), options)?))
}

impl Side {
    pub(super) fn new(seed: u64, node: NodeId, turns: Option<&Turns>) -> Self {
        let (mut env, _, fs) = world(seed);
        if let Some(turns) = turns {
            env.spawner = turns.spawner();
        }
        let store = Some(open(&env, node).expect("an empty store opens"));
        Self { env, fs, node, store, first: 1 }
    }

    pub(super) fn store(&self) -> &Arc<StorageEngine> {
        self.store.as_ref().expect("the machine is up")
    }

    /// Returns the newest epoch that the node has applied.
    pub(super) fn applied(&self) -> u64 {
        let mark = self.store().applied().into_iter().find(|mark| mark.bucket == BUCKET);
        mark.map_or(self.first - 1, |mark| mark.epoch.0)
    }

    /// Applies epochs up to `to`; the batch of epoch n is at index n - 1.
    pub(super) async fn follow(&self, batches: &[EpochBatch], to: u64) -> proto::Result<()> {
        while self.applied() < to {
            let next = self.applied().max(self.first - 1);
            self.store().apply(batches[next as usize].clone()).await?;
        }
        Ok(())
    }

    /// Crashes the machine and restarts it. Faults that were armed before may each occur once
    /// during the recovery; a store that fails to open without a fault has lost data.
    pub(super) async fn crash(&mut self, turns: Option<&Turns>) {
        loop {
            self.store = None;
            self.fs.crash();
            // The store's tasks end on the machine that is down.
            wait_for_work(turns, 64).await;
            self.fs.restart();
            let struck = self.fs.occurred_faults();
            match open(&self.env, self.node) {
                Ok(store) => return self.store = Some(store),
                Err(error) => {
                    let is_excused = self.fs.occurred_faults() != struck;
                    assert!(is_excused, "node {} does not open after a crash: {error}", self.node);
                }
            }
        }
    }

    /// True if the node has a copy of a slice.
    pub(super) fn has(&self, slice: SliceNo) -> bool {
        let stored = self.store().indexes();
        stored.iter().any(|stored| stored.slices.iter().any(|(here, _)| *here == slice))
    }

    /// Returns the oldest epoch that the node's copy of a slice can answer.
    pub(super) fn floor(&self, slice: SliceNo) -> u64 {
        let stored = self.store().indexes();
        let mut slices = stored.iter().flat_map(|stored| &stored.slices);
        slices.find(|(here, _)| *here == slice).map_or(0, |(_, floor)| floor.0)
    }

    /// Returns the rows of a slice at an epoch on this node.
    pub(super) fn shown(&self, slice: SliceNo, epoch: u64) -> proto::Result<Rows> {
        let snapshot = self.store().snapshot(INDEX, Epoch(epoch))?;
        let mut rows = snapshot.rows(&[slice], &KeyRange::all(), false, true)?;
        let mut shown = Rows::new();
        while rows.next()? {
            shown.insert(rows.entry().to_vec(), rows.include().to_vec());
        }
        Ok(shown)
    }
}
