//! Fragments: tables in files, written once and then only read.
//!
//! A fragment is written from its beginning to its end by a [`FragmentWriter`], synced, and from then on
//! never changes; which slices it belongs to, and how much of it they show, is said by the manifests
//! alone. So the file can be shared by slices, kept by a scan after its last slice has gone, and sent to
//! another node as it is: there it gets another name, and the id in its header, which is part of its
//! checksums, stays.
//!
//! ```text
//! file    := header stored* meta filter trailer
//! header  := "SXFR" version:u32 id:u64 crc:u32
//! stored  := crc:u32 codec:u8 [raw-bytes:u32] bytes         codec: 0 plain, 1 LZ4, 2 zstd; raw-bytes
//!                                                           stands only before compressed bytes
//! meta    := columns, statistics, sparse index              postcard
//! filter  := line{filter-lines}                             64 bytes each
//! trailer := meta-offset:u64 meta-bytes:u32 filter-lines:u32 meta-crc:u32 filter-crc:u32 crc:u32 "RFXS"
//! ```
//! Integers are little endian, checksums are CRC-32C. The header's checksum covers all before it, in
//! every version, so that a version that is not known can be told from a damaged one. It is the seed of
//! the other checksums, and a block's also covers its offset: a block that was written to the wrong place,
//! or is left from another file, does not pass. Nothing lies between the parts: the blocks begin
//! behind the header, each begins where the one before ends, the meta section begins where the last one
//! ends, and the trailer ends with the file. Every byte is under a checksum, therefore.
//!
//! The file stays open as long as the [`Fragment`] lives, so that those who read it go on when its name is
//! gone.

pub(crate) mod cache;
pub(crate) mod compression;
pub(crate) mod describe;
pub(crate) mod filter;
pub(crate) mod format;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod mend;
pub(crate) mod reader;
pub(crate) mod stored_block;
pub(crate) mod writer;

pub use cache::BlockCache;
pub use compression::Compression;
pub use describe::{BlockInfo, FragmentInfo, SectionInfo, describe};
pub use filter::{FILTER_BYTES, Filter, filter_hash};
#[cfg(any(test, feature = "testing"))]
pub(crate) use mend::mend;
pub use reader::{Fragment, OpenFragment};
pub use writer::{FragmentOptions, FragmentWriter};

#[cfg(test)]
#[path = "fragment_tests.rs"]
pub(crate) mod tests;

#[cfg(test)]
#[path = "golden_tests.rs"]
pub(crate) mod golden_tests;
