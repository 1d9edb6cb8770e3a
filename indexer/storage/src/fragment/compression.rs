//! Compression of blocks.

pub use proto::model::index::Compression;
