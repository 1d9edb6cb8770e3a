//! Reads Parquet files.
//!
//! A file whose columns are all flat is read column by column ([`columns`]), and its row groups
//! are cut into parts. Nested columns are read through the library's row interface, which
//! assembles them ([`nested`]). Both ways produce the same documents. A damaged file may make the
//! library panic; the panic is turned into an error about the file.

mod chunks;
mod column;
mod columns;
mod errors;
mod fields;
mod footer;
mod json;
pub(super) mod kind;
mod moment;
mod nested;

use std::path::Path;

use parquet::basic::{Compression, Repetition};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::FileReader;
use proto::env::{FileSystem, OpenMode};
use proto::{Error, ErrorCode, Result};

use super::batch::RowRules;
use super::parts::Parts;
use chunks::{Chunks, Reader};
use columns::FlatParts;
use errors::{catch_panic, library_error};
use fields::Fields;
use footer::check_footer;
use nested::NestedRows;

/// Opens a Parquet file, to read its rows in parts.
pub fn open(fs: &dyn FileSystem, path: &Path, rules: &RowRules) -> Result<Box<dyn Parts>> {
    let file = fs.open(path, OpenMode::Read)?;
    let len = file.len()?;
    let file = Chunks { file, len };
    check_footer(&file)?;
    let reader = catch_panic(|| Reader::new(file.clone()).map_err(|error| library_error(&error)))?;
    let schema = reader.metadata().file_metadata().schema();
    let fields = Fields::new(schema, rules)?;
    check_codecs(reader.metadata())?;
    let is_flat = schema.get_fields().iter().all(|field| {
        field.is_primitive() && field.get_basic_info().repetition() != Repetition::REPEATED
    });
    Ok(match is_flat {
        true => Box::new(FlatParts::new(reader, fields)),
        false => Box::new(NestedRows::new(file, reader, fields)?),
    })
}

/// Returns an error if the pages of a file are compressed by a method that this build does not
/// support.
fn check_codecs(metadata: &ParquetMetaData) -> Result<()> {
    let mut columns = metadata.row_groups().iter().flat_map(|group| group.columns());
    let unknown = columns.find(|column| {
        !matches!(
            column.compression(),
            Compression::UNCOMPRESSED
                | Compression::SNAPPY
                | Compression::GZIP(_)
                | Compression::LZ4
                | Compression::LZ4_RAW
                | Compression::ZSTD(_)
        )
    });
    unknown.map_or(Ok(()), |column| {
        let (name, codec) = (column.column_path().string(), column.compression());
        let what = format!("column {name:?} is compressed by {codec}, which is not supported");
        Err(Error::new(ErrorCode::Unsupported, what)
            .with_hint("write the file uncompressed, or with snappy, gzip, lz4 or zstd"))
    })
}

#[cfg(test)]
mod tests;
