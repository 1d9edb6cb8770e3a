//! Prepared statements, and portals: prepared statements with values.

use std::sync::Arc;

use proto::value::Value;

use super::row_writer::RowWriter;
use super::stream::Rows;
use crate::rows::suspended::{Park, Suspended};
use crate::sql::Parsed;

/// A prepared statement.
pub(super) struct Prepared {
    /// What it does; nothing, if its text was empty.
    pub(super) statement: Option<Parsed>,
    /// The types of its parameters.
    pub(super) parameter_oids: Vec<u32>,
}

/// A prepared statement with values.
pub(super) struct Portal {
    pub(super) prepared: Arc<Prepared>,
    pub(super) values: Vec<Value>,
    pub(super) format_codes: Vec<i16>,
    pub(super) progress: Progress,
}

/// How far a portal is.
pub(super) enum Progress {
    /// Not executed yet.
    Bound,
    /// It returns rows, perhaps none any more.
    Running(Box<Running>),
    /// It has more rows, for the next Execute.
    Suspended(Suspended<Box<Running>>),
    /// It has done what it does, once.
    Finished,
}

/// Rows and how they are written.
pub(super) struct Running {
    pub(super) rows: Rows,
    pub(super) writer: RowWriter,
}

impl Park for Box<Running> {
    fn park(&mut self) {
        self.rows.park();
    }
}
