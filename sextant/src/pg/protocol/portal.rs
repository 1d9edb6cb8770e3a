//! Prepared statements, and portals: prepared statements with values.

use std::sync::Arc;

use proto::value::Value;
use proto::{Error, ErrorCode, Result};

use crate::flow::ReservedMemory;
use crate::pg::result::row_writer::RowWriter;
use crate::pg::result::stream::Rows;
use crate::pg::session::resolved_names::ResolvedNames;
use crate::rows::suspended_result::{Park, SuspendedResult};
use crate::sql::ParsedStatement;
use crate::sql::plan::ColumnInfo;

/// A prepared statement.
pub(super) struct Prepared {
    /// The parsed statement; `None` if its text is empty.
    pub(super) statement: Option<ParsedStatement>,
    /// The types of its parameters.
    pub(super) parameter_oids: Vec<u32>,
    /// The result columns of a SELECT when it was prepared. They must not change later.
    pub(super) columns: Option<Arc<[ColumnInfo]>>,
    /// The cached objects that the names in the statement mean.
    pub(super) kept: ResolvedNames,
    /// The length of the statement's text, in bytes. The parsed statement takes about ten times as
    /// much.
    pub(super) bytes: usize,
    /// The memory reserved for the statement. It is released when this value is dropped.
    pub(super) _room: Option<ReservedMemory>,
}

impl Prepared {
    /// Returns an error if a result has other columns than those that were described to the
    /// client.
    pub(super) fn check_columns(&self, now: &[ColumnInfo]) -> Result<()> {
        if self.columns.as_ref().is_none_or(|columns| **columns == *now) {
            return Ok(());
        }
        Err(Error::new(ErrorCode::Unsupported, "cached plan must not change result type")
            .with_hint("the index was made again with other columns; prepare the statement again"))
    }
}

/// A portal: a prepared statement with the values of its parameters.
pub(super) struct Portal {
    pub(super) prepared: Arc<Prepared>,
    pub(super) values: Vec<Value>,
    pub(super) format_codes: Vec<i16>,
    pub(super) progress: PortalProgress,
    /// The number of savepoints when the portal was opened.
    pub(super) opened: usize,
    /// The number of savepoints when the portal's first rows were read.
    pub(super) began: usize,
    /// The length of the values and of the statement's text, in bytes.
    pub(super) bytes: usize,
    /// The memory reserved for large values.
    pub(super) _room: Option<ReservedMemory>,
}

/// The progress of a portal's execution.
pub(super) enum PortalProgress {
    /// The portal has not been executed yet.
    Bound,
    /// The portal is returning rows, or has returned its last row.
    Running(Box<OpenRows>),
    /// The portal has further rows, which the next Execute requests.
    Suspended(SuspendedResult<Box<OpenRows>>),
    /// The portal has executed a statement that returns no rows. It cannot be executed again.
    Finished,
}

/// The rows of a portal and their writer.
pub(super) struct OpenRows {
    pub(super) rows: Rows,
    pub(super) writer: RowWriter,
}

impl Park for Box<OpenRows> {
    fn park(&mut self) {
        self.rows.park();
    }
}
