//! A model of a bucket's source, which writes statements over several vbuckets, loses mutations or
//! begins new branches at a restart, and sends to each indexer the mutations of its slices, like a
//! projector.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use proto::model::assignment::VbucketSet;
use proto::model::catalog::Catalog;
use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::history::{Branches, FailoverLogs, SourceHistory};
use proto::model::ids::{
    BucketId, Epoch, IndexId, LocalIndexId, NodeId, SliceNo, VbucketId, Vbuuid,
};
use proto::model::index::{IndexInfo, IndexState};
use proto::rpc::mutation::{Frame, StreamMessage};

use super::history::{DOCS, History, VBUCKETS, slice_of, vbucket_of};

/// The size of a mutation in a frame, in bytes: the seqno relative to the frame's start, the
/// document, the value, and a set of indexes.
const MUTATION_BYTES: usize = 18;
/// Maximum number of stability timestamps kept for streams.
const EPOCHS_MAX: usize = 64;

/// A mutation in a frame.
#[derive(Clone, Copy)]
pub struct Packed {
    /// The seqno of the mutation, relative to the frame's start.
    pub seqno_minus_base: u64,
    /// The document.
    pub doc: u16,
    /// The value of the document; zero means that it does not exist.
    pub value: u32,
    indexes: u64,
}

impl Packed {
    /// True if the mutation concerns an index on the frame's node.
    pub fn is_for(&self, index: IndexId) -> bool {
        self.indexes & bit(index) != 0
    }

    /// Returns the mutations of a frame's body.
    pub fn read(body: &Bytes) -> impl Iterator<Item = Self> {
        let bytes = |at: &[u8]| at.iter().rev().fold(0_u64, |n, byte| n << 8 | u64::from(*byte));
        body.chunks_exact(MUTATION_BYTES).map(move |packed| Self {
            seqno_minus_base: bytes(&packed[..4]),
            doc: bytes(&packed[4..6]) as u16,
            value: bytes(&packed[6..10]) as u32,
            indexes: bytes(&packed[10..]),
        })
    }

    fn write(&self, body: &mut Vec<u8>) {
        body.extend_from_slice(&(self.seqno_minus_base as u32).to_le_bytes());
        body.extend_from_slice(&self.doc.to_le_bytes());
        body.extend_from_slice(&self.value.to_le_bytes());
        body.extend_from_slice(&self.indexes.to_le_bytes());
    }
}

fn bit(index: IndexId) -> u64 {
    1 << (index.0 % 64)
}

/// One stream to an indexer.
pub struct Stream {
    /// The number of the subscription.
    pub session: u64,
    at: Cut,
    last_epoch: Epoch,
    indexes: BTreeMap<LocalIndexId, Arc<IndexInfo>>,
    catalog_cas: u64,
    logs: Option<Arc<FailoverLogs>>,
    /// The earliest time at which the next message arrives, since messages arrive in order.
    pub arrives_ms: u64,
}

/// The simulated source.
pub struct Source {
    /// The history of the source, including lost mutations.
    pub history: History,
    /// The catalog that the source has received.
    pub catalog: Arc<Catalog>,
    /// The streams, by node.
    pub streams: BTreeMap<NodeId, Stream>,
    /// The time until which the source does not answer.
    pub down_until_ms: u64,
    /// True if the source sends stability timestamps that are not in its history, which indexers
    /// must detect.
    careless: bool,
    branches: Vec<Branches>,
    logs: Arc<FailoverLogs>,
    durable: Cut,
    epochs: VecDeque<EpochMark>,
    last_vbuuid: u64,
    last_value: u32,
    /// The statements with surviving mutations, oldest first.
    alive: Vec<usize>,
}

impl Source {
    /// A source with an empty history.
    pub fn new(careless: bool) -> Self {
        let mut source = Self {
            history: History::default(),
            catalog: Arc::default(),
            streams: BTreeMap::new(),
            down_until_ms: 0,
            careless,
            branches: vec![Branches::new(); usize::from(VBUCKETS)],
            logs: Arc::default(),
            durable: Cut::zero(VBUCKETS),
            epochs: VecDeque::new(),
            last_vbuuid: 0,
            last_value: 0,
            alive: Vec::new(),
        };
        (0..usize::from(VBUCKETS)).for_each(|vbucket| source.begin_branch(vbucket));
        source.publish();
        source
    }

