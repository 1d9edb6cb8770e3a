//! Fragments: tables in files, written once and then only read.
//!
//! A [`FragmentWriter`] writes a fragment from beginning to end and syncs it. Afterwards the file
//! never changes. Only the manifests say which slices a fragment belongs to and which of its rows
//! these slices read. So slices can share a file, a scan can read a file after its last slice was
//! dropped, and the blocks of a slice can be sent to another node (`part`).
//!
//! ```text
//! file    := header stored* meta filter trailer
//! header  := "sxfr" version:u16 kind:u8 0:u8 id:u64 crc:u32  kind: 0 with own epochs, 1 stamped
//! stored  := crc:u32 codec:u8 [raw-bytes:u32] bytes         codec: 0 plain, 1 LZ4, 2 zstd; raw-bytes
//!                                                           stands only before compressed bytes
//! meta    := columns, statistics, sparse index              postcard
//! filter  := line{filter-lines}                             64 bytes each
//! trailer := meta-offset:u64 meta-bytes:u32 filter-lines:u32 meta-crc:u32 filter-crc:u32 crc:u32 "rfxs"
//! ```
//! Integers are little endian, checksums are CRC-32C.
//!
//! All rows of a *stamped* fragment have one epoch, the one that the statistics name. Its blocks
//! are written before this epoch is known, and contain zero; a reader puts the epoch into each
//! block that it reads. So a large commit can be written before its epoch is known.
//!
//! # Invariants
//!
//! - The header's checksum covers everything before it, in every version of the format. So an
//!   unknown version can be distinguished from damage.
//! - The header's checksum is the seed of all other checksums, and the checksum of a block also
//!   covers its offset. So a block that was written to the wrong place, or left over from another
//!   file, does not pass.
//! - There are no gaps: the blocks begin after the header, each begins where the previous one ends,
//!   the meta section begins where the last block ends, and the trailer ends the file. So every
//!   byte is under a checksum.
//! - A name is durable only after its directory was synced. The caller does that once for all
//!   fragments that it wrote.
//!
//! Fragments are read and written through [`BlobStore`]: as files of a directory ([`FileBlobs`]),
//! or in memory for tests and fuzzers.
//!
//! A bounded number of files is open at once (`open_files`). A deleted file stays open for its
//! readers, so that they can continue.

pub(crate) mod blob_store;
pub(crate) mod cache;
pub(crate) mod compression;
pub(crate) mod describe;
pub(crate) mod file_blobs;
pub(crate) mod filter;
pub(crate) mod format;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod memory_blobs;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod mend;
pub(crate) mod open_files;
pub(crate) mod part;
pub(crate) mod reader;
pub(crate) mod stored_block;
pub(crate) mod writer;

pub use blob_store::{Blob, BlobStore, BlobWriter};
pub use cache::BlockCache;
pub use compression::Compression;
pub use describe::{BlockInfo, FragmentInfo, SectionInfo, describe, describe_in};
pub use file_blobs::FileBlobs;
pub use filter::{FILTER_BYTES, Filter, filter_hash};
#[cfg(any(test, feature = "testing"))]
pub(crate) use mend::mend;
pub use open_files::OpenFiles;
pub use reader::{Fragment, OpenFragment};
pub use writer::{FragmentOptions, FragmentWriter};

#[cfg(test)]
#[path = "fragment_tests.rs"]
pub(crate) mod tests;

#[cfg(test)]
#[path = "golden_tests.rs"]
pub(crate) mod golden_tests;
