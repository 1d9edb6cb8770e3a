//! Collects the events that are logged together as one group, before they are encoded.

use std::sync::Arc;

use proto::model::commits::TransactionEvent;
use proto::model::ids::{Seqno, TransactionId, VbucketId, Vbuuid};
use proto::model::joint::PreparedTransaction;
use proto::rpc::mutation::MutationKind;
use proto::rpc::varint::{put_bytes, put_varint};
use proto::{Error, Result};
use serde::Serialize;

use super::format::{ITEM_HEADER_BYTES, ItemKind, RUN_HEAD_BYTES};
use super::prepared_places::{PreparedPlaces, StoredCommits};
use crate::document_store::StoredDocument;
use crate::mutation::{Mutation, entry_bytes};
use crate::record::BucketRecord;

/// The size in bytes above which a run (a sequence of mutations of one vbucket) ends. A read
/// verifies complete runs, so this size bounds the bytes that are read for one mutation.
const RUN_BYTES_MAX: usize = 64 << 10;
/// The number of buffers that are kept for the next group: at most 16 MiB, unless single
/// mutations are larger than a run.
const KEPT_RUNS_MAX: usize = 256;

const NO_RUN: u32 = u32::MAX;

/// A builder of a group: events of a bucket that are logged together. The items keep the order in
/// which they are added, except that mutations which are added one after another are grouped by
/// vbucket. A cleared builder keeps its buffers.
#[derive(Debug, Default)]
pub struct GroupBuilder {
    pub(super) items: Vec<DraftItem>,
    /// The runs of this group, followed by unused buffers of earlier groups.
    runs: Vec<RunDraft>,
    runs_used: usize,
    /// For each vbucket, the index of the run that its next mutation continues.
    open: Vec<u32>,
    /// The vbuckets that have a run in `open`.
    opened: Vec<VbucketId>,
    /// For each mutation, the index of its run, and its offset in the bytes of the run.
    pub(in crate::change_log) places: Vec<(u32, u32)>,
}

/// An item of the group before it is encoded.
#[derive(Debug)]
pub(super) enum DraftItem {
    Run(u32),
    Record(Vec<u8>),
    Rewind(VbucketId, Seqno),
    Remove(VbucketId),
    Begin(VbucketId, Seqno),
    Documents(VbucketId, Vec<u8>),
    Purge(Vec<(VbucketId, Seqno)>),
    Transaction(ItemKind, Vec<u8>),
    Prepared(TransactionId, Vec<u8>),
}

/// A run of the group before it is encoded: mutations of one vbucket on one branch.
#[derive(Debug, Default)]
pub(super) struct RunDraft {
    pub(super) vbucket: VbucketId,
    pub(super) vbuuid: Vbuuid,
    pub(super) first: Seqno,
    pub(super) last: Seqno,
    /// The number of bytes that the run's mutations count in the size of the log.
    pub(super) bytes: u64,
    /// The encoded mutations.
    pub(super) mutations: Vec<u8>,
}

impl GroupBuilder {
    /// Removes all events; the buffers are kept.
    pub fn clear(&mut self) {
        self.close_runs();
        self.items.clear();
        self.places.clear();
        self.runs_used = 0;
        self.runs.truncate(KEPT_RUNS_MAX);
        self.runs.retain(|run| run.mutations.capacity() <= 4 * RUN_BYTES_MAX);
    }

    /// Returns true if no event was added.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Adds a mutation on a branch. It must follow the last mutation of its vbucket; the log checks
    /// that.
    pub fn mutation(&mut self, vbuuid: Vbuuid, mutation: &Mutation) {
        let Mutation { vbucket, seqno, ref id, kind, ref document, .. } = *mutation;
        let at = self.run_for(vbucket, vbuuid, seqno);
        let run = &mut self.runs[at as usize];
        self.places.push((at, run.mutations.len() as u32));
        let is_deletion = kind == MutationKind::Deletion;
        put_varint(&mut run.mutations, (id.len() as u64) << 1 | u64::from(is_deletion));
        run.mutations.extend_from_slice(id.as_bytes());
        run.bytes += 24 + id.len() as u64;
        if !is_deletion {
            put_bytes(&mut run.mutations, document);
            run.bytes += document.len() as u64;
        }
        debug_assert!(!is_deletion || entry_bytes(mutation) == 24 + id.len() as u64);
        run.last = seqno;
    }

    /// Returns the index of the run for a mutation: the run that the mutation continues, or a new
    /// one.
    fn run_for(&mut self, vbucket: VbucketId, vbuuid: Vbuuid, seqno: Seqno) -> u32 {
        let at = usize::from(vbucket.0);
        if at >= self.open.len() {
            self.open.resize(at + 1, NO_RUN);
        }
        let open = self.open[at];
        if let Some(run) = self.runs.get(open as usize)
            && run.vbuuid == vbuuid
            && run.last.0 + 1 == seqno.0
            && run.mutations.len() < RUN_BYTES_MAX
        {
            return open;
        }
        if open == NO_RUN {
            self.opened.push(vbucket);
        }
        let next = self.runs_used;
        if next == self.runs.len() {
            self.runs.push(RunDraft::default());
        }
        let run = &mut self.runs[next];
        run.mutations.clear();
        (run.vbucket, run.vbuuid, run.first, run.last, run.bytes) =
            (vbucket, vbuuid, seqno, seqno, 0);
        self.runs_used += 1;
        self.items.push(DraftItem::Run(next as u32));
        self.open[at] = next as u32;
        next as u32
    }

