//! Compression of blocks.

use serde::Serialize;

/// Compression of a fragment's blocks. A block is compressed only if that saves at least an eighth
/// of it.
///
/// The default is no compression: columns without their shared prefixes leave little to save.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// LZ4: fast; for long keys or repetitive included values.
    Lz4,
    /// zstd: smaller, but reads cost several times as much.
    Zstd,
}
