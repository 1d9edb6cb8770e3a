//! Cases of virtual scans: an index whose slices are placed by a case, scans in pages while slices
//! move at given points, and the rows that must, may and must not be returned.
//!
//! | part | contents |
//! |---|---|
//! | [`case`] | the schema of a case (`tests/vectors/README.md`), and its verdict |
//! | [`play`] | plays a case against the real services in the simulation |
//! | [`generate`] | random cases |
//!
//! A *shard* of a case is an indexer, and a *partition* is a slice. The index is partitioned by a
//! field of the documents, whose value is chosen such that each entry is in the slice that the case
//! names.
//!
//! These modules share with the product the encoding of keys, and the hash by which a value is
//! found for each slice. The verdict uses neither: it compares the numbers in the documents' ids
//! with the case.

pub mod case;
mod cluster;
pub mod generate;
pub mod play;
