//! The rows that expressions read: one for each SELECT around the expression.
//!
//! A row of a SELECT is not copied together: it is a list of *pieces*, one for each item of FROM,
//! and each piece is a row of the item's rows. The [`Layout`] finds the piece of a column.

use proto::value::{NULL, Value};

use crate::error::{Error, Result};
use crate::relations::Rows;

/// A row of an item: the rows, and the position of this one; no rows for a row of NULLs.
#[derive(Clone, Debug, Default)]
pub(super) struct Piece {
    rows: Option<Rows>,
    at: usize,
}

impl Piece {
    /// Creates the piece for a row.
    pub fn new(rows: &Rows, at: usize) -> Self {
        Self { rows: Some(rows.clone()), at }
    }

    /// Returns the values; `None` for a row of NULLs.
    pub fn row(&self) -> Option<&[Value]> {
        self.rows.as_ref()?.get(self.at).map(AsRef::as_ref)
    }

    fn value(&self, column: usize) -> &Value {
        self.row().and_then(|row| row.get(column)).unwrap_or(&NULL)
    }
}

/// The pieces and columns of a row's columns.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout(Vec<(usize, usize)>);

impl Layout {
    /// Creates the layout of a row that is one piece.
    pub fn of_one(width: usize) -> Self {
        Self((0..width).map(|column| (0, column)).collect())
    }

    /// Says that a piece has these columns of the row.
    pub fn set(&mut self, piece: usize, first: usize, width: usize) {
        if self.0.len() < first + width {
            self.0.resize(first + width, (usize::MAX, 0));
        }
        for column in 0..width {
            self.0[first + column] = (piece, column);
        }
    }
}

/// The row of a SELECT, and the rows of the SELECTs around it.
#[derive(Clone, Copy)]
pub(super) struct Env<'e> {
    pieces: &'e [Piece],
    layout: Option<&'e Layout>,
    outer: Option<&'e Env<'e>>,
}

impl<'e> Env<'e> {
    /// Creates the surroundings of a row.
    pub fn new(pieces: &'e [Piece], layout: &'e Layout, outer: Option<&'e Env<'e>>) -> Self {
        Self { pieces, layout: Some(layout), outer }
    }

    /// Creates the surroundings of an expression in a SELECT without columns.
    pub fn empty(outer: Option<&'e Env<'e>>) -> Self {
        Self { pieces: &[], layout: None, outer }
    }

    /// Returns the value of a column. An error if the plan names a column that is not there.
    pub fn column(&self, level: usize, at: usize) -> Result<&'e Value> {
        let mut env = *self;
        for _ in 0..level {
            env = *env.outer.ok_or_else(|| missing(level, at))?;
        }
        let place = env.layout.and_then(|layout| layout.0.get(at));
        let (piece, column) = *place.ok_or_else(|| missing(level, at))?;
        let piece = env.pieces.get(piece).ok_or_else(|| missing(level, at))?;
        Ok(piece.value(column))
    }
}

fn missing(level: usize, at: usize) -> Error {
    Error::internal(format!("the plan names column {at} of level {level}, which is missing"))
}
