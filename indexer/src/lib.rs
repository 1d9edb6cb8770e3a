//! The indexer.
pub mod slice;
