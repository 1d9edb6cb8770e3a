//! The interfaces of the services: one trait for each role, and the messages of its calls.
//!
//! A service implements the trait of its role, and calls the others as `Arc<dyn …>` from a
//! [`Directory`]. A call is a direct call if both services are in one process, and gRPC
//! otherwise; a service does not depend on the difference. The simulation always uses gRPC.
//!
//! Every call may fail with a retryable error at any time, which the caller must handle. Streams
//! are bounded: a sender waits for its reader.

mod checked;
mod coordinator;
mod copies;
mod directory;
mod hand_over;
mod heartbeat;
mod indexer;
mod members;
mod places;
mod projector;
mod pushed;
mod streams;
mod transactions;
mod writes;

pub use checked::{
    CheckedWrite, CheckedWrites, Write, WriteKind, check_document, check_document_with_id,
    too_long_error,
};
pub use coordinator::{
    BucketReport, BuildStatus, CoordinatorApi, CoordinatorStatus, CoveringEpochs, EpochWait,
    FixedMoment, HELD_MS_MIN, HOLDS_MAX, MOMENT_HOLD_MS, NodeStatus, SyncReply, SyncReport,
    WatchKind, WatchMessage,
};
pub use copies::{
    COPY_GRACE_MS, COPY_LEASE_MS, CopiedGroup, CopiedMutation, CopyAnswer, CopyRequest,
    CopyRequestKind, GroupChunk, PreparedPart,
};
pub use directory::Directory;
pub use hand_over::{
    HandOverDocuments, HandOverPiece, HandOverRequest, HandOverRequestKind, HandedDocument,
};
pub use heartbeat::{
    BucketProgress, Heartbeat, HeartbeatReply, IndexerReport, LEASE_AGE_MS_MAX,
    LOAD_TROUBLE_BYTES_MAX, LoadReport, ProjectorReport, RoleReport, RouterReport, SILENT_MS_MAX,
    SliceProgress, SplitPoint,
};
pub use indexer::{FIRST_BATCH_BYTES, IndexerApi};
pub use members::{CoordinatorChange, CoordinatorChanged, CoordinatorMembers};
pub use places::{KnownPlace, Places};
pub use projector::{ProjectorApi, TRANSACTION_KEPT_MS};
pub use pushed::{
    PRODUCER_KEPT_MS, PushedCommitRequest, PushedStateQuery, PushedStep, TransactionPush,
    TransactionPushed,
};
pub use streams::{PEER_MESSAGE_BYTES_MAX, ResultStream};
pub use transactions::{
    Decision, Documents, DocumentsRequest, FoundCommits, OWNER_BYTES_MAX, TransactionCommit,
    TransactionState, TransactionStatus, TransactionWrite, TransactionWritten,
};
pub use writes::{PushMutation, PushReply, PushRequest, WriteReply, WriteRequest};
