//! The errors that reading a Parquet file may cause.

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

/// Runs `work`, which calls the Parquet library, and turns a panic of the library into an error.
pub fn catch_panic<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    Panic::catch(work).unwrap_or_else(|panic| {
        let what = format!("the parquet file is damaged, or has what is not supported: {panic}");
        Err(Error::new(ErrorCode::InvalidText, what))
    })
}

/// Returns the error for a column that has fewer values than the file has rows.
pub fn few_rows_error() -> Error {
    let what = "the parquet file is damaged: a column has fewer rows than its group";
    Error::new(ErrorCode::InvalidText, what)
}

/// Converts an error of the Parquet library.
pub fn library_error(error: &ParquetError) -> Error {
    Error::new(ErrorCode::InvalidText, format!("the parquet file is not readable: {error}"))
}
