//! The slice store: what keeps the entries of an indexer's slices, their versions, and the back index
//! that says which entries a document has.
//!
//! [`SliceStore`] is what the rest of the indexer sees; [`FragmentStore`] keeps epochs as sorted runs in
//! memory and as fragments on disk. ARCHITECTURE.md has the map of the files here.

mod apply;
mod batch;
mod build;
mod counters;
mod edit;
mod engine;
mod file_id;
mod files;
pub mod fragment;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod index;
pub mod layout;
mod lock;
pub mod log;
mod log_record;
mod maintain;
pub mod manifest;
mod merge_policy;
mod node;
mod options;
mod read;
mod recover;
mod retention;
mod rows;
mod slice_store;
mod tables;
pub mod verify;

pub use batch::{EpochBatch, Piece};
pub use build::compare::Comparison;
pub use counters::Counters;
pub use edit::export::Export;
pub use edit::install::Refused;
pub use edit::receive::Received;
pub use engine::storage_engine::FragmentStore;
pub use index::load_state::LoadState;
pub use options::StoreOptions;
pub use read::rows::Rows;
pub use read::snapshot::Snapshot;
pub use rows::columns::Grouping;
pub use slice_store::{SliceStore, StoredIndex};
