//! The change log of one bucket: all changes of the bucket, in order.
//!
//! # Format
//!
//! The log is a direct log of the storage engine ([`storage::log::DirectLog`]): segment files with
//! checksummed records, marks that distinguish damage from a torn end, and a witness of the synced
//! position. The payload of a record is a *group*, which a crash keeps or removes completely:
//!
//! ```text
//! group     := item+                                                               (little endian)
//! item      := crc:u32 len:u32 kind:u8 0:u8 vbucket:u16  body[len]
//! crc       := CRC-32C of (log_id:u64 lsn:u64), of the rest of the header, and of the body
//! run       := vbuuid:u64 first:u64 last:u64 bytes_before:u64 bytes:u64  mutation*              (kind 1)
//! mutation  := varint(2 * len(id) + is_deletion) id  [varint(len(json)) json]
//! record    := the bucket's record in postcard  [its newest commits in postcard  [places]]      (kind 2)
//! places    := for each prepared transaction, the place of its changes (`items/prepared_places.rs`), in postcard
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
//! ([`entry_bytes`](crate::mutation::entry_bytes)); `bytes_before`, and `bytes` of a rewind and of
//! a purge point, count the vbucket's log up to there since it began. The checksum of an item
//! covers its place, so one run can be read and verified alone, and bytes from another place or
//! another log fail the check.
//!
//! # Index
//!
//! A seqno is found in two steps, without reading other vbuckets' mutations:
//!
//! - the *directory* (`index/directory.rs`) finds the segment: in memory, 16 bytes for each vbucket
//!   in each segment where the vbucket has retained mutations;
//! - the *index* of the segment (`index/segment.rs`) finds the run: 32 bytes for each run. That of
//!   the last segment is in memory. That of a closed segment is in a side file, BASE.index
//!   (`index/file.rs`); recently used sections of side files are cached, up to a bound for all logs
//!   of a store ([`IndexCache`]).
//!
//! So a log of 100 GiB in segments of 32 MiB with 64 vbuckets has 3 MiB of directory, and with
//! 1,024 vbuckets 50 MiB. The index of the last segment takes 50 KiB if groups are large, and at
//! most 13 MiB, and twice that while it grows, if all groups are single, empty mutations. Opening a
//! log reads the header of each side file, and the segments after the checkpoint.
//!
//! # Invariants
//!
//! - A group becomes visible to readers with the sync that follows it, all of it at once.
//! - The seqnos of a vbucket between its purge point and its end have no gap. A rewind makes all
//!   later seqnos unreadable, and the next run continues after the rewind's position; each seqno is
//!   then found in its newest run.
//! - A side file is derived from its segment alone, so it can be lost at any time.
//! - A segment is released only if no vbucket's directory names it, and the caller's checkpoint
//!   covers it and names no place in it.
//! - No lock that readers need is held during file input and output.
//!
//! # Damage
//!
//! A torn end is dropped, in complete groups. All other damage is `Corrupt`, at the opening or, in
//! segments that the checkpoint covers, at the read that finds it: the error names the file, the
//! offset, and the affected mutations, if later ones show which these are. A lost or truncated last
//! segment is detected up to the position in the witness, which [`ChangeLog::record_synced_end`] and each new
//! segment write.

#[cfg(any(test, feature = "testing"))]
pub(crate) mod fuzz;
mod index;
mod inspection;
mod items;
mod joint_seen;
mod log;
mod open;
mod read;
mod salvage;

pub use index::cache::IndexCache;
pub use inspection::describe::{ItemContent, ItemInfo, describe};
pub use inspection::survey::{LogRemark, LogSurvey, SeqnoGap, verify};
pub use items::group::GroupBuilder;
pub use items::item::{LogEvent, MutationPlace, Run, RunMutation};
pub(crate) use items::prepared_places::StoredCommits;
pub use items::prepared_places::{PreparedPlace, PreparedPlaces};
pub use items::state::{LogState, VbucketState};
pub use joint_seen::SeenJointStep;
pub use log::{ChangeLog, GroupPlace};
pub use open::{ChangeLogOptions, EventPlace, EventReplay, KnownLog};
pub use read::VbucketRange;
pub use salvage::{ReadableRest, read_damaged_log, read_prepared};

#[cfg(test)]
mod tests;
