//! Benchmarks, also of engines that a user could embed instead.
//!
//! The slice store: every engine gets the same documents, the same memory and its own process, so
//! that its peak memory is measured alone. [`workload`] defines the documents and the reads,
//! [`phases`] the order of the phases and the figures.
//!
//! Moves of slices during scans: see [`rebalance`]. The whole product, compared with PostgreSQL:
//! see [`end_to_end`]. Transactions: see [`transactions`].

pub mod end_to_end;
pub mod fjall;
pub mod phases;
pub mod rebalance;
pub mod redb;
pub mod sextant;
pub mod transactions;
pub mod workload;

use std::path::Path;

use workload::{Documents, Key};

/// A result whose error ends the benchmark.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// An engine under measurement. Each call returns when its work is complete.
pub trait Engine {
    /// Writes documents in batches of [`workload::BATCH`], with one sync at the end. With
    /// `replace`, the documents exist, and their old entries are removed.
    fn write(&mut self, documents: Documents, replace: bool) -> Outcome<()>;

    /// Reads all entries in order; returns their number.
    fn scan_all(&mut self) -> Outcome<u64>;

    /// Reads up to 100 entries in order from a key on; returns their number.
    fn scan_100(&mut self, from: Key) -> Outcome<u64>;

    /// Merges all written data as far as the engine allows.
    fn compact(&mut self) -> Outcome<()>;
}

/// The engines by name.
pub const ENGINES: [&str; 3] = ["sextant", "fjall", "redb"];

/// Opens an empty engine by name, in a directory, with a memory limit.
pub fn open(name: &str, dir: &Path, memory_bytes: u64) -> Outcome<Box<dyn Engine>> {
    Ok(match name {
        "sextant" => Box::new(sextant::Sextant::open(dir, memory_bytes)?),
        "fjall" => Box::new(fjall::Fjall::open(dir, memory_bytes)?),
        "redb" => Box::new(redb::Redb::open(dir, memory_bytes)?),
        _ => return Err(format!("no engine {name:?}: there are {}", ENGINES.join(", ")).into()),
    })
}
