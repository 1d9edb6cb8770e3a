//! Errors of a parquet file.

use parquet::errors::ParquetError;
use proto::env::Panic;
use proto::{Error, ErrorCode, Result};

/// Adds the number of a row to an error.
pub fn at_row(error: Error, row: u64) -> Error {
    error.context(format!("row {row}"))
}

/// Adds the number of a row group in the file to an error.
pub fn in_group(group: usize, error: Error) -> Error {
    error.context(format!("row group {group}"))
}

/// Runs code of the library, and turns a panic into an error.
pub fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    Panic::catch(work).unwrap_or_else(|panic| {
        let what = format!("the parquet file is damaged, or has what is not supported: {panic}");
        Err(Error::new(ErrorCode::InvalidText, what))
    })
}

/// The error for a column that ends too early.
pub fn few_rows() -> Error {
    let what = "the parquet file is damaged: a column has fewer rows than its group";
    Error::new(ErrorCode::InvalidText, what)
}

/// Converts an error of the library.
pub fn damaged(error: &ParquetError) -> Error {
    Error::new(ErrorCode::InvalidText, format!("the parquet file is not readable: {error}"))
}
