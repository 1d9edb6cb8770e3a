//! The syntax tree of statements about the placement of slices, vbuckets and copies of buckets.

use proto::model::ids::{SliceNo, TransactionId, VbucketId};
use proto::rpc::api::CoordinatorChange;

/// A statement about the placement of slices, vbuckets and copies of buckets. Nodes are given by
/// number or address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admin {
    /// `REBALANCE [INDEX i]`.
    Rebalance {
        /// The index to rebalance; `None` for all.
        index: Option<String>,
    },
    /// `CANCEL REBALANCE [INDEX i]`.
    CancelRebalance {
        /// The index whose moves are cancelled; `None` for all.
        index: Option<String>,
    },
    /// `CANCEL TRANSACTION n`.
    CancelTransaction(TransactionId),
    /// `DRAIN NODE 'n'`, `CANCEL DRAIN NODE 'n'`.
    DrainNode {
        /// The node to drain.
        node: String,
        /// True to begin a drain, false to cancel it.
        drain: bool,
    },
    /// `REMOVE NODE 'n' [FORCE | WAIT]`.
    RemoveNode {
        /// The node to remove.
        node: String,
        /// WAIT: true if the statement waits until the node is drained.
        wait: bool,
        /// FORCE: true if other indexers rebuild the slices that have no other copy.
        force: bool,
    },
    /// `ADD COORDINATOR 'n' AT 'host:port'`, `REMOVE COORDINATOR 'n'`.
    ChangeCoordinators(CoordinatorChange),
    /// `ALTER INDEX i MOVE SLICE k [FROM 'm'] TO 'n'`.
    MoveSlice {
        /// The index of the slice.
        index: String,
        /// The slice to move.
        slice: SliceNo,
        /// The node whose copy moves; `None` for the first node of the slice.
        from: Option<String>,
        /// The node that receives the copy.
        to: String,
    },
    /// `ALTER BUCKET b MOVE VBUCKET k, … TO 'n'`.
    MoveVbuckets {
        /// The bucket of the vbuckets.
        bucket: String,
        /// The vbuckets to hand over.
        vbuckets: Vec<VbucketId>,
        /// The projector that receives the vbuckets.
        to: String,
    },
    /// `ALTER BUCKET b MOVE TO 'n'`.
    MoveBucket {
        /// The name of the bucket.
        bucket: String,
        /// The projector that will lead the bucket.
        to: String,
    },
    /// `ALTER BUCKET b SET (copies = n)`.
    SetCopies {
        /// The name of the bucket.
        bucket: String,
        /// The number of copies.
        copies: u8,
    },
    /// `ALTER BUCKET b SET (version_idle = …)`.
    SetVersionIdle {
        /// The name of the data set.
        bucket: String,
        /// The time for which an old version is kept after the last request for it, in
        /// milliseconds.
        idle_ms: u64,
    },
    /// `ALTER BUCKET b CANCEL VERSION 'v'`.
    CancelVersion {
        /// The name of the data set.
        bucket: String,
        /// The name of the version, which is being loaded.
        version: String,
    },
    /// `ALTER BUCKET b CANCEL MOVES`.
    CancelVbuckets {
        /// The name of the bucket.
        bucket: String,
    },
    /// `ALTER INDEX i SET (separate_included_columns = …)`.
    SeparateIncludedColumns {
        /// The name of the index.
        index: String,
        /// True if included values are stored in separate fragments.
        separate: bool,
    },
    /// `ALTER INDEX i SET (slice_bytes_max = …)`.
    SetSliceBytesMax {
        /// The name of the index.
        index: String,
        /// The size of a slice at which the index gets more slices, in bytes; 0 for no limit.
        bytes: u64,
    },
    /// `ALTER INDEX i SET (replicas = r)`.
    SetReplicas {
        /// The name of the index.
        index: String,
        /// The number of copies in addition to the first.
        replicas: u8,
    },
}
