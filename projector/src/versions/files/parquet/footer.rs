//! Checks the footer of a Parquet file, which contains its metadata, before the Parquet library
//! reads it. The library recurses into groups without a bound. It allocates memory for the
//! numbers of children and row groups that the footer names. And it copies the names of all
//! enclosing groups for each column. Each of these can end the process.
//!
//! A footer is a struct of Thrift's compact protocol
//! (<https://github.com/apache/parquet-format>): its second field is the list of the schema's
//! elements, depth first, each with the number of its children, and its fourth is the list of row
//! groups. The library uses the ids of fields and ignores their kinds and order. So this check
//! requires that the fields of the format have the format's kinds, that ids only grow, and that a
//! list has no more elements than there are bytes. Then the check and the library interpret the
//! footer in the same way.

use parquet::errors::ParquetError;
use parquet::file::reader::ChunkReader;
use proto::{Error, ErrorCode, Result};

use super::chunks::Chunks;
use super::errors::library_error;

/// Maximum bytes of a footer; the library needs some 30 times as much memory.
const FOOTER_BYTES_MAX: u32 = 32 << 20;
/// Maximum nesting depth of groups: more than documents may nest, even if each list takes two
/// groups.
const GROUPS_MAX: usize = 256;
/// Maximum bytes of the names of all columns, where each column counts the names of all groups
/// that enclose it.
const PATH_BYTES_MAX: usize = 64 << 20;
/// The approximate memory of a name in the path of a column, in addition to its bytes.
const NAME_BYTES: usize = 24;
/// Maximum number of row groups of a file, which the library numbers with 16 bits.
const ROW_GROUPS_MAX: usize = i16::MAX as usize;
/// Maximum nesting depth of structs and lists.
const LEVELS_MAX: usize = 32;
/// The bytes at the end of a file: the length of its footer, and a magic number.
const TAIL_BYTES: u64 = 8;
const MARK: &[u8] = b"PAR1";

/// Returns an error if the footer of a file could harm the Parquet library. A file without a
/// footer passes; the library refuses it.
pub fn check_footer(file: &Chunks) -> Result<()> {
    let Some(at) = file.len.checked_sub(TAIL_BYTES) else { return Ok(()) };
    let tail = file.get_bytes(at, TAIL_BYTES as usize).map_err(|error| library_error(&error))?;
    let (length, mark) = tail.split_at(4);
    let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
    match at.checked_sub(u64::from(length)) {
        Some(_) if mark == MARK && length > FOOTER_BYTES_MAX => {
            let what =
                format!("its footer has {length} bytes; the limit is {FOOTER_BYTES_MAX} bytes");
            Err(Error::new(ErrorCode::OverLimit, what)
                .with_hint("write files with fewer row groups or columns"))
        }
        Some(from) if mark == MARK => {
            let footer =
                file.get_bytes(from, length as usize).map_err(|error| library_error(&error))?;
            check(&footer).map_err(|what| library_error(&ParquetError::General(what.to_owned())))
        }
        _ => Ok(()),
    }
}

fn check(footer: &[u8]) -> std::result::Result<(), &'static str> {
    let mut footer = Compact(footer);
    footer.check().unwrap_or(Err("its footer cannot be read"))
}

