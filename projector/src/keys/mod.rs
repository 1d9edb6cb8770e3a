//! From documents to entries: what a document is in an index, and which of it goes to which node.

mod document_keys;
mod key_maker;

pub use key_maker::KeyMaker;
