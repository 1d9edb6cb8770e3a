//! Key-versions and the streams that carry them. A *key-version* is the list of index entries
//! that a projector derives from a mutation.
//!
//! A *frame* covers a range of mutations `(vbucket, vbuuid, from-exclusive, to-inclusive]`, and
//! contains their key-versions for one node. A frame without key-versions covers its range too,
//! so a stream has no gaps by construction (I2). For each mutation that concerns the node, a
//! frame lists for each index which entries the document has *from now on*. If the document is
//! left out of an index, an empty list is sent. Applying the same key-versions twice therefore
//! changes nothing, and between two epochs only the last key-version of a document matters.
//!
//! Key-versions are packed into one buffer. It is sent over the network, is written to the
//! indexer's commit log and queues, and is read in place. The format, version 1, with integers as
//! LEB128:
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

pub use bodies::{ChangesDigest, UncommittedChanges};
pub use commit_marker::{CommitMarker, CommitRange};
pub use key_versions::{
    EntryKeys, IndexKeys, KeyVersions, KeyVersionsReader, KeyVersionsWriter, MutationKind,
};
pub use messages::{
    BackfillMessage, BackfillRequest, FRAMES_AHEAD_BYTES_MAX, Frame, StreamMessage,
    SubscribeRequest,
};
