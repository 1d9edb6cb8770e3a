//! Cases of virtual scans: an index whose slices are put where a case says, scans in pages while slices move
//! at given points, and what must, may and may not come back.
//!
//! | part | what it is |
//! |---|---|
//! | [`case`] | the schema of a case (`tests/vectors/README.md`), and its verdict |
//! | [`play`] | plays a case against the real services in the simulation |
//! | [`generate`] | cases by chance |
//!
//! A *shard* of a case is an indexer, a *partition* a slice. The index is partitioned by a field of the
//! documents that is chosen so that each entry lies in the slice that its case says.

pub mod case;
mod cluster;
pub mod generate;
pub mod play;
