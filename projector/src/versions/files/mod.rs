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
mod row;

use proto::Result;
use proto::env::FileSystem;

use csv::CsvRows;
use input::open_text;
use lines::JsonLines;
use pattern::{FileToRead, Format};
pub use row::{RowRules, Rows};

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
            return Err(proto::Error::new(proto::ErrorCode::Unsupported, what)
                .with_hint("load JSON lines or CSV, or build with the feature `parquet`"));
        }
    })
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