    /// Adds the new record of the bucket. Also adds the record's prepared transactions whose
    /// changes the log does not have yet, according to `places`.
    pub fn record(&mut self, record: &BucketRecord, places: &PreparedPlaces) -> Result<()> {
        let is_known =
            |prepared: &Arc<PreparedTransaction>| places.get(prepared.transaction).is_some();
        let known =
            |prepared: &Arc<PreparedTransaction>| is_known(prepared).then(|| Arc::clone(prepared));
        let StoredCommits { commits, places } = places.stored(&record.commits.with_prepared(known));
        let mut body = encoded(record)?;
        body.extend(encoded(&commits)?);
        body.extend(encoded(&places)?);
        self.add(DraftItem::Record(body));
        let new = record.commits.prepared().filter(|prepared| !is_known(prepared));
        new.cloned().try_for_each(|new| self.transaction(&TransactionEvent::Prepared(new)))
    }

    /// Adds a step of a transaction, such as its commit. The group of a commit must also have the
    /// commit's mutations.
    pub fn transaction(&mut self, event: &TransactionEvent) -> Result<()> {
        let item = match event {
            TransactionEvent::Committed(committed) => {
                DraftItem::Transaction(ItemKind::Committed, encoded(committed)?)
            }
            TransactionEvent::Prepared(prepared) => {
                DraftItem::Prepared(prepared.transaction, encoded(event)?)
            }
            event => DraftItem::Transaction(ItemKind::Transaction, encoded(event)?),
        };
        self.add(item);
        Ok(())
    }

    /// Rewinds a vbucket to an earlier position, which removes its later mutations.
    pub fn rewind(&mut self, vbucket: VbucketId, to: Seqno) {
        self.add(DraftItem::Rewind(vbucket, to));
    }

    /// Removes all data of a vbucket.
    pub fn remove(&mut self, vbucket: VbucketId) {
        self.add(DraftItem::Remove(vbucket));
    }

    /// Begins the log of an empty vbucket after a purge point.
    pub fn begin(&mut self, vbucket: VbucketId, purged: Seqno) {
        self.add(DraftItem::Begin(vbucket, purged));
    }

    /// Adds documents that were copied from another projector.
    pub fn documents(&mut self, vbucket: VbucketId, documents: &[StoredDocument]) {
        let mut body = Vec::new();
        for StoredDocument { id, seqno, document } in documents {
            put_bytes(&mut body, id.as_bytes());
            put_varint(&mut body, seqno.0);
            put_bytes(&mut body, document);
        }
        self.add(DraftItem::Documents(vbucket, body));
    }

    /// Purges the mutations of some vbuckets up to these seqnos. A seqno outside of the retained
    /// range is replaced by the nearest end of the range. A purge up to the end of a vbucket
    /// leaves none of its mutations.
    pub fn purge(&mut self, points: &[(VbucketId, Seqno)]) {
        self.add(DraftItem::Purge(points.to_vec()));
    }

    fn add(&mut self, item: DraftItem) {
        self.close_runs();
        self.items.push(item);
    }

    /// Ends all runs, so that later mutations begin new ones.
    fn close_runs(&mut self) {
        for vbucket in self.opened.drain(..) {
            self.open[usize::from(vbucket.0)] = NO_RUN;
        }
    }

    /// Returns the runs, in the order in which they begin in the group.
    pub(super) fn runs(&self) -> &[RunDraft] {
        &self.runs[..self.runs_used]
    }

    /// Returns the indexes of the mutations in the order of their places in the log: run by run,
    /// and within a run in the order in which they were added.
    pub(in crate::change_log) fn order(&self) -> Vec<u32> {
        let mut begins = vec![0; self.runs_used + 1];
        for (run, _) in &self.places {
            begins[*run as usize + 1] += 1;
        }
        for run in 0..self.runs_used {
            begins[run + 1] += begins[run];
        }
        let mut order = vec![0; self.places.len()];
        for (index, (run, _)) in self.places.iter().enumerate() {
            let next: &mut usize = &mut begins[*run as usize];
            order[*next] = index as u32;
            *next += 1;
        }
        order
    }

    /// Returns true if the encoding of the group needs the byte counts of earlier mutations,
    /// because it contains a rewind or a purge.
    pub(in crate::change_log) fn needs_earlier_bytes(&self) -> bool {
        self.items.iter().any(|item| matches!(item, DraftItem::Rewind(..) | DraftItem::Purge(_)))
    }
}

fn encoded(value: &impl Serialize) -> Result<Vec<u8>> {
    postcard::to_stdvec(value).map_err(|error| Error::internal(error.to_string()))
}

/// The offset of the mutations from the beginning of a run's item.
pub(in crate::change_log) const MUTATIONS_AT: u32 = (ITEM_HEADER_BYTES + RUN_HEAD_BYTES) as u32;
