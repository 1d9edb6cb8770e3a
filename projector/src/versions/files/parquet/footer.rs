//! The lists of a footer, checked before the library reads it. The library recurses into groups without a bound, takes memory for as many
//! children as a group says it has, and for as many row groups as the footer says: each ends the process.
//!
//! A footer is a struct of Thrift's compact protocol. Its second field is the list of the schema's elements, depth first, each with the number
//! of its children; its fourth is the list of row groups (<https://github.com/apache/parquet-format>). The library goes by the ids of fields and
//! overlooks their kinds, so everything up to the row groups has the kinds of the format here, and ids that only grow: both read the same.

use parquet::errors::ParquetError;
use parquet::file::reader::ChunkReader;
use proto::Result;

use super::chunks::Chunks;
use super::errors::damaged;

/// Groups within each other: more than documents nest, also where a list is two groups.
const GROUPS_MAX: usize = 256;
/// Row groups of a file, which the library numbers with 16 bits.
const ROW_GROUPS_MAX: u64 = i16::MAX as u64;
/// The end of a file: the length of its footer, and a mark.
const TAIL_BYTES: u64 = 8;
const MARK: &[u8] = b"PAR1";

/// Refuses a file whose footer the library could not read without harm. A file without a footer is left to the library.
pub fn check_footer(file: &Chunks) -> Result<()> {
    let Some(at) = file.len.checked_sub(TAIL_BYTES) else { return Ok(()) };
    let tail = file.get_bytes(at, TAIL_BYTES as usize).map_err(|error| damaged(&error))?;
    let (length, mark) = tail.split_at(4);
    let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
    match at.checked_sub(u64::from(length)) {
        Some(from) if mark == MARK => {
            let footer = file.get_bytes(from, length as usize).map_err(|error| damaged(&error))?;
            check(&footer).map_err(|what| damaged(&ParquetError::General(what.to_owned())))
        }
        _ => Ok(()),
    }
}

fn check(footer: &[u8]) -> std::result::Result<(), &'static str> {
    let mut footer = Compact(footer);
    footer.check().unwrap_or(Err("its footer cannot be read"))
}

/// The kinds of values in the compact protocol.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// The field's head has the value.
    Bool,
    Byte,
    I32,
    I64,
    Binary,
    List,
    Struct,
}

impl Kind {
    fn of(head: u8) -> Option<Self> {
        Some(match head & 15 {
            1 | 2 => Self::Bool,
            3 => Self::Byte,
            5 => Self::I32,
            6 => Self::I64,
            8 => Self::Binary,
            9 => Self::List,
            12 => Self::Struct,
            _ => return None,
        })
    }
}

/// The fields of a struct: their ids and kinds.
type Fields = &'static [(u8, Kind)];

/// The fields of an element before the last one, its logical type.
const ELEMENT: Fields = &[
    (1, Kind::I32),
    (2, Kind::I32),
    (3, Kind::I32),
    (4, Kind::Binary),
    (CHILDREN, Kind::I32),
    (6, Kind::I32),
    (7, Kind::I32),
    (8, Kind::I32),
    (9, Kind::I32),
];
const CHILDREN: u8 = 5;
const LOGICAL: u8 = 10;

/// The fields of a logical type; a unit of time is a struct.
fn logical(id: u8) -> Option<Fields> {
    Some(match id {
        // Strings, maps, lists, enums, dates, nothing, JSON, BSON, UUIDs, halves.
        1..=4 | 6 | 11..=15 => &[],
        // Decimals.
        5 => &[(1, Kind::I32), (2, Kind::I32)],
        // Times.
        7 | 8 => &[(1, Kind::Bool), (2, Kind::Struct)],
        // Integers.
        10 => &[(1, Kind::Byte), (2, Kind::Bool)],
        // Variants, shapes.
        16 => &[(1, Kind::Byte)],
        17 => &[(1, Kind::Binary)],
        18 => &[(1, Kind::Binary), (2, Kind::I32)],
        _ => return None,
    })
}

/// The rest of some bytes. Its methods return `None` for bytes that are no footer.
struct Compact<'b>(&'b [u8]);

