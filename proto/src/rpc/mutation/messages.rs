//! The messages that carry key-versions: of maintenance streams, and of backfills.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::model::cut::{Cut, EpochMark, Position};
use crate::model::history::FailoverLogs;
use crate::model::homes::VbucketSet;
use crate::model::ids::{BucketId, Generation, IndexId, NodeId, Seqno, VbucketId, Vbuuid};
use crate::model::index::IndexInfo;

/// A piece of one vbucket's stream, for one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The vbucket.
    pub vbucket: VbucketId,
    /// The branch that its end is on.
    pub vbuuid: Vbuuid,
    /// Where it begins; the node's watermark must be here.
    pub from: Seqno,
    /// Where it ends; the node's watermark afterwards.
    pub to: Seqno,
    /// Packed key-versions, seqnos relative to `from`.
    pub body: Bytes,
}

/// What an indexer asks for to follow a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscribeRequest {
    /// Who asks; the stream carries what its slices need.
    pub node: NodeId,
    /// The bucket.
    pub bucket: BucketId,
    /// The node's watermarks: the stream goes on from there. `None` for a node that has nothing of
    /// the bucket yet: the stream begins at the source's present.
    pub from: Option<Cut>,
    /// The newest epoch that the node has applied; newer ones come with the stream.
    pub last_epoch: crate::model::ids::Epoch,
}

/// A message of a maintenance stream (or of the catch-up stream that it begins as).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StreamMessage {
    /// The stream begins here, with these indexes in its frames: the ones that the catalog places on
    /// the node and that are in `backfill` or `maintenance`.
    Begin {
        /// Where the frames begin, in each vbucket.
        at: Cut,
        /// What the frames are evaluated for.
        indexes: Vec<Arc<IndexInfo>>,
        /// The vbuckets that it brings: STREAM_BEGIN for each.
        vbuckets: VbucketSet,
    },
    /// STREAM_BEGIN: from here on the stream brings a vbucket more, which was handed over to its projector.
    StreamBegin {
        /// The vbucket.
        vbucket: VbucketId,
        /// Where its frames begin.
        at: Position,
    },
    /// STREAM_END: the stream has brought all of a vbucket that its projector had, and hands it over.
    StreamEnd {
        /// The vbucket.
        vbucket: VbucketId,
        /// Where its frames end.
        at: Position,
    },
    /// The history that the stream belongs to: after `Begin`, and when a branch began. All positions of the
    /// stream, before and after, are places in it: when a piece of the history is lost the stream ends.
    History(Arc<FailoverLogs>),
    /// From here on the frames are evaluated for one more index (or for a new topology of one).
    IndexJoin {
        /// The index.
        index: Arc<IndexInfo>,
        /// The end of the last frame without it, in each vbucket.
        at: Cut,
    },
    /// From here on the frames no longer carry an index: it was dropped or has left the node.
    IndexLeave {
        /// The index.
        index: IndexId,
    },
    /// Frames, in the order of their seqnos within each vbucket.
    Frames(Vec<Frame>),
    /// A stability timestamp; it comes after the frames that it covers, or before some of them. The
    /// newest one that is known comes soon after `Begin`, also on an idle bucket. A sender keeps at
    /// most a bounded number of bytes of frames ahead of the newest stability timestamp that it has
    /// sent, so that a receiver, which gathers until the cut is known, is bounded too.
    Epoch(EpochMark),
    /// The node fell behind what the stream keeps: it opens a new one from its watermarks.
    DropData,
}

/// What a frame takes besides its body.
const FRAME_BYTES: usize = 64;
/// What a position of a cut takes.
const POSITION_BYTES: usize = 16;
/// What the definition of an index takes besides its topology, about.
const INDEX_BYTES: usize = 2 << 10;

impl Frame {
    /// Bytes in memory, about.
    pub fn bytes(&self) -> usize {
        self.body.len() + FRAME_BYTES
    }
}

impl StreamMessage {
    /// Bytes in memory, about.
    pub fn bytes(&self) -> usize {
        let cut = |cut: &Cut| POSITION_BYTES * usize::from(cut.vbuckets());
        match self {
            Self::Begin { at, indexes, .. } => cut(at) + indexes.len() * INDEX_BYTES,
            Self::IndexJoin { at, .. } => cut(at) + INDEX_BYTES,
            Self::Frames(frames) => frames.iter().map(Frame::bytes).sum(),
            Self::Epoch(mark) => cut(&mark.cut),
            Self::History(logs) => logs.iter().map(|(_, b)| (1 + b.len()) * POSITION_BYTES).sum(),
            Self::IndexLeave { .. }
            | Self::DropData
            | Self::StreamBegin { .. }
            | Self::StreamEnd { .. } => 0,
        }
    }
}

impl BackfillMessage {
    /// Bytes in memory, about.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Begin { cut } => POSITION_BYTES * usize::from(cut.vbuckets()),
            Self::Documents(body) => body.len(),
            Self::End => 0,
        }
    }
}

/// What an indexer asks for to build its slices of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillRequest {
    /// Who asks; the stream carries the entries of its slices.
    pub node: NodeId,
    /// The index.
    pub index: IndexId,
    /// Its generation.
    pub generation: Generation,
    /// The oldest revision of its definition that will do: an older one may know less of the node's slices.
    pub revision: u64,
    /// The documents of these vbuckets; `None` where one projector keeps all.
    pub vbuckets: Option<VbucketSet>,
}

/// A message of a backfill stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackfillMessage {
    /// The snapshot's cut: durable positions, so that SYNC and an epoch will cover it. It covers the
    /// place where the index joined the node's maintenance stream.
    Begin {
        /// The cut.
        cut: Cut,
    },
    /// Packed key-versions of some documents, each with the seqno of its last change (base zero). A copy can be
    /// compared with a snapshot whose documents come in the order of their ids, from message to message.
    Documents(Bytes),
    /// All documents have been sent.
    End,
}
