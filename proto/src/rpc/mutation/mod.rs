//! Key-versions, the index entries that a projector derives from mutations, and the streams that carry them.
//!
//! A *frame* covers the range `(vbucket, vbuuid, from-exclusive, to-inclusive]` and contains the key-versions of these
//! mutations for one node. An empty frame covers its range too, so a stream is gap-free by construction (I2). For each
//! mutation that concerns the node, a frame states for each index which entries the document has *from now on*. A
//! document that is left out of an index has an empty state, which is sent too. Applying the same key-versions twice
//! therefore changes nothing, and between two epochs only the last state of a document matters.
//!
//! Key-versions are packed into one buffer, which is sent over the network into the indexer's commit log and queues, and is read in place.
//! The format, version 1, with integers as LEB128:
//!
//! ```text
//! mutation := seqno-minus-base  kind:u8  len(id) id  indexes  index*
//! index    := index-id  generation  entries  entry*
//! entry    := slice  len(key) key  len(include) include
//! ```

mod bodies;
mod commit_marker;
mod key_versions;
mod messages;

pub use bodies::{BodiesDigest, TransactionBodies};
pub use commit_marker::{CommitMarker, CommitRange};
pub use key_versions::{
    EntryKeys, IndexKeys, KeyVersions, KeyVersionsReader, KeyVersionsWriter, MutationKind,
};
pub use messages::{
    BackfillMessage, BackfillRequest, FRAMES_AHEAD_BYTES_MAX, Frame, StreamMessage,
    SubscribeRequest,
};
