//! From documents to entries: the entries of a document in an index, and the nodes that receive them.

mod document_keys;
mod key_maker;
mod left_out;

pub use key_maker::{KeyMaker, ParsedOnce};
pub use left_out::LeftOutCounters;
