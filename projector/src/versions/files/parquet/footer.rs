//! The shape of a schema, checked before the library reads the file. The library recurses into groups without a bound, and takes memory for
//! as many children as a group says it has: either ends the process.
//!
//! A footer is a struct of Thrift's compact protocol. Its second field is the list of the schema's elements, depth first, each with the number
//! of its children (<https://github.com/apache/parquet-format>).

use parquet::errors::ParquetError;
use parquet::file::reader::ChunkReader;
use proto::Result;

use super::chunks::Chunks;
use super::errors::damaged;

/// Groups within each other: more than documents nest, also where a list is two groups.
const GROUPS_MAX: usize = 256;
/// Structs and lists within each other in anything else of a footer.
const LEVELS_MAX: usize = 32;
/// The end of a file: the length of its footer, and a mark.
const TAIL_BYTES: u64 = 8;
const MARK: &[u8] = b"PAR1";

/// Refuses a file whose schema the library could not read without harm. A file without a footer is left to the library.
pub fn check_schema(file: &Chunks) -> Result<()> {
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
    footer.schema().unwrap_or(Err("its footer cannot be read"))
}

/// The kinds of values in the compact protocol.
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

/// The rest of some bytes. Its methods return `None` if they are not in the compact protocol.
struct Compact<'b>(&'b [u8]);

impl Compact<'_> {
    fn schema(&mut self) -> Option<std::result::Result<(), &'static str>> {
        let mut id = 0;
        while let Some(kind) = self.field(&mut id)? {
            if (id, kind) != (2, kind::LIST) {
                self.pass(kind, false, LEVELS_MAX)?;
                continue;
            }
            let (count, kind) = self.list()?;
            // The groups that the next element is in, with the number of their children that are still to come.
            let mut groups: Vec<u64> = Vec::new();
            for _ in 0..count {
                let children = if kind == kind::STRUCT { self.element()? } else { return None };
                while groups.last() == Some(&0) {
                    groups.pop();
                }
                if let Some(left) = groups.last_mut() {
                    *left -= 1;
                }
                if children > count {
                    return Some(Err("a group of its schema has more columns than there are"));
                }
                groups.push(children);
                if groups.len() > GROUPS_MAX {
                    return Some(Err("its columns nest too deep"));
                }
            }
            return Some(Ok(()));
        }
        Some(Ok(()))
    }

    /// The number of children of an element.
    fn element(&mut self) -> Option<u64> {
        let (mut id, mut children) = (0, 0);
        while let Some(kind) = self.field(&mut id)? {
            match (id, kind) {
                // Signed numbers have their sign in the last bit; a negative one is more than there are elements.
                (5, kind::I32) => {
                    let number = self.number()?;
                    children = if number & 1 == 0 { number >> 1 } else { u64::MAX };
                }
                _ => self.pass(kind, false, LEVELS_MAX)?,
            }
        }
        Some(children)
    }

    /// The kind of the next field, whose id it sets; `Some(None)` at the end of the struct.
    fn field(&mut self, id: &mut u64) -> Option<Option<u8>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        *id = match head >> 4 {
            0 => self.number()? >> 1,
            more => *id + u64::from(more),
        };
        Some(Some(head & 15))
    }

    /// The number and the kind of the elements of a list.
    fn list(&mut self) -> Option<(u64, u8)> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.number()? } else { u64::from(head >> 4) };
        Some((count, head & 15))
    }

    /// Passes over a value. In a list, a boolean has a byte.
    fn pass(&mut self, kind: u8, in_list: bool, levels: usize) -> Option<()> {
        let levels = levels.checked_sub(1)?;
        match kind {
            kind::TRUE | kind::FALSE if !in_list => Some(()),
            kind::TRUE | kind::FALSE | kind::BYTE => self.take(1),
            kind::I16 | kind::I32 | kind::I64 => self.number().map(drop),
            kind::DOUBLE => self.take(8),
            kind::BINARY => {
                let length = self.number()?;
                self.take(length)
            }
            kind::LIST | kind::SET => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| self.pass(kind, true, levels))
            }
            kind::MAP => {
                let count = self.number()?;
                let kinds = if count > 0 { self.byte()? } else { 0 };
                (0..count).try_for_each(|_| {
                    self.pass(kinds >> 4, true, levels)?;
                    self.pass(kinds & 15, true, levels)
                })
            }
            kind::STRUCT => {
                let mut id = 0;
                while let Some(kind) = self.field(&mut id)? {
                    self.pass(kind, false, levels)?;
                }
                Some(())
            }
            _ => None,
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

    /// A footer with elements of so many children each.
    fn footer(children: &[u64]) -> Vec<u8> {
        let number = |mut number: u64, out: &mut Vec<u8>| {
            while number > 127 {
                out.push(number as u8 | 128);
                number >>= 7;
            }
            out.push(number as u8);
        };
        // The version, and the head of a list of structs.
        let mut out = vec![0x15, 2, 0x19, 0xfc];
        number(children.len() as u64, &mut out);
        for children in children {
            // A name, and the number of children.
            out.extend([0x48, 1, b'x', 0x15]);
            number(children << 1, &mut out);
            out.push(0);
        }
        out.push(0);
        out
    }

    #[test]
    fn a_schema_that_would_end_the_process_is_refused() {
        assert_eq!(check(&footer(&[3, 0, 2, 0, 0, 0])), Ok(()));
        assert_eq!(check(&footer(&vec![1; GROUPS_MAX])), Ok(()));
        let deep = Err("its columns nest too deep");
        assert_eq!(check(&footer(&vec![1; 100_000])), deep);
        let many = Err("a group of its schema has more columns than there are");
        assert_eq!(check(&footer(&[(1 << 31) - 1, 0])), many);
        // Many groups beside each other are no depth.
        let wide: Vec<u64> = [1000].into_iter().chain([1, 0].repeat(1000)).collect();
        assert_eq!(check(&footer(&wide)), Ok(()));
    }

    #[test]
    fn bytes_that_are_no_footer_are_refused() {
        let whole = footer(&[3, 0, 2, 0, 0, 0]);
        let cannot = Err("its footer cannot be read");
        for end in 0..whole.len() - 1 {
            assert_eq!(check(&whole[..end]), cannot, "cut at {end}");
        }
        assert_eq!(check(&[0x1c; 1000]), cannot, "structs in structs");
        assert_eq!(check(&[0x19, 0xf9, 0xff, 0xff, 0xff, 0xff, 15]), cannot, "a long list");
    }
}