impl Compact<'_> {
    /// Checks up to the head of the row groups.
    fn check(&mut self) -> Option<std::result::Result<(), &'static str>> {
        let mut id = 0;
        while let Some(kind) = self.field(&mut id)? {
            match (id, kind) {
                (1, Kind::I32) | (3, Kind::I64) => drop(self.number()?),
                (2, Kind::List) => {
                    if let Err(what) = self.schema()? {
                        return Some(Err(what));
                    }
                }
                (4, Kind::List) => {
                    let count = self.structs()?;
                    let is_possible = count <= ROW_GROUPS_MAX && count <= self.0.len() as u64;
                    return Some(is_possible.then_some(()).ok_or("it has too many row groups"));
                }
                _ => return None,
            }
        }
        Some(Ok(()))
    }

    fn schema(&mut self) -> Option<std::result::Result<(), &'static str>> {
        let count = self.structs()?;
        // The groups that the next element is in, with the number of their children that are still to come.
        let mut groups: Vec<u64> = Vec::new();
        // Each element but the first one is a child.
        let mut children_left = count.saturating_sub(1);
        for _ in 0..count {
            let children = self.element()?;
            while groups.last() == Some(&0) {
                groups.pop();
            }
            if let Some(left) = groups.last_mut() {
                *left -= 1;
            }
            match children_left.checked_sub(children) {
                Some(left) => children_left = left,
                None => {
                    return Some(Err("the groups of its schema have more columns than there are"));
                }
            }
            groups.push(children);
            if groups.len() > GROUPS_MAX {
                return Some(Err("its columns nest too deep"));
            }
        }
        Some(Ok(()))
    }

    /// The number of children of an element.
    fn element(&mut self) -> Option<u64> {
        let (mut id, mut children) = (0, 0);
        while let Some(kind) = self.field(&mut id)? {
            match (id, kind) {
                // Signed numbers have their sign in the last bit; a negative one is more than there are elements.
                (CHILDREN, Kind::I32) => {
                    let number = self.number()?;
                    children = if number & 1 == 0 { number >> 1 } else { u64::MAX };
                }
                (LOGICAL, Kind::Struct) => self.union(logical)?,
                field if ELEMENT.contains(&field) => self.pass(kind)?,
                _ => return None,
            }
        }
        Some(children)
    }

    /// Passes over a union: a struct with one field, which is a struct too.
    fn union(&mut self, fields_of: fn(u8) -> Option<Fields>) -> Option<()> {
        let mut id = 0;
        if self.field(&mut id)? != Some(Kind::Struct) {
            return None;
        }
        let (fields, mut inner) = (fields_of(id)?, 0);
        while let Some(kind) = self.field(&mut inner)? {
            match fields.contains(&(inner, kind)) {
                true if kind == Kind::Struct => self.union(|_| Some(&[]))?,
                true => self.pass(kind)?,
                false => return None,
            }
        }
        self.field(&mut id)?.is_none().then_some(())
    }

    /// The kind of the next field, whose id it sets; `Some(None)` at the end of the struct. Ids grow.
    fn field(&mut self, id: &mut u8) -> Option<Option<Kind>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        let next = match head >> 4 {
            // A signed number, with its sign in the last bit.
            0 => Some(self.number()?)
                .filter(|id| id & 1 == 0)
                .and_then(|id| u8::try_from(id >> 1).ok())?,
            step => id.checked_add(step)?,
        };
        if next <= *id {
            return None;
        }
        *id = next;
        Kind::of(head).map(Some)
    }

    /// The length of a list of structs. Some writers give an empty one no kind.
    fn structs(&mut self) -> Option<u64> {
        let head = self.byte()?;
        match (head >> 4, head & 15) {
            (0, 0) => Some(0),
            (15, 12) => self.number(),
            (count, 12) => Some(u64::from(count)),
            _ => None,
        }
    }

    /// Passes over a value.
    fn pass(&mut self, kind: Kind) -> Option<()> {
        match kind {
            Kind::Bool => Some(()),
            Kind::Byte => self.take(1),
            Kind::I32 | Kind::I64 => self.number().map(drop),
            Kind::Binary => {
                let length = self.number()?;
                self.take(length)
            }
            Kind::List | Kind::Struct => None,
        }
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
mod tests {
    use super::*;

    fn number(mut number: u64, out: &mut Vec<u8>) {
        while number > 127 {
            out.push(number as u8 | 128);
            number >>= 7;
        }
        out.push(number as u8);
    }

    /// A footer with elements of so many children each, and more fields of each.
    fn footer_with(children: &[u64], more: &[u8]) -> Vec<u8> {
        // The version, and the head of a list of structs.
        let mut out = vec![0x15, 2, 0x19, 0xfc];
        number(children.len() as u64, &mut out);
        for children in children {
            // A name, and the number of children.
            out.extend([0x48, 1, b'x', 0x15]);
            number(children << 1, &mut out);
            out.extend(more);
            out.push(0);
        }
        // The number of rows, and no row groups.
        out.extend([0x16, 0, 0x19, 0x0c, 0]);
        out
    }

    fn footer(children: &[u64]) -> Vec<u8> {
        footer_with(children, &[])
    }

    #[test]
    fn a_schema_that_would_end_the_process_is_refused() {
        assert_eq!(check(&footer(&[3, 0, 2, 0, 0, 0])), Ok(()));
        let chain = |length: usize| [vec![1; length - 1], vec![0]].concat();
        assert_eq!(check(&footer(&chain(GROUPS_MAX))), Ok(()));
        let deep = Err("its columns nest too deep");
        assert_eq!(check(&footer(&chain(100_000))), deep);
        let many = Err("the groups of its schema have more columns than there are");
        assert_eq!(check(&footer(&[(1 << 31) - 1, 0])), many);
        assert_eq!(check(&footer(&[2, 2, 2, 0])), many, "together");
        // Many groups beside each other are no depth.
        let wide: Vec<u64> = [1000].into_iter().chain([1, 0].repeat(1000)).collect();
        assert_eq!(check(&footer(&wide)), Ok(()));
    }

    #[test]
    fn logical_types_have_the_kinds_of_the_format() {
        let cannot = Err("its footer cannot be read");
        for (type_, expected) in [
            // After the number of children: a string; a decimal of 9 digits; a time in micros; an integer; a shape.
            (vec![0x5c, 0x1c, 0, 0], Ok(())),
            (vec![0x5c, 0x5c, 0x15, 4, 0x15, 18, 0, 0], Ok(())),
            (vec![0x5c, 0x7c, 0x11, 0x1c, 0x2c, 0, 0, 0, 0], Ok(())),
            (vec![0x5c, 0xac, 0x13, 8, 0x11, 0, 0], Ok(())),
            (vec![0x5c, 0x0c, 34, 0x18, 1, b'c', 0, 0], Ok(())),
            // A scale that is a double or a boolean, a string with fields, two types at once, an unknown one.
            (vec![0x5c, 0x5c, 0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], cannot),
            (vec![0x5c, 0x5c, 0x11, 0x15, 18, 0, 0], cannot),
            (vec![0x5c, 0x1c, 0x15, 2, 0, 0], cannot),
            (vec![0x5c, 0x1c, 0, 0x1c, 0, 0], cannot),
            (vec![0x5c, 0x9c, 0, 0], cannot),
        ] {
            assert_eq!(check(&footer_with(&[1, 0], &type_)), expected, "{type_:02x?}");
        }
    }

    #[test]
    fn what_the_library_would_read_otherwise_is_refused() {
        let cannot = Err("its footer cannot be read");
        let whole = footer(&[1, 0]);
        let replaced = |at: usize, with: &[u8]| [&whole[..at], with, &whole[at + 1..]].concat();
        assert_eq!(whole[2], 0x19);
        assert_eq!(check(&replaced(2, &[0x1a])), cannot, "the schema as a set");
        assert_eq!(check(&replaced(2, &[0x09, 4])), Ok(()), "an id by itself");
        assert_eq!(check(&replaced(2, &[0x09, 0x84, 0x80, 8])), cannot, "an id of more bits");
        assert_eq!(check(&replaced(2, &[0x09, 5, 0x0c, 0x19])), cannot, "an id below zero");
        assert_eq!(whole[8], 0x15);
        for kind in [0x14, 0x16, 0x17] {
            assert_eq!(check(&replaced(8, &[kind])), cannot, "children of the kind {kind:02x}");
        }
        assert_eq!(check(&replaced(0, &[0x19, 0x12, 0x15])), cannot, "a list of booleans");
    }

    #[test]
    fn row_groups_are_no_more_than_their_bytes() {
        let mut many = footer(&[1, 0]);
        many.truncate(many.len() - 2);
        let too_many = Err("it has too many row groups");
        for (count, expected) in [
            (0, Ok(())),
            (5, Ok(())),
            (6, too_many),
            (ROW_GROUPS_MAX + 1, too_many),
            ((1 << 31) - 1, too_many),
        ] {
            let mut footer = many.clone();
            footer.push(0xfc);
            number(count, &mut footer);
            footer.extend([0; 5]);
            assert_eq!(check(&footer), expected, "{count}");
        }
    }

    #[test]
    fn bytes_that_are_no_footer_are_refused() {
        let whole = footer(&[3, 0, 2, 0, 0, 0]);
        let cannot = Err("its footer cannot be read");
        for end in 0..whole.len() - 1 {
            assert_eq!(check(&whole[..end]), cannot, "cut at {end}");
        }
        assert_eq!(check(&[0x1c; 1000]), cannot, "structs in structs");
        assert_eq!(check(&[0x29, 0xfc, 0xff, 0xff, 0xff, 0xff, 15]), cannot, "a long list");
    }
}
