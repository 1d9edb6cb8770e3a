//! A column of a block: the strings of all rows without their common prefix, at a fixed width or
//! after an offset table.

use std::ops::Range;

use proto::Result;

use crate::rows::block_format::{OFFSETS_16, OFFSETS_32, WIDTH_MAX, corrupt, u16_at, u32_at};

/// A parsed column, as places in the bytes of its block.
#[derive(Clone, Copy, Debug)]
pub struct BlockColumn {
    /// The common prefix of all strings: offsets of its beginning and its end.
    prefix: (u32, u32),
    shape: Shape,
    /// Offset of the strings without their prefix.
    pub data: u32,
}

/// The form in which the strings are stored: at a fixed width, or after an offset table.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Fixed(u32),
    /// Offset of the offset table.
    Offsets16(u32),
    Offsets32(u32),
}

/// The bytes of a block that is being parsed, and the position so far.
pub struct Input<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

impl Input<'_> {
    /// Consumes a number of bytes. Returns the offset at which they begin.
    pub fn consume(&mut self, len: usize) -> Result<usize> {
        let from = self.at;
        let end = from.checked_add(len).filter(|end| *end <= self.bytes.len());
        self.at = end.ok_or_else(|| corrupt("the block ends too early"))?;
        Ok(from)
    }
}

impl BlockColumn {
    /// Consumes the strings of a column, and checks the column's offsets.
    pub fn parse(
        input: &mut Input<'_>,
        rows: u32,
        prefix: Range<usize>,
        shape: u16,
    ) -> Result<Self> {
        let (shape, data) = match shape {
            OFFSETS_16 => read_offsets(input, rows, 2)?,
            OFFSETS_32 => read_offsets(input, rows, 4)?,
            width if usize::from(width) <= WIDTH_MAX => {
                let data = input.consume(rows as usize * usize::from(width))?;
                (Shape::Fixed(u32::from(width)), data)
            }
            _ => return Err(corrupt("unknown shape of a column")),
        };
        Ok(Self { prefix: (prefix.start as u32, prefix.end as u32), shape, data: data as u32 })
    }

    /// Returns the range of the common prefix in the block's bytes.
    #[inline(always)]
    pub fn prefix(&self) -> Range<usize> {
        self.prefix.0 as usize..self.prefix.1 as usize
    }

    /// Returns the range of a row's string, without the prefix, in the block's bytes.
    #[inline(always)]
    pub fn range(&self, bytes: &[u8], row: u32) -> Range<usize> {
        let data = self.data as usize;
        match self.shape {
            Shape::Fixed(width) => {
                let from = data + (row * width) as usize;
                from..from + width as usize
            }
            Shape::Offsets16(at) => {
                let at = at as usize + 2 * row as usize;
                let offset = |at| usize::from(u16_at(bytes, at));
                data + offset(at)..data + offset(at + 2)
            }
            Shape::Offsets32(at) => {
                let at = at as usize + 4 * row as usize;
                let offset = |at| u32_at(bytes, at) as usize;
                data + offset(at)..data + offset(at + 4)
            }
        }
    }

    /// Returns the width of the strings without the prefix; `None` if they differ in width.
    #[inline]
    pub fn width(&self) -> Option<usize> {
        match self.shape {
            Shape::Fixed(width) => Some(width as usize),
            Shape::Offsets16(_) | Shape::Offsets32(_) => None,
        }
    }
}

/// Checks an offset table, and consumes it with its strings. Returns the form of the column and
/// the offset at which the strings begin.
fn read_offsets(input: &mut Input<'_>, rows: u32, width: usize) -> Result<(Shape, usize)> {
    let at = input.consume((rows as usize + 1) * width)?;
    let offset = |n: usize| match width {
        2 => u32::from(u16_at(input.bytes, at + 2 * n)),
        _ => u32_at(input.bytes, at + 4 * n),
    };
    let mut last = offset(0);
    if last != 0 {
        return Err(corrupt("offsets are not ascending"));
    }
    for n in 1..=rows as usize {
        let next = offset(n);
        if next < last {
            return Err(corrupt("offsets are not ascending"));
        }
        last = next;
    }
    let data = input.consume(last as usize)?;
    let shape = if width == 2 { Shape::Offsets16(at as u32) } else { Shape::Offsets32(at as u32) };
    Ok((shape, data))
}
