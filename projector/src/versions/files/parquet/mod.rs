//! Parquet files.
//!
//! A file whose columns are all flat is read column by column ([`columns`]), in parts of its row groups. Nested columns need the row
//! interface of the library, which assembles them ([`nested`]). Both give the same documents. A damaged file may make the library panic;
//! that is an error of the file, like any other.

mod chunks;
mod column;
mod columns;
mod errors;
mod fields;
mod json;
mod nested;

use std::path::Path;

use parquet::basic::Repetition;
use parquet::file::reader::FileReader;
use proto::Result;
use proto::env::{FileSystem, OpenMode};

use super::batch::RowRules;
use super::parts::Parts;
use chunks::{Chunks, Reader};
use columns::FlatParts;
use errors::{caught, damaged};
use fields::Fields;
use nested::NestedRows;

/// Opens a file.
pub fn open(fs: &dyn FileSystem, path: &Path, rules: &RowRules) -> Result<Box<dyn Parts>> {
    let file = fs.open(path, OpenMode::Read)?;
    let len = file.len()?;
    let reader = caught(|| Reader::new(Chunks { file, len }).map_err(|error| damaged(&error)))?;
    let schema = reader.metadata().file_metadata().schema();
    let fields = Fields::new(schema, rules)?;
    let is_flat = schema.get_fields().iter().all(|field| {
        field.is_primitive() && field.get_basic_info().repetition() != Repetition::REPEATED
    });
    Ok(match is_flat {
        true => Box::new(FlatParts::new(reader, fields)),
        false => Box::new(NestedRows::new(reader, fields)?),
    })
}

#[cfg(test)]
mod tests;
