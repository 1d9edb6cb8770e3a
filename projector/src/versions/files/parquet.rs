//! Parquet files.
//!
//! Rows come from the row interface of the library, which assembles nested columns. A damaged file may make the library panic; that is
//! an error of the file, like any other.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row as ParquetRow};
use proto::env::{File, FileSystem, OpenMode, Panic};
use proto::value::key::check_id;
use proto::value::write_json_text;
use proto::{Error, ErrorCode, Result};

use super::parquet_json::{integer, write_field};
use super::row::{Row, RowRules, Rows, document_too_long};

/// The size of a read of what has no known length, like the header of a page.
const READ_BYTES: usize = 8 << 10;

/// The documents of a parquet file.
pub struct ParquetRows {
    rows: RowIter<'static>,
    rules: RowRules,
    /// Each top-level column as a field of JSON: its name in quotes, with a colon.
    fields: Vec<Vec<u8>>,
    /// The column with the id.
    id: usize,
    /// The number of the last row.
    row: u64,
    /// The size of the last document, for the next one.
    document_bytes: usize,
}

impl ParquetRows {
    /// Opens a file.
    pub fn open(fs: &dyn FileSystem, path: &Path, rules: RowRules) -> Result<Self> {
        let file = fs.open(path, OpenMode::Read)?;
        let len = file.len()?;
        let file = Chunks { file, len };
        let reader = caught(|| SerializedFileReader::new(file).map_err(|error| damaged(&error)))?;
        let schema = reader.metadata().file_metadata().schema();
        let names: Vec<&str> = schema.get_fields().iter().map(|field| field.name()).collect();
        let Some(id) = names.iter().position(|name| *name == rules.id) else {
            let what = format!("the file has no column {:?} for the id", rules.id);
            return Err(Error::new(ErrorCode::InvalidText, what)
                .with_hint(format!("the columns are {}", names.join(", "))));
        };
        let field = |name: &&str| {
            let mut field = Vec::with_capacity(name.len() + 3);
            write_json_text(name, &mut field);
            field.push(b':');
            field
        };
        let fields = names.iter().map(field).collect();
        let rows = caught(|| Ok(RowIter::from_file_into(Box::new(reader))))?;
        Ok(Self { rows, rules, fields, id, row: 0, document_bytes: 256 })
    }

    fn read_row(&mut self) -> Result<Option<Row>> {
        self.row += 1;
        let next = caught(|| self.rows.next().transpose().map_err(|error| damaged(&error)))?;
        next.map(|row| self.document(&row)).transpose()
    }

    fn document(&mut self, row: &ParquetRow) -> Result<Row> {
        let mut id = None;
        let mut document = Vec::with_capacity(self.document_bytes);
        document.push(b'{');
        for (at, ((name, value), field)) in row.get_column_iter().zip(&self.fields).enumerate() {
            if at == self.id {
                id = id_of(value);
            }
            if at > 0 {
                document.push(b',');
            }
            document.extend_from_slice(field);
            write_field(value, &mut document)
                .map_err(|error| error.context(format!("column {name:?}")))?;
        }
        document.push(b'}');
        let id = id.ok_or_else(|| {
            let what = format!("column {:?} is neither text nor an integer", self.rules.id);
            Error::new(ErrorCode::InvalidText, what)
        })?;
        check_id(&id)?;
        if document.len() > self.rules.document_bytes_max {
            return Err(document_too_long(document.len(), self.rules.document_bytes_max));
        }
        self.document_bytes = document.len() + document.len() / 8;
        Ok(Row { id, document: Bytes::from(document) })
    }
}

impl Rows for ParquetRows {
    fn next_row(&mut self) -> Result<Option<Row>> {
        self.read_row().map_err(|error| error.context(format!("row {}", self.row)))
    }
}

fn id_of(value: &Field) -> Option<String> {
    match value {
        Field::Str(text) => Some(text.clone()),
        Field::Bytes(bytes) => std::str::from_utf8(bytes.data()).ok().map(str::to_owned),
        other => integer(other).map(|number| number.to_string()),
    }
}

/// Runs a part of the library.
fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    Panic::catch(work).unwrap_or_else(|panic| {
        let what = format!("the parquet file is damaged, or has what is not supported: {panic}");
        Err(Error::new(ErrorCode::InvalidText, what))
    })
}

fn damaged(error: &ParquetError) -> Error {
    Error::new(ErrorCode::InvalidText, format!("the parquet file is not readable: {error}"))
}

/// A file as the library reads it.
struct Chunks {
    file: Arc<dyn File>,
    len: u64,
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for Chunks {
    type T = io::BufReader<ChunkRead>;

    fn get_read(&self, start: u64) -> std::result::Result<Self::T, ParquetError> {
        let read = ChunkRead { file: Arc::clone(&self.file), at: start, len: self.len };
        Ok(io::BufReader::with_capacity(READ_BYTES, read))
    }

    fn get_bytes(&self, start: u64, length: usize) -> std::result::Result<Bytes, ParquetError> {
        // A damaged length must not take memory.
        if start.checked_add(length as u64).is_none_or(|end| end > self.len) {
            let what = format!("{length} bytes at {start} are beyond the end of the file");
            return Err(ParquetError::EOF(what));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// A part of a file, from a place on.
struct ChunkRead {
    file: Arc<dyn File>,
    at: u64,
    len: u64,
}

impl Read for ChunkRead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.len.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let count = out.len().min(left);
        self.file.read_exact_at(&mut out[..count], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
