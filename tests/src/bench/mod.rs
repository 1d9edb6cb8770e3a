//! Measurements beside the engines that a user would embed instead.
//!
//! The slice store's: every engine gets the same documents, the same memory and a process of its own, so
//! that its peak of memory is its own. See [`workload`] for what is written and read, and [`phases`] for
//! the order and what each figure means.
//!
//! Moves of slices while scans run: see [`rebalance`].

pub mod fjall;
pub mod phases;
pub mod rebalance;
pub mod redb;
pub mod sextant;
pub mod workload;

use std::path::Path;

use workload::{Documents, Key};

/// Any failure ends the bench.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// What is measured. Each call returns when what it was asked for is done.
pub trait Engine {
    /// Writes documents in batches of [`workload::BATCH`], synced once at the end. With `replace`, a
    /// document is there already and its old entry goes.
    fn write(&mut self, documents: Documents, replace: bool) -> Outcome<()>;

    /// Reads all entries in order; how many there were.
    fn scan_all(&mut self) -> Outcome<u64>;

    /// Reads up to 100 entries in order, from a key on; how many there were.
    fn scan_100(&mut self, from: Key) -> Outcome<u64>;

    /// Merges all that was written, as far as the engine can.
    fn compact(&mut self) -> Outcome<()>;
}

/// The engines by name.
pub const ENGINES: [&str; 3] = ["sextant", "fjall", "redb"];

/// An engine of a name, empty, in a directory, with so much memory.
pub fn open(name: &str, dir: &Path, memory_bytes: u64) -> Outcome<Box<dyn Engine>> {
    Ok(match name {
        "sextant" => Box::new(sextant::Sextant::open(dir, memory_bytes)?),
        "fjall" => Box::new(fjall::Fjall::open(dir, memory_bytes)?),
        "redb" => Box::new(redb::Redb::open(dir, memory_bytes)?),
        _ => return Err(format!("no engine {name:?}: there are {}", ENGINES.join(", ")).into()),
    })
}
