//! Parquet files.
//!
//! A file whose columns are all flat is read column by column ([`columns`]), in parts of its row groups. Nested columns need the row
//! interface of the library, which assembles them ([`nested`]). Both give the same documents. A damaged file may make the library panic;
//! that is an error of the file, like any other.

mod chunks;
mod column;
mod columns;
mod json;
mod nested;

use std::path::Path;

use parquet::basic::Repetition;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::Type;
use proto::env::{FileSystem, OpenMode, Panic};
use proto::value::write_json_text;
use proto::{Error, ErrorCode, Result};

use super::batch::RowRules;
use super::parts::Parts;
use chunks::Chunks;
use columns::FlatParts;
use nested::NestedRows;

/// An open file.
type Reader = SerializedFileReader<Chunks>;

/// Opens a file.
pub fn open(fs: &dyn FileSystem, path: &Path, rules: &RowRules) -> Result<Box<dyn Parts>> {
    let file = fs.open(path, OpenMode::Read)?;
    let len = file.len()?;
    let reader = caught(|| {
        SerializedFileReader::new(Chunks { file, len }).map_err(|error| damaged(&error))
    })?;
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

/// The top-level columns.
struct Fields {
    /// What stands before the value of each: `{"name":` or `,"name":`.
    heads: Vec<Vec<u8>>,
    names: Vec<String>,
    /// The column with the id.
    id: usize,
}

impl Fields {
    fn new(schema: &Type, rules: &RowRules) -> Result<Self> {
        let fields = schema.get_fields().iter();
        let names: Vec<String> = fields.map(|field| field.name().to_owned()).collect();
        let Some(id) = names.iter().position(|name| *name == rules.id) else {
            let what = format!("the file has no column {:?} for the id", rules.id);
            return Err(Error::new(ErrorCode::InvalidText, what)
                .with_hint(format!("the columns are {}", names.join(", "))));
        };
        let head = |(at, name): (usize, &String)| {
            let mut head = vec![if at == 0 { b'{' } else { b',' }];
            write_json_text(name, &mut head);
            head.push(b':');
            head
        };
        let heads = names.iter().enumerate().map(head).collect();
        Ok(Self { heads, names, id })
    }

    /// Names the column that an error is about.
    fn in_column(&self, at: usize, error: Error) -> Error {
        error.context(format!("column {:?}", self.names[at]))
    }

    /// The error for an id that is null, or of another type.
    fn no_id(&self) -> Error {
        let what = format!("column {:?} is neither text nor an integer", self.names[self.id]);
        Error::new(ErrorCode::InvalidText, what)
    }
}

fn at_row(error: Error, row: u64) -> Error {
    error.context(format!("row {row}"))
}

/// Runs a part of the library.
fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    Panic::catch(work).unwrap_or_else(|panic| {
        let what = format!("the parquet file is damaged, or has what is not supported: {panic}");
        Err(Error::new(ErrorCode::InvalidText, what))
    })
}

fn few_rows() -> Error {
    let what = "the parquet file is damaged: a column has fewer rows than its group";
    Error::new(ErrorCode::InvalidText, what)
}

fn damaged(error: &ParquetError) -> Error {
    Error::new(ErrorCode::InvalidText, format!("the parquet file is not readable: {error}"))
}

#[cfg(test)]
mod tests;
