//! The messages of maintenance streams and of backfills, which carry key-versions.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::bodies::UncommittedChanges;
use super::commit_marker::CommitMarker;
use crate::model::assignment::VbucketSet;
use crate::model::cut::{Cut, EpochMark, Position};
use crate::model::history::FailoverLogs;
use crate::model::ids::{
    BucketId, LocalIndexId, NodeId, Seqno, TransactionId, TransactionPlace, VbucketId, Vbuuid,
};
use crate::model::index::IndexInfo;

/// The default limit, in bytes, of the frames that a stream may send beyond the newest stability
/// timestamp that it has sent. The frames of a tick of 20 ms at full speed take less than 1 MiB,
/// so a stream continues if the coordinator is late by a few ticks.
pub const FRAMES_AHEAD_BYTES_MAX: usize = 8 << 20;

/// The key-versions of a range of one vbucket's mutations, for one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The vbucket of the frame.
    pub vbucket: VbucketId,
    /// The branch of history of the frame's last seqno.
    pub vbuuid: Vbuuid,
    /// The seqno before the first mutation. Must equal the node's watermark, the last seqno that
    /// the node has received.
    pub from: Seqno,
    /// The last seqno of the frame, which becomes the node's watermark.
    pub to: Seqno,
    /// The packed key-versions, with seqnos relative to `from`.
    pub body: Bytes,
}

/// A request of an indexer for the maintenance stream of a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscribeRequest {
    /// The indexer, whose slices select the entries of the stream.
    pub node: NodeId,
    /// The bucket of the stream.
    pub bucket: BucketId,
    /// The node's watermarks, after which the stream continues. `None` if the node has no data of
    /// the bucket; the stream then begins at the source's present end.
    pub from: Option<Cut>,
    /// The newest epoch that the node has applied; the stream carries newer epochs.
    pub last_epoch: crate::model::ids::Epoch,
}

/// A message of a maintenance stream, including its beginning from the change log (catch-up).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StreamMessage {
    /// The beginning of the stream. Names the indexes that the catalog places on the node, in
    /// state `backfill` or `maintenance`.
    Begin {
        /// The position of each vbucket after which its frames begin.
        at: Cut,
        /// The indexes whose entries the frames contain.
        indexes: Vec<Arc<IndexInfo>>,
        /// The vbuckets that the stream carries from its beginning.
        vbuckets: VbucketSet,
    },
    /// STREAM_BEGIN: the stream carries one more vbucket, which was handed over to its projector.
    StreamBegin {
        /// The vbucket that begins.
        vbucket: VbucketId,
        /// The position after which the vbucket's frames begin.
        at: Position,
    },
    /// STREAM_END: the stream carries a vbucket no longer. The projector has handed the vbucket
    /// over, and has sent it completely.
    StreamEnd {
        /// The vbucket that ends.
        vbucket: VbucketId,
        /// The position at which the vbucket's frames end.
        at: Position,
    },
    /// The failover logs of the source, sent after `Begin` and when a branch begins. All
    /// positions of the stream are on these branches: if the source loses a part of its history,
    /// the stream ends.
    History(Arc<FailoverLogs>),
    /// A change of the frames: from now on they contain the entries of one more index, or of an
    /// index's new topology.
    IndexJoin {
        /// The index whose entries follow.
        index: Arc<IndexInfo>,
        /// The position of each vbucket after its last frame without the index.
        at: Cut,
    },
    /// A change of the frames: from now on they contain no entries of this generation of an
    /// index, which was dropped or has left the node.
    IndexLeave {
        /// The index and its generation.
        index: LocalIndexId,
    },
    /// Frames, in the order of their seqnos within each vbucket.
    Frames(Vec<Frame>),
    /// A stability timestamp, sent before or after the frames that it covers. The newest known
    /// one follows soon after `Begin`, even if the bucket is idle. A receiver collects frames
    /// until it knows the cut that covers them. To bound its memory, a sender limits the bytes of
    /// frames beyond the newest timestamp that it has sent.
    Epoch(EpochMark),
    /// Uncommitted changes of open transactions, which no seqno, frame or epoch covers. A node
    /// keeps them until the transaction ends. A stream that begins, or that gets another index,
    /// sends the changes of every open transaction again.
    Bodies(Vec<UncommittedChanges>),
    /// A rollback of a transaction to an earlier place: the node removes the changes after this
    /// place.
    TransactionBack {
        /// The id of the transaction.
        transaction: TransactionId,
        /// The place to which the transaction was rolled back.
        to: TransactionPlace,
    },
    /// The beginning of the commit of a large transaction, all of whose changes this stream has
    /// sent. A node may prepare its rows now. A [`StreamMessage::Committed`] follows soon, or
    /// never if the commit fails.
    Committing {
        /// The id of the transaction.
        transaction: TransactionId,
        /// The place of the transaction's last change.
        place: TransactionPlace,
    },
    /// The commit of a large transaction, all of whose changes this stream has sent. The
    /// following frames cover its mutations without containing them.
    Committed(CommitMarker),
    /// The end of transactions, by a commit or a rollback. The changes of a commit are in the
    /// frames, or were announced by its marker.
    TransactionsEnded(Vec<TransactionId>),
}

