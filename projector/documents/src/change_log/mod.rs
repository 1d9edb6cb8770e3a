//! The change log of one bucket: everything that happens to the bucket, in order.
//!
//! # Format
//!
//! The log is a direct log of the storage engine ([`storage::log::DirectLog`]): segment files with checksummed records,
//! marks that tell damage from a torn end, and a witness of what was synced. The payload of a record is a *group*, which
//! is there or not after a crash:
//!
//! ```text
//! group     := item+                                                               (little endian)
//! item      := crc:u32 len:u32 kind:u8 0:u8 vbucket:u16  body[len]
//! crc       := CRC-32C of (log_id:u64 lsn:u64), of the rest of the header, and of the body
//! run       := vbuuid:u64 first:u64 last:u64 bytes_before:u64 bytes:u64  mutation*              (kind 1)
//! mutation  := varint(2 * len(id) + is_deletion) id  [varint(len(json)) json]
//! record    := the bucket's record in postcard  [its newest commits in postcard  [places]]      (kind 2)
//! places    := for each prepared transaction, the place of its changes (`prepared_places.rs`), in postcard
//! rewind    := to:u64 bytes:u64                                                                 (kind 3)
//! remove    :=                                                                                  (kind 4)
//! begin     := purged:u64                                                                       (kind 5)
//! documents := (varint(len(id)) id varint(seqno) varint(len(json)) json)*                       (kind 6)
//! purge     := (vbucket:u16 to:u64 bytes:u64)*                                                  (kind 7)
//! committed := the commit of a transaction in postcard                                           (kind 8)
//! step      := another step of a transaction in postcard; a prepared one has its changes        (kind 9)
//! ```
//!
//! A *run* has mutations of one vbucket on one branch, without a gap. `bytes` counts their entries
//! ([`entry_bytes`](crate::mutation::entry_bytes)); `bytes_before`, and `bytes` of a rewind and of a purge point, count
//! the vbucket's log up to there since it began. The checksum of an item covers its place, so one run can be read and
//! verified alone, and bytes of another place or another log never pass for it.
//!
//! # Index
//!
//! A seqno is found in two steps, without reading other vbuckets' mutations:
//!
//! - the *directory* (`log_index.rs`) tells the segment: in memory, 16 bytes for each vbucket in each segment where the
//!   vbucket has retained mutations;
//! - the *index* of the segment (`segment_index.rs`) tells the run: 32 bytes for each run. That of the last segment is in
//!   memory. That of a closed segment is in a side file, BASE.index (`index_file.rs`); the parts of it that were used
//!   lately are cached, up to a bound for all logs of a store ([`IndexCache`]).
//!
//! So a log of 100 GiB in segments of 32 MiB with 64 vbuckets has 3 MiB of directory, and with 1,024 vbuckets 50 MiB. The index
//! of the last segment takes 50 KiB if groups are large, and at most 13 MiB, and twice that while it grows, if all groups
//! are single, empty mutations. Opening a log reads the header of each side file, and the segments behind the checkpoint.
//!
//! # Invariants
//!
//! - Readers see a group after the sync that follows it. They see all of it at once.
//! - The seqnos of a vbucket between its purge point and its end have no gap. A rewind makes those beyond it unreadable, and
//!   the next run continues from there; each seqno is then found in its newest run.
//! - A side file follows from its segment alone, so it can be lost at any time.
//! - A segment is released only if no vbucket's directory names it, and the caller's checkpoint covers it and names no place in it.
//! - No lock that readers need is held during file input and output.
//!
//! # Damage
//!
//! A torn end is dropped, a whole group at a time. All other damage is `Corrupt`, at the opening or, in segments that
//! the checkpoint covers, at the read that meets it: the error names the file, the offset, and the mutations that it
//! concerns as far as later ones show it. A lost or shortened last segment is found by the witness, as far as that was
//! written ([`ChangeLog::mark`] writes it, and each new segment).

mod append;
mod describe;
mod expected;
mod format;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod fuzz;
mod group;
mod index_cache;
mod index_file;
mod index_files;
mod item;
mod joint_seen;
mod log;
mod log_index;
mod open;
mod prepared_places;
mod read;
mod salvage;
mod segment_index;
mod state;
mod survey;

pub use describe::{ItemContent, ItemInfo, describe};
pub use group::GroupBuilder;
pub use index_cache::IndexCache;
pub use item::{LogEvent, MutationPlace, Run, RunMutation};
pub use joint_seen::JointSeen;
pub use log::{ChangeLog, GroupPlace};
pub use open::{ChangeLogOptions, EventPlace, EventReplay, KnownLog};
pub(crate) use prepared_places::StoredCommits;
pub use prepared_places::{PreparedPlace, PreparedPlaces};
pub use read::VbucketRange;
pub use salvage::{Salvaged, read_prepared, salvage};
pub use state::{LogState, VbucketState};
pub use survey::{LogRemark, LogSurvey, SeqnoGap, verify};

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod history;
#[cfg(test)]
mod history_tests;
#[cfg(test)]
mod naive_model;
#[cfg(test)]
mod tamper_tests;
#[cfg(test)]
mod tests;
