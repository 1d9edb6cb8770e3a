//! Statements about the placement of slices, vbuckets and copies.

use proto::model::ids::{SliceNo, TransactionId, VbucketId};
use proto::rpc::api::CoordinatorChange;

/// Statements about the placement of slices, vbuckets and copies of buckets. Nodes are named by number or address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admin {
    /// `REBALANCE [INDEX i]`.
    Rebalance {
        /// The index to rebalance; `None` for all.
        index: Option<String>,
    },
    /// `CANCEL REBALANCE [INDEX i]`.
    CancelRebalance {
        /// The index whose slices are shown; `None` for all.
        index: Option<String>,
    },
    /// `CANCEL TRANSACTION n`.
    CancelTransaction(TransactionId),
    /// `DRAIN NODE 'n'`, `CANCEL DRAIN NODE 'n'`.
    DrainNode {
        /// The node to drain.
        node: String,
        /// True begins to drain, false stops it.
        drain: bool,
    },
    /// `REMOVE NODE 'n' [FORCE | WAIT]`.
    RemoveNode {
        /// The node to remove.
        node: String,
        /// WAIT: until the node is drained.
        wait: bool,
        /// FORCE: other indexers rebuild the slices that it alone has.
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
        /// The node that gives its copy away; `None` for the first node of the slice.
        from: Option<String>,
        /// The node that gets it.
        to: String,
    },
    /// `ALTER BUCKET b MOVE VBUCKET k, … TO 'n'`.
    MoveVbuckets {
        /// The bucket of the vbuckets.
        bucket: String,
        /// The vbuckets to hand over.
        vbuckets: Vec<VbucketId>,
        /// The projector that gets them.
        to: String,
    },
    /// `ALTER BUCKET b MOVE TO 'n'`.
    MoveBucket {
        /// The name of the bucket.
        bucket: String,
        /// The projector that leads it then.
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
        /// The data set.
        bucket: String,
        /// The time for which an old version is kept after the last request for it.
        idle_ms: u64,
    },
    /// `ALTER BUCKET b CANCEL VERSION 'v'`.
    CancelVersion {
        /// The data set.
        bucket: String,
        /// The version, which is loading.
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
        /// True: the included values have fragments of their own.
        separate: bool,
    },
    /// `ALTER INDEX i SET (slice_bytes_max = …)`.
    SetSliceBytesMax {
        /// The name of the index.
        index: String,
        /// The size of a slice, in bytes; 0 means never.
        bytes: u64,
    },
    /// `ALTER INDEX i SET (replicas = r)`.
    SetReplicas {
        /// The name of the index.
        index: String,
        /// Copies besides the first.
        replicas: u8,
    },
}