/// The structure that the format requires of a value.
#[derive(Debug)]
enum Shape {
    Bool,
    Byte,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List(&'static Shape),
    Struct(Fields),
}

/// The fields that the format defines for a struct: their ids and the structures of their values.
/// A union is a struct of one field.
type Fields = &'static [(u8, Shape)];

impl Shape {
    /// Returns true if values of this shape are encoded with this kind.
    fn has_kind(&self, kind: u8) -> bool {
        match self {
            Self::Bool => matches!(kind, kind::TRUE | kind::FALSE),
            Self::Byte => kind == kind::BYTE,
            Self::I16 => kind == kind::I16,
            Self::I32 => kind == kind::I32,
            Self::I64 => kind == kind::I64,
            Self::Double => kind == kind::DOUBLE,
            Self::Binary => kind == kind::BINARY,
            Self::List(_) => kind == kind::LIST,
            Self::Struct(_) => kind == kind::STRUCT,
        }
    }
}

/// The kinds of values in Thrift's compact protocol, as numbers.
mod kind {
    pub const TRUE: u8 = 1;
    pub const FALSE: u8 = 2;
    pub const BYTE: u8 = 3;
    pub const I16: u8 = 4;
    pub const I32: u8 = 5;
    pub const I64: u8 = 6;
    pub const DOUBLE: u8 = 7;
    pub const BINARY: u8 = 8;
    pub const LIST: u8 = 9;
    pub const SET: u8 = 10;
    pub const MAP: u8 = 11;
    pub const STRUCT: u8 = 12;
}

use Shape::{Binary, Bool, Byte, Double, I16, I32, I64, List, Struct};

const EMPTY: Shape = Struct(&[]);
const KEY_VALUE: Shape = Struct(&[(1, Binary), (2, Binary)]);

/// The ids of the fields of a footer that are checked.
const SCHEMA: u8 = 2;
const ROW_GROUPS: u8 = 4;
const FILE: Fields = &[
    (1, I32),
    (3, I64),
    (5, List(&KEY_VALUE)),
    (6, Binary),
    (7, List(&Struct(&[(1, EMPTY), (2, EMPTY)]))),
    (8, Struct(&[])),
    (9, Binary),
];

/// The ids of the fields of a schema element that are checked.
const NAME: u8 = 4;
const CHILDREN: u8 = 5;
const ELEMENT: Fields = &[
    (1, I32),
    (2, I32),
    (3, I32),
    (NAME, Binary),
    (CHILDREN, I32),
    (6, I32),
    (7, I32),
    (8, I32),
    (9, I32),
    (10, Struct(LOGICAL)),
];

const TIME: Shape = Struct(&[(1, Bool), (2, Struct(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]))]);
/// The fields of a logical type. Decimals, times, timestamps, integers, variants and geometric
/// shapes have fields.
const LOGICAL: Fields = &[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    (5, Struct(&[(1, I32), (2, I32)])),
    (6, EMPTY),
    (7, TIME),
    (8, TIME),
    (10, Struct(&[(1, Byte), (2, Bool)])),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
    (16, Struct(&[(1, Byte)])),
    (17, Struct(&[(1, Binary)])),
    (18, Struct(&[(1, Binary), (2, I32)])),
];

const ROW_GROUP: Shape = Struct(&[
    (1, List(&COLUMN)),
    (2, I64),
    (3, I64),
    (4, List(&Struct(&[(1, I32), (2, Bool), (3, Bool)]))),
    (5, I64),
    (6, I64),
    (7, I16),
]);
const COLUMN: Shape = Struct(&[
    (1, Binary),
    (2, I64),
    (3, Struct(COLUMN_DATA)),
    (4, I64),
    (5, I32),
    (6, I64),
    (7, I32),
    (8, Struct(&[])),
    (9, Binary),
]);
const COLUMN_DATA: Fields = &[
    (1, I32),
    (2, List(&I32)),
    (3, List(&Binary)),
    (4, I32),
    (5, I64),
    (6, I64),
    (7, I64),
    (8, List(&KEY_VALUE)),
    (9, I64),
    (10, I64),
    (11, I64),
    (12, Struct(STATISTICS)),
    (13, List(&Struct(&[(1, I32), (2, I32), (3, I32)]))),
    (14, I64),
    (15, I32),
    (16, Struct(&[(1, I64), (2, List(&I64)), (3, List(&I64))])),
    (17, Struct(&[(1, Struct(BOX)), (2, List(&I32))])),
];
const STATISTICS: Fields = &[
    (1, Binary),
    (2, Binary),
    (3, I64),
    (4, I64),
    (5, Binary),
    (6, Binary),
    (7, Bool),
    (8, Bool),
    (9, I64),
];
const BOX: Fields = &[
    (1, Double),
    (2, Double),
    (3, Double),
    (4, Double),
    (5, Double),
    (6, Double),
    (7, Double),
    (8, Double),
];

