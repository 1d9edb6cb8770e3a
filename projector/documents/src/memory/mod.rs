//! A document store in memory, for tests. It behaves like the store on disk, and is the model
//! with which that store is compared (`store/tests/differential.rs`).
//!
//! The store simulates the disk, so it outlives the process that uses it. A simulated restart
//! calls [`MemoryStore::lose_unsynced`] and opens the same store again. A commit whose sync
//! failed may or may not have reached the disk. As on disk, writes are refused until the store is
//! opened again, and then the batch exists or does not.

mod contents;
mod snapshot;
mod store;

pub use store::MemoryStore;
