//! Cases of virtual scans: an index whose slices are placed by a case, scans in pages while slices move at given
//! points, and the rows that must, may and must not be returned.
//!
//! | part | contents |
//! |---|---|
//! | [`case`] | the schema of a case (`tests/vectors/README.md`), and its verdict |
//! | [`play`] | plays a case against the real services in the simulation |
//! | [`generate`] | random cases |
//!
//! A *shard* of a case is an indexer, a *partition* a slice. The index is partitioned by a field of the documents whose
//! value places each entry in the slice that the case names.
//!
//! Shared with the product are the encoding of keys, and the hash by which a value is found for each slice. The verdict
//! compares the numbers in the documents' ids with the case, and needs neither.

pub mod case;
mod cluster;
pub mod generate;
pub mod play;
