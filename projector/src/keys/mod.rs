//! Computes the entries of documents in indexes, and selects those that a node receives.

mod document_keys;
mod key_maker;
mod left_out;

pub use key_maker::{KeyMaker, ParsedOnce};
pub use left_out::LeftOutCounters;
