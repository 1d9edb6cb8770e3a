//! The messages that carry key-versions, in maintenance streams and in backfills.

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

/// The default limit of frames beyond the newest stability timestamp that a stream has sent, in
/// bytes. A tick of 20 ms at full speed is below 1 MiB, so a stream continues if the coordinator is
/// late by a few ticks.
pub const FRAMES_AHEAD_BYTES_MAX: usize = 8 << 20;

/// The key-versions of a range of one vbucket's mutations, for one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The vbucket of the frame.
    pub vbucket: VbucketId,
    /// The branch of the frame's last seqno.
    pub vbuuid: Vbuuid,
    /// The seqno before the first mutation; must equal the node's watermark.
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
    /// The node's watermarks, from which the stream continues. `None` if the node has no data of
    /// the bucket: the stream then begins at the source's present end.
    pub from: Option<Cut>,
    /// The newest epoch that the node has applied; the stream carries newer epochs.
    pub last_epoch: crate::model::ids::Epoch,
}

/// A message of a maintenance stream, or of the catch-up stream with which it begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StreamMessage {
    /// The stream begins here, with the indexes that the catalog places on the node and that are in
    /// state `backfill` or `maintenance`.
    Begin {
        /// The position in each vbucket at which the frames begin.
        at: Cut,
        /// The indexes for which the frames contain entries.
        indexes: Vec<Arc<IndexInfo>>,
        /// The vbuckets of the stream, as if there were a STREAM_BEGIN for each.
        vbuckets: VbucketSet,
    },
    /// STREAM_BEGIN: one more vbucket, which was handed over to the stream's projector, joins the
    /// stream.
    StreamBegin {
        /// The vbucket that begins.
        vbucket: VbucketId,
        /// The position at which its frames begin.
        at: Position,
    },
    /// STREAM_END: a vbucket leaves the stream, because the projector has sent it completely and
    /// has handed it over.
    StreamEnd {
        /// The vbucket that ends.
        vbucket: VbucketId,
        /// The position at which its frames end.
        at: Position,
    },
    /// The failover logs of the source, sent after `Begin` and when a branch begins. All positions
    /// of the stream are on these branches: the stream ends when the source loses a piece of its
    /// history.
    History(Arc<FailoverLogs>),
    /// From here on the frames contain the entries of one more index, or of a new topology of an
    /// index.
    IndexJoin {
        /// The index that joins.
        index: Arc<IndexInfo>,
        /// The end of the last frame without the index, in each vbucket.
        at: Cut,
    },
    /// From here on the frames contain no entries of a generation of an index, which was dropped or
    /// has left the node.
    IndexLeave {
        /// The index and its generation.
        index: LocalIndexId,
    },
    /// Frames, in the order of their seqnos within each vbucket.
    Frames(Vec<Frame>),
    /// A stability timestamp, sent before or after the frames that it covers. The newest known one
    /// follows soon after `Begin`, even on an idle bucket. A sender limits the bytes of frames
    /// beyond the newest timestamp that it has sent, and so bounds the memory of the receiver,
    /// which collects frames until it knows their cut.
    Epoch(EpochMark),
    /// Changes of open transactions, which no seqno, frame or epoch covers; a node keeps them until
    /// the transaction ends. A stream that begins, or that gets another index, sends the changes of
    /// every open transaction again.
    Bodies(Vec<TransactionBodies>),
    /// A transaction was rolled back to an earlier place: its changes after this place are removed.
    TransactionBack {
        /// The id of the transaction.
        transaction: TransactionId,
        /// The place to which the transaction was rolled back.
        to: TransactionPlace,
    },
    /// The commit of a large transaction has begun. This stream has sent all its changes as bodies,
    /// so a node may prepare its rows; a [`StreamMessage::Committed`] follows soon, or never if the
    /// commit fails.
    Committing {
        /// The id of the transaction.
        transaction: TransactionId,
        /// The place of the transaction's last change.
        place: TransactionPlace,
    },
    /// A large transaction was committed, and this stream has sent all of its changes as bodies.
    /// The following frames cover its mutations without containing them.
    Committed(CommitMarker),
    /// These transactions have ended, by a commit or a rollback. The changes of a commit are in the
    /// frames, or in the commit's marker.
    TransactionsEnded(Vec<TransactionId>),
}

/// The size of a frame without its body, in bytes.
const FRAME_BYTES: usize = 64;
/// The memory of one position of a cut, in bytes.
const POSITION_BYTES: usize = 16;
/// The approximate size of an index definition without its topology, in bytes.
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

/// A request of an indexer for a snapshot from which it builds its slices of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillRequest {
    /// The indexer, whose slices select the entries of the stream.
    pub node: NodeId,
    /// The index and its generation.
    pub index: LocalIndexId,
    /// The minimum revision of the index's record: an older record may lack slices of the node.
    pub revision: u64,
    /// The vbuckets of the snapshot; `None` for all, if one projector owns all of them.
    pub vbuckets: Option<VbucketSet>,
}

/// A message of a backfill stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackfillMessage {
    /// The stream begins here. The positions of the cut are durable, so that a later epoch will
    /// cover them, and they cover the position at which the index joined the node's maintenance
    /// stream.
    Begin {
        /// The cut of the snapshot.
        cut: Cut,
    },
    /// Packed key-versions of some documents, each with the seqno of its last change (the base is
    /// zero). A snapshot for the comparison with a copy has its documents in the order of their
    /// ids, over all messages.
    Documents(Bytes),
    /// The progress in the snapshot.
    Progress {
        /// The number of documents read up to now.
        read: u64,
        /// The approximate number of documents in the snapshot; a replaced document may count
        /// twice.
        of: u64,
    },
    /// All documents have been sent.
    End,
}
