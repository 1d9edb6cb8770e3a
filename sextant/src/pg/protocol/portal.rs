//! Prepared statements, and portals: prepared statements with values.

use std::sync::Arc;

use proto::value::Value;
use proto::{Error, ErrorCode, Result};

use crate::flow::Room;
use crate::pg::result::row_writer::RowWriter;
use crate::pg::result::stream::Rows;
use crate::pg::session::resolved_names::ResolvedNames;
use crate::rows::suspended_result::{Park, SuspendedResult};
use crate::sql::ParsedStatement;
use crate::sql::plan::ColumnInfo;

/// A prepared statement.
pub(super) struct Prepared {
    /// The statement; `None` if its text is empty.
    pub(super) statement: Option<ParsedStatement>,
    /// The types of its parameters.
    pub(super) parameter_oids: Vec<u32>,
    /// The columns of a SELECT of an index or a bucket when it was prepared. They do not change while it is kept.
    pub(super) columns: Option<Arc<[ColumnInfo]>>,
    /// The meaning of its names.
    pub(super) kept: ResolvedNames,
    /// The length of its text. The parsed statement takes some ten times as much.
    pub(super) bytes: usize,
    /// The memory of the portal's values, held until the portal is dropped.
    pub(super) _room: Option<Room>,
}

impl Prepared {
    /// Refuses rows with other columns than those of the description that the client has.
    pub(super) fn check_columns(&self, now: &[ColumnInfo]) -> Result<()> {
        if self.columns.as_ref().is_none_or(|columns| **columns == *now) {
            return Ok(());
        }
        Err(Error::new(ErrorCode::Unsupported, "cached plan must not change result type")
            .with_hint("the index was made again with other columns; prepare the statement again"))
    }
}

/// A prepared statement with values.
pub(super) struct Portal {
    pub(super) prepared: Arc<Prepared>,
    pub(super) values: Vec<Value>,
    pub(super) format_codes: Vec<i16>,
    pub(super) progress: PortalProgress,
    /// The number of savepoints when it was opened.
    pub(super) opened: usize,
    /// The number of savepoints when the rows of the portal began.
    pub(super) began: usize,
    /// The length of its values and of its statement's text.
    pub(super) bytes: usize,
    /// The memory of large values.
    pub(super) _room: Option<Room>,
}

/// The state of a portal.
pub(super) enum PortalProgress {
    /// The portal was not executed yet.
    Bound,
    /// The portal returns rows, or is at their end.
    Running(Box<OpenRows>),
    /// The portal has further rows for the next Execute.
    Suspended(SuspendedResult<Box<OpenRows>>),
    /// The portal has run a statement without rows, which cannot run twice.
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
