//! The messages that carry key-versions: of maintenance streams, and of backfills.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::bodies::TransactionBodies;
use super::commit_marker::CommitMarker;
use crate::model::assignment::VbucketSet;
use crate::model::cut::{Cut, EpochMark, Position};
use crate::model::history::FailoverLogs;
use crate::model::ids::{
    BucketId, LocalIndexId, NodeId, Seqno, TransactionId, TransactionPlace, VbucketId, Vbuuid,
};
use crate::model::index::IndexInfo;

/// Default limit of the frames that a stream sends beyond its newest stability timestamp, in bytes. A tick of 20 ms at full
/// speed is below 1 MiB, so a stream survives a stalled promotion or two.
pub const FRAMES_AHEAD_BYTES_MAX: usize = 8 << 20;

/// A piece of one vbucket's stream, for one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The vbucket of the frame.
    pub vbucket: VbucketId,
    /// The branch that its end is on.
    pub vbuuid: Vbuuid,
    /// The seqno before the first mutation, which must equal the node's watermark.
    pub from: Seqno,
    /// The last seqno of the frame, which becomes the node's watermark.
    pub to: Seqno,
    /// Packed key-versions, seqnos relative to `from`.
    pub body: Bytes,
}

/// The request of an indexer to follow a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscribeRequest {
    /// The indexer; the stream carries the entries of its slices.
    pub node: NodeId,
    /// The bucket to follow.
    pub bucket: BucketId,
    /// The node's watermarks, from which the stream continues. `None` if the node has nothing of the bucket: the stream then
    /// begins at the source's present.
    pub from: Option<Cut>,
    /// The newest epoch that the node has applied; the stream carries newer epochs.
    pub last_epoch: crate::model::ids::Epoch,
}

/// A message of a maintenance stream (or of the catch-up stream that it begins as).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StreamMessage {
    /// The stream begins here, with these indexes in its frames: those that the catalog places on the node and that are
    /// in `backfill` or `maintenance`.
    Begin {
        /// The position in each vbucket at which the frames begin.
        at: Cut,
        /// The indexes for which frames are evaluated.
        indexes: Vec<Arc<IndexInfo>>,
        /// The vbuckets of the stream: a STREAM_BEGIN for each.
        vbuckets: VbucketSet,
    },
    /// STREAM_BEGIN: the stream continues with one more vbucket, which was handed over to its projector.
    StreamBegin {
        /// The vbucket that begins.
        vbucket: VbucketId,
        /// The position at which its frames begin.
        at: Position,
    },
    /// STREAM_END: the stream has sent the whole vbucket, and its projector has handed it over.
    StreamEnd {
        /// The vbucket that ends.
        vbucket: VbucketId,
        /// The position at which its frames end.
        at: Position,
    },
    /// The history that the stream belongs to, sent after `Begin` and when a branch begins. All positions of the stream are
    /// places in it: the stream ends when the source loses a piece of its history.
    History(Arc<FailoverLogs>),
    /// From here on the frames are evaluated for one more index (or for a new topology of one).
    IndexJoin {
        /// The index that joins.
        index: Arc<IndexInfo>,
        /// The end of the last frame without it, in each vbucket.
        at: Cut,
    },
    /// From here on the frames no longer carry a generation of an index: it was dropped or has left the node.
    IndexLeave {
        /// The index and its generation.
        index: LocalIndexId,
    },
    /// Frames, in the order of their seqnos within each vbucket.
    Frames(Vec<Frame>),
    /// A stability timestamp, sent after the frames that it covers or before some of them. The newest known one follows soon
    /// after `Begin`, also on an idle bucket. A sender limits the bytes of frames ahead of the newest timestamp that it
    /// has sent, so that the memory of a receiver, which collects frames until their cut is known, is bounded too.
    Epoch(EpochMark),
    /// Changes of open transactions. They are not part of frames: no seqno and no epoch covers them, and a node keeps them until the
    /// transaction ends. A stream that begins, or that carries a further index, sends those of every open transaction again.
    Bodies(Vec<TransactionBodies>),
    /// A transaction was rolled back to an earlier place: its changes between the two places are removed.
    TransactionBack {
        /// The id of the transaction.
        transaction: TransactionId,
        /// The place.
        to: TransactionPlace,
    },
    /// The commit of a large transaction has begun, and this stream has sent all of its changes as bodies. A node may prepare its rows for
    /// a [`StreamMessage::Committed`], which follows soon or never.
    Committing {
        /// The id of the transaction.
        transaction: TransactionId,
        /// The last place of the transaction.
        place: TransactionPlace,
    },
    /// A large transaction was committed, and this stream has sent all of its changes as bodies. The frames after this message cover
    /// its mutations without carrying them.
    Committed(CommitMarker),
    /// Transactions have ended, by a commit or by a rollback. What a commit has changed is in the frames, or in its marker.
    TransactionsEnded(Vec<TransactionId>),
}

