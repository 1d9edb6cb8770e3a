//! Reads the rows of files as documents.
//!
//! A pattern selects the files ([`pattern`]), and the ending of each name determines its format:
//!
//! | ending | rows |
//! |---|---|
//! | `.jsonl`, `.ndjson` | a JSON object in each line, which is the document, unchanged; blank lines are skipped |
//! | `.csv` | a record after a header; each column is a field ([`csv`]) |
//! | `.parquet` | a row; each column is a field. Only in a build with the feature `parquet` |
//!
//! Lines and records may be compressed by zstd (`.jsonl.zst`, `.csv.zst`). One field or column
//! has the document's id, a string or an integer, and remains in the document. Files are cut into
//! parts one after another, and several parts are read in parallel ([`parts`]). CSV files are not
//! read in parallel, because the end of a record is known only after parsing. An error names the
//! file and the place in it.

mod batch;
pub mod csv;
mod input;
pub mod lines;
#[cfg(feature = "parquet")]
mod parquet;
mod parts;
pub mod pattern;

use proto::Result;
use proto::env::FileSystem;

pub use batch::{Batch, BatchRow, RowRules};
use csv::CsvRows;
use input::open_text;
use lines::JsonLines;
pub use parts::{Part, Parts};
use pattern::{FileToRead, Format};

/// Opens a file, to read its rows in parts.
pub fn open_parts(
    fs: &dyn FileSystem,
    file: &FileToRead,
    rules: &RowRules,
) -> Result<Box<dyn Parts>> {
    Ok(match file.format {
        Format::JsonLines { is_compressed } => {
            Box::new(JsonLines::new(open_text(fs, &file.path, is_compressed)?))
        }
        Format::Csv { is_compressed } => {
            Box::new(CsvRows::new(open_text(fs, &file.path, is_compressed)?))
        }
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::open(fs, &file.path, rules)?,
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

#[cfg(all(test, feature = "parquet"))]
#[path = "fixtures_tests.rs"]
mod fixtures_tests;
