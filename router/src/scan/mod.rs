//! Scans: scatter and gather.
//!
//! A scan fixes its epoch, takes the index's topology as its base, and reads every slice of it at that
//! epoch. The slices that one node answers for are one *shard scan*, merged there. Where order counts, the
//! shards are merged here ([`gather`]); else they follow each other, and what is found to have moved is read
//! behind them ([`unordered`], [`virtual_scan`]). Each shard scan is driven by a task of its own with a small
//! bounded channel, so that shards work side by side and a slow reader holds them back; when a shard fails it
//! is resumed on a replica after the last entry that came, which is exact because the epoch is the same there
//! ([`shard`]).
//!
//! In an ordered scan all slices stand at one entry, the last that was delivered, wherever they are: so a
//! slice that has moved is merged in from its new place, and a token needs no virtual-scan map.
//!
//! A scan holds a permit of the router's admission while it is read. One that its reader lays aside is
//! *parked* ([`ScanStream::park`]): permit, shard scans and what they have ready go, and its place and its epoch
//! stay. When it is read again it waits for a permit like a new one and goes on as a token would.

pub(crate) mod open;
pub(crate) mod stream;
pub mod virtual_scan;

mod gather;
mod plan;
mod resume;
mod retry_round;
mod shard;
mod shard_stream;
mod source;
mod unordered;