    /// Returns the answer of the source to a query about its history.
    pub fn answer(&self) -> SourceHistory {
        let kept = VbucketSet::all(self.durable.vbuckets());
        SourceHistory { durable: self.durable.clone(), logs: Arc::clone(&self.logs), kept }
    }

    /// Returns the durable end of the source's history.
    pub fn durable(&self) -> &Cut {
        &self.durable
    }

    /// Returns the newest epoch that the source knows.
    pub fn newest_epoch(&self) -> Epoch {
        self.epochs.back().map_or(Epoch(0), |mark| mark.epoch)
    }

    /// Writes a statement over some documents.
    pub fn write(&mut self, random: &mut fastrand::Rng) {
        self.alive.push(self.history.statements.len());
        self.history.statements.push(Vec::new());
        for _ in 0..random.usize(1..5) {
            let doc = random.u16(..DOCS);
            self.last_value += 1;
            let value = if random.u32(..5) == 0 { 0 } else { self.last_value };
            let vbuuid = self.branches[vbucket_of(doc)][0].0;
            self.history.append(vbuuid, doc, value);
        }
        self.publish();
    }

    /// Loses the newest `count` statements with all their mutations.
    pub fn lose_statements(&mut self, count: usize) {
        let left = self.alive.len().saturating_sub(count);
        for statement in self.alive.split_off(left).into_iter().rev() {
            let wrote = self.history.statements[statement].clone();
            for (vbucket, at) in wrote {
                if !self.history.mutation(vbucket, at).lost {
                    self.history.lose_from(vbucket, at);
                    self.begin_branch(vbucket);
                }
            }
        }
        self.end_streams();
    }

    /// Loses the newest `count` mutations of one vbucket, so that statements are lost in part.
    pub fn lose_of_vbucket(&mut self, vbucket: usize, count: usize) {
        let end = self.history.tip(vbucket);
        let mut first = end;
        for _ in 1..count {
            let parent = self.history.mutation(vbucket, first).parent;
            first = if parent == 0 { first } else { parent };
        }
        if end != 0 {
            self.history.lose_from(vbucket, first);
        }
        self.begin_branch(vbucket);
        self.end_streams();
    }

    /// Restarts with all mutations, on new branches.
    pub fn restart(&mut self) {
        (0..usize::from(VBUCKETS)).for_each(|vbucket| self.begin_branch(vbucket));
        self.end_streams();
    }

    fn end_streams(&mut self) {
        self.publish();
        self.streams.clear();
    }

    /// Begins a branch at the end of a vbucket; removes empty branches.
    fn begin_branch(&mut self, vbucket: usize) {
        self.last_vbuuid += 1;
        let end = self.history.mutation(vbucket, self.history.tip(vbucket)).position.seqno.0;
        let branches = &mut self.branches[vbucket];
        branches.retain(|(_, began)| *began < end);
        branches.insert(0, (Vbuuid(self.last_vbuuid), end));
    }

    fn publish(&mut self) {
        if self.logs.iter().map(|(_, branches)| branches).ne(&self.branches) {
            self.logs = Arc::new(FailoverLogs::new(self.branches.clone()));
        }
        for vbucket in 0..usize::from(VBUCKETS) {
            let end = self.history.mutation(vbucket, self.history.tip(vbucket)).position;
            self.durable.set(VbucketId(vbucket as u16), end);
        }
    }

    /// Adds a published stability timestamp.
    pub fn add_epoch(&mut self, mark: &EpochMark) {
        if mark.epoch <= self.newest_epoch() {
            return;
        }
        while self.epochs.back().is_some_and(|newest| newest.epoch > mark.parent) {
            self.epochs.pop_back();
        }
        self.epochs.push_back(mark.clone());
        while self.epochs.len() > EPOCHS_MAX || self.epochs[0].epoch < mark.horizon {
            self.epochs.pop_front();
        }
    }

