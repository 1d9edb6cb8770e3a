//! The simulation's document store: the same promises as on disk, in memory, with the disk's faults.
//!
//! The store stands for the disk, so it outlives the process that uses it: a simulated restart calls
//! [`MemoryStore::lose_unsynced`] and opens the same one again. A commit whose sync failed lies in the
//! journal and may or may not have reached the disk; as on disk, nothing is written after it until the
//! store is opened again, and then a prefix of what was in doubt is there. It remembers what was lost, for the
//! simulation's judge (`past.rs`).

mod contents;
mod past;
mod store;

pub use store::MemoryStore;