/// Bytes of a frame besides its body.
const FRAME_BYTES: usize = 64;
/// The memory of one position of a cut, in bytes.
const POSITION_BYTES: usize = 16;
/// Approximate bytes of an index definition besides its topology.
const INDEX_BYTES: usize = 2 << 10;

impl Frame {
    /// The approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.body.len() + FRAME_BYTES
    }
}

impl StreamMessage {
    /// The approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let cut = |cut: &Cut| POSITION_BYTES * usize::from(cut.vbuckets());
        match self {
            Self::Begin { at, indexes, .. } => cut(at) + indexes.len() * INDEX_BYTES,
            Self::IndexJoin { at, .. } => cut(at) + INDEX_BYTES,
            Self::Frames(frames) => frames.iter().map(Frame::bytes).sum(),
            Self::Epoch(mark) => cut(&mark.cut),
            Self::History(logs) => logs.iter().map(|(_, b)| (1 + b.len()) * POSITION_BYTES).sum(),
            Self::Bodies(bodies) => bodies.iter().map(TransactionBodies::bytes).sum(),
            Self::Committed(marker) => marker.bytes(),
            Self::TransactionsEnded(ended) => size_of_val(&ended[..]),
            Self::IndexLeave { .. }
            | Self::StreamBegin { .. }
            | Self::StreamEnd { .. }
            | Self::TransactionBack { .. }
            | Self::Committing { .. } => 0,
        }
    }
}

impl BackfillMessage {
    /// The approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Begin { cut } => POSITION_BYTES * usize::from(cut.vbuckets()),
            Self::Documents(body) => body.len(),
            Self::Progress { .. } | Self::End => 0,
        }
    }
}

/// The request of an indexer for a snapshot from which it builds its slices of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillRequest {
    /// The indexer; the stream carries the entries of its slices.
    pub node: NodeId,
    /// The index and its generation.
    pub index: LocalIndexId,
    /// The minimum revision of the index's record: an older one may lack slices of the node.
    pub revision: u64,
    /// Restricts the snapshot to these vbuckets; `None` if one projector owns all of them.
    pub vbuckets: Option<VbucketSet>,
}

/// A message of a backfill stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackfillMessage {
    /// The snapshot's cut: durable positions, so that SYNC and an epoch will cover it. It covers the
    /// place where the index joined the node's maintenance stream.
    Begin {
        /// The cut of the snapshot.
        cut: Cut,
    },
    /// Packed key-versions of some documents, each with the seqno of its last change (base zero). A copy can be
    /// compared with a snapshot whose documents come in the order of their ids, from message to message.
    Documents(Bytes),
    /// The progress in the snapshot.
    Progress {
        /// The number of documents read so far.
        read: u64,
        /// The approximate number of documents of the snapshot: replaced ones may count twice.
        of: u64,
    },
    /// All documents have been sent.
    End,
}