/// The size of a frame without its body, in bytes.
const FRAME_BYTES: usize = 64;
/// The memory of one position of a cut, in bytes.
const POSITION_BYTES: usize = 16;
/// The approximate size of an index definition without its topology, in bytes.
const INDEX_BYTES: usize = 2 << 10;

impl Frame {
    /// Returns the approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.body.len() + FRAME_BYTES
    }
}

impl StreamMessage {
    /// Returns the approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let cut = |cut: &Cut| POSITION_BYTES * usize::from(cut.vbuckets());
        match self {
            Self::Begin { at, indexes, .. } => cut(at) + indexes.len() * INDEX_BYTES,
            Self::IndexJoin { at, .. } => cut(at) + INDEX_BYTES,
            Self::Frames(frames) => frames.iter().map(Frame::bytes).sum(),
            Self::Epoch(mark) => cut(&mark.cut),
            Self::History(logs) => logs.iter().map(|(_, b)| (1 + b.len()) * POSITION_BYTES).sum(),
            Self::Bodies(bodies) => bodies.iter().map(UncommittedChanges::bytes).sum(),
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
    /// Returns the approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Begin { cut } => POSITION_BYTES * usize::from(cut.vbuckets()),
            Self::Documents(body) => body.len(),
            Self::Progress { .. } | Self::End => 0,
        }
    }
}

/// A request of an indexer for a snapshot from which it builds its slices of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillRequest {
    /// The indexer, whose slices select the entries of the stream.
    pub node: NodeId,
    /// The index and its generation.
    pub index: LocalIndexId,
    /// The minimum revision of the index's record at the projector: in an older record, slices of
    /// the node may be missing.
    pub revision: u64,
    /// The vbuckets of the snapshot; `None` for all, if one projector owns all of them.
    pub vbuckets: Option<VbucketSet>,
}

/// A message of a backfill stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackfillMessage {
    /// The beginning of the stream. The positions of the cut are durable, so that a later epoch
    /// will cover them. They are not before the position at which the index joined the node's
    /// maintenance stream.
    Begin {
        /// The cut of the snapshot.
        cut: Cut,
    },
    /// Packed key-versions of some documents, each with the seqno of its last change (relative to
    /// zero). If a copy is compared with the snapshot, the documents are in the order of their
    /// ids, over all messages.
    Documents(Bytes),
    /// The progress of the stream.
    Progress {
        /// The number of documents read up to now.
        read: u64,
        /// The approximate number of documents in the snapshot. A document that is replaced
        /// meanwhile may count twice.
        of: u64,
    },
    /// The end: all documents have been sent.
    End,
}
