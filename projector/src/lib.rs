//! The projector stores the documents of embedded and pushed buckets, evaluates the expressions
//! of indexes over them, and streams the resulting key-versions to indexers. The router decides
//! what each node receives; the projector does not know where the slices of an index are.
//!
//! ```text
//!  write, push ─▶ check ─▶ writer (numbers, group commit) ─▶ DocumentStore
//!                             │ publishes
//!                             ▼
//!                          Bucket (durable cut, head, timestamps) ◀─ follow (catalog, epochs)
//!                             │                          └─▶ follow (SYNC) ─▶ coordinator
//!                             ▼
//!                   stream, backfill ─▶ keys ─▶ indexers
//!
//!  purge (bounds the change logs) ─▶ DocumentStore
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `effects`, `transactions` | what writes change; the open transactions of a bucket |
//! | `source` | buckets, their writers, and the document store; `embedded` and `push` have what differs between the two kinds |
//! | `keys` | from documents to entries |
//! | `feed` | the streams to the indexers |
//! | `roles`, `damaged`, `load_reports`, `projector`, `jobs` | what calls and tasks share |
//! | `follow`, `hand_over`, `copies`, `purge`, `resolve`, `versions` | the tasks |
//! | `service` | starts the tasks, and answers the calls |
//!
//! A module imports only modules above it in this table.

mod config;
mod copies;
mod damaged;
mod effects;
mod feed;
mod follow;
mod hand_over;
mod jobs;
mod keys;
mod load_reports;
mod maintenance;
mod projector;
mod purge;
mod resolve;
mod roles;
mod service;
mod source;
mod transactions;
mod versions;

pub use config::Config;
pub use documents::store::{
    DiskStore, DiskStoreOptions, LostCommit, RecoveredBucket, RecoveryOutcome,
    check_format as check_source_format, is_data_dir as is_source_dir, recover as recover_source,
    verify as verify_source,
};
pub use projector::{Projector, Status};
pub use service::Service;
pub use source::DocumentStore;
pub use transactions::counts::TransactionFigures;

/// Functions that describe a projector's files as text, for `sextant inspect`.
pub mod inspect {
    pub use documents::change_log::{ItemContent, ItemInfo, describe as describe_changes};
    pub use documents::store::{PairedContents, describe as describe_checkpoint};
}

/// The stores, and the types of their contents, for tests in other crates.
#[cfg(feature = "testing")]
pub mod testing {
    pub use crate::follow::{Reporter, report_changes};
    pub use crate::source::{
        AddSorted, BucketRecord, DamagedBucket, DamagedFiles, DocumentRef, DocumentSnapshot,
        DocumentStore, KnownLoss, LogExtent, LogRange, MemoryStore, Mutation, StoredDocument,
        StoredId,
    };
    pub use documents::change_log::{ChangeLogOptions, IndexCache};
    pub use documents::mutation::entry_bytes;
    pub use documents::ownership::Ownership;
    pub use documents::{Batch, ShowBatch};
}