/// The bytes of a footer that were not read yet. The methods return `None` for bytes that are not
/// a valid footer.
struct Compact<'b>(&'b [u8]);

impl Compact<'_> {
    fn check(&mut self) -> Option<std::result::Result<(), &'static str>> {
        let mut id = 0;
        while let Some(kind) = self.field(&mut id)? {
            match (id, kind) {
                (SCHEMA, kind::LIST) => {
                    if let Err(what) = self.schema()? {
                        return Some(Err(what));
                    }
                }
                (ROW_GROUPS, kind::LIST) => {
                    let count = self.list(|kind| ROW_GROUP.has_kind(kind))?.0;
                    if count > ROW_GROUPS_MAX {
                        return Some(Err("it has too many row groups"));
                    }
                    (0..count).try_for_each(|_| self.skip_shaped_value(&ROW_GROUP, LEVELS_MAX))?;
                }
                (SCHEMA | ROW_GROUPS, _) => return None,
                _ => self.skip_field_value(FILE, (id, kind), LEVELS_MAX)?,
            }
        }
        Some(Ok(()))
    }

    fn schema(&mut self) -> Option<std::result::Result<(), &'static str>> {
        let (count, _) = self.list(|kind| kind == kind::STRUCT)?;
        // The groups that the next element is in: the children of each that are still to come, and the bytes of the path.
        let mut groups: Vec<(u64, usize)> = Vec::new();
        // Each element but the first one is a child.
        let mut children_left = (count as u64).saturating_sub(1);
        let mut path_bytes = 0;
        for _ in 0..count {
            let (children, name) = self.element()?;
            while groups.last().is_some_and(|(left, _)| *left == 0) {
                groups.pop();
            }
            let path = groups.last().map_or(0, |(_, path)| *path) + name + NAME_BYTES;
            if let Some((left, _)) = groups.last_mut() {
                *left -= 1;
            }
            path_bytes += if children == 0 { path } else { 0 };
            if path_bytes > PATH_BYTES_MAX {
                return Some(Err("the names of its columns are too long"));
            }
            match children_left.checked_sub(children) {
                Some(left) => children_left = left,
                None => {
                    return Some(Err("the groups of its schema have more columns than there are"));
                }
            }
            groups.push((children, path));
            if groups.len() > GROUPS_MAX {
                return Some(Err("its columns nest too deep"));
            }
        }
        Some(Ok(()))
    }

    /// Reads a schema element. Returns the number of its children, and the length of its name.
    fn element(&mut self) -> Option<(u64, usize)> {
        let (mut id, mut children, mut name) = (0, 0, 0);
        while let Some(kind) = self.field(&mut id)? {
            match (id, kind) {
                // Signed numbers have their sign in the last bit; a negative one is more than there are elements.
                (CHILDREN, kind::I32) => {
                    let number = self.number()?;
                    children = if number & 1 == 0 { number >> 1 } else { u64::MAX };
                }
                (NAME, kind::BINARY) => {
                    let before = self.0.len();
                    self.skip_shaped_value(&Binary, LEVELS_MAX)?;
                    name = before - self.0.len();
                }
                _ => self.skip_field_value(ELEMENT, (id, kind), LEVELS_MAX)?,
            }
        }
        Some((children, name))
    }

    /// Reads the head of a field. Sets `id` to the field's id, which must be larger than the last
    /// one. Returns the kind of the field's value; `Some(None)` at the end of the struct.
    fn field(&mut self, id: &mut u8) -> Option<Option<u8>> {
        let head = self.byte()?;
        if head & 15 == 0 {
            return Some(None);
        }
        let next = match head >> 4 {
            // A signed number, with its sign in the last bit.
            0 => {
                self.number().filter(|id| id & 1 == 0).and_then(|id| u8::try_from(id >> 1).ok())?
            }
            step => id.checked_add(step)?,
        };
        if next <= *id {
            return None;
        }
        *id = next;
        Some(Some(head & 15))
    }

    /// Skips the value of a field. If the field is listed in `fields`, checks its kind and
    /// structure.
    fn skip_field_value(
        &mut self,
        fields: Fields,
        (id, kind): (u8, u8),
        levels: usize,
    ) -> Option<()> {
        match fields.iter().find(|(known, _)| *known == id) {
            Some((_, shape)) if shape.has_kind(kind) => self.skip_shaped_value(shape, levels),
            Some(_) => None,
            None => self.skip_unknown_value(kind, levels),
        }
    }

    /// Skips a value, and checks that it has the structure `shape`.
    fn skip_shaped_value(&mut self, shape: &Shape, levels: usize) -> Option<()> {
        let levels = levels.checked_sub(1)?;
        match shape {
            Bool => Some(()),
            Byte => self.take(1),
            I16 | I32 | I64 => self.number().map(drop),
            Double => self.take(8),
            Binary => {
                let length = self.number()?;
                self.take(length)
            }
            List(of) => {
                let (count, _) = self.list(|kind| of.has_kind(kind))?;
                (0..count).try_for_each(|_| self.skip_shaped_value(of, levels))
            }
            Struct(fields) => {
                let mut id = 0;
                while let Some(kind) = self.field(&mut id)? {
                    self.skip_field_value(fields, (id, kind), levels)?;
                }
                Some(())
            }
        }
    }

    /// Skips the value of a field that the format does not define. Refuses a boolean in a list,
    /// which takes no byte for the library and one byte for other readers.
    fn skip_unknown_value(&mut self, kind: u8, levels: usize) -> Option<()> {
        let levels = levels.checked_sub(1)?;
        match kind {
            kind::TRUE | kind::FALSE => Some(()),
            kind::BYTE => self.skip_shaped_value(&Byte, levels + 1),
            kind::I16 | kind::I32 | kind::I64 => self.number().map(drop),
            kind::DOUBLE => self.skip_shaped_value(&Double, levels + 1),
            kind::BINARY => self.skip_shaped_value(&Binary, levels + 1),
            kind::LIST | kind::SET => {
                let (count, kind) = self.list(|kind| !Bool.has_kind(kind))?;
                (0..count).try_for_each(|_| self.skip_unknown_value(kind, levels))
            }
            kind::MAP => {
                let count = self.number().filter(|count| *count <= self.0.len() as u64)?;
                let kinds = if count > 0 { self.byte()? } else { 0 };
                let (key, value) = (kinds >> 4, kinds & 15);
                if Bool.has_kind(key) || Bool.has_kind(value) {
                    return None;
                }
                (0..count).try_for_each(|_| {
                    self.skip_unknown_value(key, levels)?;
                    self.skip_unknown_value(value, levels)
                })
            }
            kind::STRUCT => self.skip_shaped_value(&EMPTY, levels + 1),
            _ => None,
        }
    }

    /// Reads the head of a list. Returns the number of elements and their kind, for which
    /// `is_right` must return true. Each element takes at least one byte. Some writers give an
    /// empty list no kind.
    fn list(&mut self, is_right: impl Fn(u8) -> bool) -> Option<(usize, u8)> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.number()? } else { u64::from(head >> 4) };
        let count = usize::try_from(count).ok().filter(|count| *count <= self.0.len())?;
        let kind = head & 15;
        (count == 0 || is_right(kind)).then_some((count, kind))
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, length: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(length).ok()?..)?;
        Some(())
    }
}

#[cfg(test)]
#[path = "footer_tests.rs"]
mod tests;