    /// Opens a stream for an indexer; false if the indexer's place is not in the history.
    pub fn subscribe(
        &mut self,
        node: NodeId,
        session: u64,
        from: Option<Cut>,
        last_epoch: Epoch,
    ) -> bool {
        let at = from.unwrap_or_else(|| self.durable.clone());
        let alive = |(v, p): (VbucketId, Position)| self.history.is_alive(usize::from(v.0), p);
        if !at.iter().all(alive) {
            return false;
        }
        let stream = Stream {
            session,
            at,
            last_epoch,
            indexes: BTreeMap::new(),
            catalog_cas: 0,
            logs: None,
            arrives_ms: 0,
        };
        self.streams.insert(node, stream);
        true
    }

    /// Returns the next messages of a stream.
    pub fn next(&mut self, node: NodeId, bucket: BucketId) -> Vec<StreamMessage> {
        let Some(mut stream) = self.streams.remove(&node) else { return Vec::new() };
        let mut messages = Vec::new();
        self.send_indexes(node, bucket, &mut stream, &mut messages);
        if stream.logs.as_ref() != Some(&self.logs) {
            stream.logs = Some(Arc::clone(&self.logs));
            messages.push(StreamMessage::History(Arc::clone(&self.logs)));
        }
        let frames: Vec<Frame> = (0..usize::from(VBUCKETS))
            .filter_map(|vbucket| self.frame(node, vbucket, &mut stream))
            .collect();
        if !frames.is_empty() {
            messages.push(StreamMessage::Frames(frames));
        }
        let new = self.epochs.iter().filter(|mark| mark.epoch > stream.last_epoch);
        for mark in new.cloned().collect::<Vec<_>>() {
            if !self.careless && !self.logs.includes_cut(&mark.cut) {
                break;
            }
            stream.last_epoch = mark.epoch;
            messages.push(StreamMessage::Epoch(mark));
        }
        self.streams.insert(node, stream);
        messages
    }

    fn send_indexes(
        &self,
        node: NodeId,
        bucket: BucketId,
        stream: &mut Stream,
        messages: &mut Vec<StreamMessage>,
    ) {
        let begins = stream.catalog_cas == 0;
        if stream.catalog_cas == self.catalog.cas && !begins {
            return;
        }
        stream.catalog_cas = self.catalog.cas;
        let wanted: BTreeMap<LocalIndexId, Arc<IndexInfo>> = self
            .catalog
            .indexes
            .values()
            .filter(|index| index.bucket == bucket && index.state != IndexState::Pending)
            .filter(|index| index.is_fed_any(node))
            .map(|index| (index.local_id(), Arc::clone(index)))
            .collect();
        let before = std::mem::replace(&mut stream.indexes, wanted.clone());
        let at = stream.at.clone();
        if begins {
            let indexes = wanted.into_values().collect();
            let vbuckets = VbucketSet::all(at.vbuckets());
            return messages.push(StreamMessage::Begin { at, indexes, vbuckets });
        }
        let gone = before.keys().filter(|index| !wanted.contains_key(index));
        messages.extend(gone.map(|index| StreamMessage::IndexLeave { index: *index }));
        for (id, index) in wanted {
            if before.get(&id).is_none_or(|before| before.revision != index.revision) {
                messages.push(StreamMessage::IndexJoin { index, at: at.clone() });
            }
        }
    }

    /// Returns the next frame of a vbucket, for the node's slices; `None` if there is nothing new.
    fn frame(&self, node: NodeId, vbucket: usize, stream: &mut Stream) -> Option<Frame> {
        let id = VbucketId(vbucket as u16);
        let from = stream.at.get(id).seqno;
        let end = self.durable.get(id);
        if end.seqno <= from {
            return None;
        }
        let mut body = Vec::new();
        for mutation in self.history.after(vbucket, from) {
            let fed = |index: &IndexInfo| {
                let slice = slice_of(mutation.doc, index.topology.placement.len());
                index.is_fed(node, SliceNo(slice as u16))
            };
            let indexes = stream.indexes.values().filter(|index| fed(index));
            let packed = Packed {
                seqno_minus_base: mutation.position.seqno.0 - from.0,
                doc: mutation.doc,
                value: mutation.value,
                indexes: indexes.fold(0, |bits, index| bits | bit(index.id)),
            };
            packed.write(&mut body);
        }
        stream.at.set(id, end);
        Some(Frame { vbucket: id, vbuuid: end.vbuuid, from, to: end.seqno, body: body.into() })
    }
}
