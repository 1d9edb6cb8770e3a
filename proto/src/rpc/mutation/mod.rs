//! Key-versions: what a projector makes of mutations, and the streams that carry them.
//!
//! A *frame* covers `(vbucket, vbuuid, from-exclusive, to-inclusive]` and holds what these mutations
//! mean for one node; it covers the range also when it holds nothing, so that a stream is gap-free by
//! construction (I2). For each mutation that concerns the node it says, per index, which entries the
//! document has *from now on*; a document that is left out of an index is an empty state, never
//! silence. So applying the same key-versions twice changes nothing, and the last state of a document
//! is all that matters between two epochs.
//!
//! Key-versions are packed: one buffer from the projector through the wire, the indexer's commit log
//! and its queues, read in place. The format, version 1, integers as LEB128:
//!
//! ```text
//! mutation := seqno-minus-base  kind:u8  len(id) id  indexes  index*
//! index    := index-id  generation  entries  entry*
//! entry    := slice  len(key) key  len(include) include
//! ```

mod key_versions;
mod messages;

pub use key_versions::{
    EntryKeys, IndexKeys, KeyVersions, KeyVersionsReader, KeyVersionsWriter, MutationKind,
};
pub use messages::{BackfillMessage, BackfillRequest, Frame, StreamMessage, SubscribeRequest};
