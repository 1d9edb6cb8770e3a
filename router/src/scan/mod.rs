//! Scans: scatter and gather.
//!
//! A scan chooses its epoch ([`open`]), takes the topology of the index as its *base topology*, and
//! reads every slice at that epoch. The slices that are read from one node form one *shard scan*;
//! the node merges them. An ordered scan merges its shards in the router ([`gather`]). An unordered
//! scan reads them one after another, and reads slices that have moved away at the end
//! ([`unordered`], [`virtual_scan`]).
//!
//! Each shard scan begins with a call for its first batch in the reader's task. The rest is sent
//! by a task through a small bounded channel ([`shard`]). So shards work in parallel, and a slow
//! reader applies back-pressure to them. When a node fails, the task continues on another node
//! with the slices, after the last entry received ([`attempt`]). No row is lost or repeated,
//! because the epoch is the same on each node.
//!
//! All slices of an ordered scan share one position: the last entry delivered. So a slice that has
//! moved can be read from its new node and merged with the others, and a token needs no
//! virtual-scan map.
//!
//! A scan holds an admission permit of the router while it is read. A scan that is not read for a
//! while is *parked* ([`stream::ScanStream::park`]): it releases its permit and its shard scans
//! with their buffers, and keeps its position and its epoch. The next read waits for a permit, as a
//! new scan does, and continues as from a token.

pub(crate) mod open;
pub(crate) mod resume;
pub(crate) mod stream;
pub(crate) mod token;
pub mod virtual_scan;

mod attempt;
mod gather;
mod merge_ahead;
mod place;
mod plan;
mod shard;
mod shard_stream;
mod source;
mod unordered;
