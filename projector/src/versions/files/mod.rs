//! The rows of files, as documents.
//!
//! A pattern names the files ([`pattern`]), and the ending of each tells its format:
//!
//! | ending | rows |
//! |---|---|
//! | `.jsonl`, `.ndjson` | a JSON object in each line, which is the document as it is; blank lines do not count |
//! | `.csv` | a record behind a header; each column is a field ([`csv`]) |
//! | `.parquet` | a row; each column is a field. Only in a build with the feature `parquet` |
//!
//! Lines and records may be compressed by zstd (`.jsonl.zst`, `.csv.zst`). A field or column has the document's id, a string or an
//! integer, and stays in the document. Files are read one after another, through the file seam, and an error names file and place.

pub mod csv;
mod input;
pub mod lines;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod parquet_json;
pub mod pattern;

use proto::env::FileSystem;
use proto::{Error, Result};

use bytes::Bytes;
use csv::CsvRows;
use input::open_text;
use lines::JsonLines;
use pattern::{FileToRead, Format};

/// A document from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its id.
    pub id: String,
    /// Its text.
    pub document: Bytes,
}

/// The rows of one file.
pub trait Rows: Send {
    /// The next row; `None` at the end. An error names the place in the file. Nothing is read behind an error.
    fn next_row(&mut self) -> Result<Option<Row>>;
}

/// What the rows of a version are read with.
#[derive(Clone, Debug)]
pub struct RowRules {
    /// The field or column with the id.
    pub id: String,
    /// The size limit of a document.
    pub document_bytes_max: usize,
}

/// Opens a file.
pub fn open_rows(
    fs: &dyn FileSystem,
    file: &FileToRead,
    rules: &RowRules,
) -> Result<Box<dyn Rows>> {
    let rules = rules.clone();
    Ok(match file.format {
        Format::JsonLines { is_compressed } => {
            Box::new(JsonLines::new(open_text(fs, &file.path, is_compressed)?, rules))
        }
        Format::Csv { is_compressed } => {
            Box::new(CsvRows::new(open_text(fs, &file.path, is_compressed)?, rules))
        }
        #[cfg(feature = "parquet")]
        Format::Parquet => Box::new(parquet::ParquetRows::open(fs, &file.path, rules)?),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => {
            let what = "this projector is built without parquet";
            return Err(Error::new(proto::ErrorCode::Unsupported, what)
                .with_hint("load JSON lines or CSV, or build with the feature `parquet`"));
        }
    })
}

/// The error for a document that is over its limit.
fn document_too_long(bytes: usize, bytes_max: usize) -> Error {
    let what = format!("the document has {bytes} bytes; the limit is {bytes_max} bytes");
    Error::new(proto::ErrorCode::OverLimit, what)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
