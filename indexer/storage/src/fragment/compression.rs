//! How blocks are compressed.

use serde::Serialize;

/// How the blocks of a fragment are compressed, each only if that saves an eighth of it or more.
///
/// Columns without their common beginnings leave little to save: the default is not to try.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// LZ4: fast, for long keys or included values that repeat themselves.
    Lz4,
    /// zstd: smaller, at several times the cost of reading.
    Zstd,
}
