//! The compression of a fragment's blocks, as an index's definition names it.

pub use proto::model::index::Compression;
