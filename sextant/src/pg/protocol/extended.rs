//! The extended protocol: Parse, Bind, Describe, Execute, Close.
//!
//! A prepared statement is a parsed text with the types of its parameters. A portal is a prepared
//! statement with values. The first Execute plans the statement. The portal then stores its
//! result, so that several Execute messages with a row limit return all rows. A portal exists
//! until its transaction ends, or until ROLLBACK TO goes back to a savepoint before the portal
//! was opened.
//!
//! The client may never request the remaining rows of a portal, so its scan is parked after a
//! while ([`crate::rows::suspended_result`]).

use std::sync::Arc;

use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{
    Bind, BindComplete, Close, CloseComplete, Describe, Execute, Parse, ParseComplete,
    PortalSuspended, TARGET_TYPE_BYTE_PORTAL, TARGET_TYPE_BYTE_STATEMENT,
};
use pgwire::messages::response::EmptyQueryResponse;
use proto::value::Value;
use proto::{Error, ErrorCode};
use tokio::io::{AsyncRead, AsyncWrite};

use super::finish::row_description;
use super::portal::{OpenRows, Portal, PortalProgress, Prepared};
use super::session::Session;
use crate::flow::ReservedMemory;
use crate::pg::message::error::{WireError, WireResult};
use crate::pg::message::frame::MESSAGE_BYTES_MAX;
use crate::pg::message::types::{declared_fraction, parameter, parameter_oid};
use crate::pg::result::row_writer::{RowMessage, RowWriter};
use crate::pg::result::stream::{RowsProgress, row_limit};
use crate::pg::session::resolved_names::ResolvedNames;
use crate::pg::statement::describe::Description;
use crate::pg::statement::execute::StatementOutcome;
use crate::rows::format::Format;
use crate::rows::suspended_result::SuspendedResult;
use crate::sql::places::with_column_position;
use crate::sql::plan::declare;
use crate::sql::texts::{LONG_TEXT_BYTES, PARSED};
use crate::sql::{ParsedStatement, ast::Statement};

/// The maximum number of prepared statements in a session. Drivers with a cache have a few
/// hundred.
const PREPARED_MAX: usize = 10_000;

/// The maximum number of portals in a session.
const PORTALS_MAX: usize = 1000;

/// The maximum size of the texts of all prepared statements of a session, in bytes. It allows the
/// longest statement. Parsed statements take about ten times as much memory.
const PREPARED_BYTES_MAX: usize = 5 << 20;

/// The maximum size of the values of all portals of a session, in bytes; the text of each
/// portal's statement counts too. It allows twice the longest message.
const PORTAL_BYTES_MAX: usize = 2 * MESSAGE_BYTES_MAX;

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Session<S> {
    /// Handles Parse: parses a text and stores it as a prepared statement.
    pub(super) async fn parse(&mut self, parse: Parse) -> WireResult<()> {
        let name = parse.name.unwrap_or_default();
        if name.is_empty() {
            // The unnamed statement is removed even if the new one has an error.
            self.prepared.remove("");
        }
        if self.prepared.len() >= PREPARED_MAX {
            let message = format!("a session keeps at most {PREPARED_MAX} prepared statements");
            return Err(Error::new(ErrorCode::OverLimit, message).into());
        }
        let bytes = parse.query.len();
        let others = self.prepared.iter().filter(|(other, _)| **other != name);
        let all = bytes + others.map(|(_, prepared)| prepared.bytes).sum::<usize>();
        check_bytes("prepared statements", all, PREPARED_BYTES_MAX)?;
        let mut statements = self.parse_text(&parse.query).await?;
        let room = self.reserve_statement(&name, bytes).await?;
        if statements.len() > 1 {
            let message = "a prepared statement must be one statement, not several";
            return Err(Error::new(ErrorCode::Syntax, message).into());
        }
        let mut statement = statements.pop();
        if let Some(ParsedStatement { statement: parsed, .. }) = &mut statement
            && let Statement::Select(select) | Statement::Explain(select) = parsed
        {
            let declared = |n: u16| declared_fraction(*parse.type_oids.get(usize::from(n))?);
            declare(select, &declared);
        }
        let kept = ResolvedNames::default();
        let description = match &statement {
            Some(parsed) => {
                self.state.check_transaction(&parsed.statement)?;
                // An error in it undoes the settings before it too.
                self.state.block.note(&parsed.statement);
                self.take_place(&parsed.statement)?;
                self.describe_statement(parsed, &parse.query, &kept).await?
            }
            None => Description::default(),
        };
        let declared = parse.type_oids.iter().copied().chain(std::iter::repeat(0));
        let mut parameter_oids: Vec<u32> = description
            .parameters
            .into_iter()
            .zip(declared)
            .map(|(inferred, declared)| parameter_oid(declared, inferred))
            .collect();
        // A client may declare parameters that do not occur in the text.
        parameter_oids.extend(parse.type_oids.iter().skip(parameter_oids.len()));
        let from_relation = matches!(&statement, Some(ParsedStatement { statement: Statement::Select(s), .. }) if s.from.is_some());
        let columns = description.columns.filter(|_| from_relation);
        if self.prepared.contains_key(&name) {
            return Err(WireError::statement_exists(&name));
        }
        let prepared = Prepared { statement, parameter_oids, columns, kept, bytes, _room: room };
        self.prepared.insert(name, Arc::new(prepared));
        self.conn.send(ParseComplete::new())
    }

    /// Reserves memory for a prepared statement. Returns `None` for an unnamed statement of usual
    /// length, since a session has at most one of these.
    async fn reserve_statement(
        &mut self,
        name: &str,
        bytes: usize,
    ) -> WireResult<Option<ReservedMemory>> {
        if bytes > LONG_TEXT_BYTES {
            return Ok(self.room.take());
        }
        if name.is_empty() {
            return Ok(None);
        }
        let timeout = self.state.settings.statement_timeout();
        Ok(Some(self.state.memory().reserve(bytes * PARSED, timeout).await?))
    }

    /// Returns the description of a prepared statement, within the session's time-out.
    async fn describe_statement(
        &mut self,
        parsed: &ParsedStatement,
        sql: &str,
        kept: &ResolvedNames,
    ) -> WireResult<Description> {
        self.interrupt.begin_statement(self.state.settings.statement_timeout());
        let describe = self.state.describe(&parsed.statement, parsed.parameters, kept);
        let described = self.interrupt.guard(describe).await?;
        Ok(described.map_err(|error| with_column_position(error, sql, parsed.start))?)
    }

    /// Handles Bind: creates a portal from a prepared statement and values.
    pub(super) fn bind(&mut self, bind: Bind) -> WireResult<()> {
        let statement = bind.statement_name.unwrap_or_default();
        let prepared =
            self.prepared.get(&statement).ok_or_else(|| WireError::no_statement(&statement))?;
        let prepared = Arc::clone(prepared);
        if let Some(parsed) = &prepared.statement {
            self.state.check_transaction(&parsed.statement)?;
        }
        let oids = &prepared.parameter_oids;
        if bind.parameters.len() != oids.len() {
            return Err(Error::new(
                ErrorCode::InvalidParameter,
                format!("Bind has {} values for {} parameters", bind.parameters.len(), oids.len()),
            )
            .into());
        }
        let name = bind.portal_name.unwrap_or_default();
        let sizes = bind.parameters.iter().flatten().map(|value| value.len());
        let bytes = prepared.bytes + sizes.sum::<usize>();
        let others = self.portals.iter().filter(|(other, _)| **other != name);
        let all = bytes + others.map(|(_, portal)| portal.bytes).sum::<usize>();
        check_bytes("portals", all, PORTAL_BYTES_MAX)?;
        let formats = Format::list(&bind.parameter_format_codes, oids.len())?;
        let mut values = Vec::with_capacity(oids.len());
        for (n, (oid, bytes)) in oids.iter().zip(&bind.parameters).enumerate() {
            let value = parameter(*oid, formats[n], bytes.as_ref());
            values.push(value.map_err(|error| error.context(format!("${}", n + 1)))?);
        }
        if !name.is_empty() && self.portals.contains_key(&name) {
            return Err(WireError::portal_exists(&name));
        }
        if self.portals.len() >= PORTALS_MAX {
            let message = format!("a session keeps at most {PORTALS_MAX} portals");
            return Err(Error::new(ErrorCode::OverLimit, message).into());
        }
        let format_codes = bind.result_column_format_codes;
        let progress = PortalProgress::Bound;
        let _room = self.conn.take_memory();
        let (opened, _) = self.state.savepoints();
        let portal =
            Portal { prepared, values, format_codes, progress, opened, began: 0, bytes, _room };
        self.portals.insert(name, portal);
        self.conn.send(BindComplete::new())
    }

    /// Handles Describe.
    pub(super) async fn describe(&mut self, describe: Describe) -> WireResult<()> {
        let name = describe.name.unwrap_or_default();
        let (prepared, format_codes) = match describe.target_type {
            TARGET_TYPE_BYTE_STATEMENT => {
                let prepared =
                    self.prepared.get(&name).ok_or_else(|| WireError::no_statement(&name))?;
                self.conn.send(ParameterDescription::new(prepared.parameter_oids.clone()))?;
                (Arc::clone(prepared), Vec::new())
            }
            TARGET_TYPE_BYTE_PORTAL => {
                let portal = self.portals.get(&name).ok_or_else(|| WireError::no_portal(&name))?;
                (Arc::clone(&portal.prepared), portal.format_codes.clone())
            }
            other => {
                let text = format!("Describe of the unknown kind {:?}", char::from(other));
                return Err(WireError::protocol(text));
            }
        };
        let columns = match &prepared.statement {
            Some(parsed) => {
                self.state.check_transaction(&parsed.statement)?;
                self.take_place(&parsed.statement)?;
                self.describe_statement(parsed, "", &prepared.kept).await?.columns
            }
            None => None,
        };
        match columns {
            Some(columns) => {
                prepared.check_columns(&columns)?;
                let formats = Format::list(&format_codes, columns.len())?;
                self.conn.send(row_description(&columns, &formats))
            }
            None => self.conn.send(NoData::new()),
        }
    }

    /// Handles Execute: runs a portal, or continues it.
    pub(super) async fn execute(&mut self, execute: Execute) -> WireResult<()> {
        let name = execute.name.unwrap_or_default();
        // The portal is taken out while it runs.
        let Some(mut portal) = self.portals.remove(&name) else {
            self.state.block.is_mixed = true;
            return Err(WireError::no_portal(&name));
        };
        let prepared = Arc::clone(&portal.prepared);
        let Some(parsed) = &prepared.statement else {
            self.portals.insert(name, portal);
            return self.conn.send(EmptyQueryResponse::new());
        };
        portal.progress = match portal.progress {
            PortalProgress::Bound => {
                (portal.began, _) = self.state.savepoints();
                self.begin_portal(&prepared, parsed, (&portal.values, &portal.format_codes)).await?
            }
            PortalProgress::Finished => {
                self.state.block.is_mixed = true;
                let message = format!("portal \"{name}\" was executed before and cannot run again");
                return Err(Error::new(ErrorCode::WrongState, message).into());
            }
            PortalProgress::Running(running) => self.continue_portal(&parsed.statement, running)?,
            PortalProgress::Suspended(suspended) => {
                let running =
                    suspended.resume().ok_or_else(|| WireError::portal_timed_out(&name))?;
                self.continue_portal(&parsed.statement, running)?
            }
        };
        if let PortalProgress::Running(mut running) = portal.progress {
            let (OpenRows { rows, writer }, limit) = (&mut *running, row_limit(execute.max_rows));
            let piece = rows.write(&mut self.conn, &mut self.interrupt, writer, limit).await?;
            portal.progress = match piece {
                RowsProgress::Suspended => {
                    self.conn.send(PortalSuspended::new())?;
                    let flow = self.state.login.doors.flow();
                    PortalProgress::Suspended(SuspendedResult::new(running, &self.env, flow))
                }
                RowsProgress::Finished => {
                    self.complete(rows.tag())?;
                    PortalProgress::Running(running)
                }
            };
        }
        // The end of a transaction closes its portals, including this one.
        if !matches!(parsed.statement, Statement::Commit | Statement::Rollback) {
            self.portals.insert(name, portal);
        }
        Ok(())
    }

    /// Runs the statement of a portal for the first time. Returns the portal's new state.
    async fn begin_portal(
        &mut self,
        prepared: &Prepared,
        parsed: &ParsedStatement,
        (values, format_codes): (&[Value], &[i16]),
    ) -> WireResult<PortalProgress> {
        self.state.check_transaction(&parsed.statement)?;
        self.state.block.is_last = self.is_alone(&parsed.statement).await?;
        self.state.block.in_text = false;
        self.state.begin_in_block();
        match self.start(parsed, values, &prepared.kept).await? {
            StatementOutcome::Rows(rows) => {
                prepared.check_columns(&rows.columns)?;
                let formats = Format::list(format_codes, rows.columns.len())?;
                let writer = RowWriter::new(RowMessage::Data, &rows.columns, &formats)
                    .with_float_digits(self.state.settings.float_digits());
                Ok(PortalProgress::Running(Box::new(OpenRows { rows, writer })))
            }
            other => {
                self.finish(other, false).await?;
                Ok(PortalProgress::Finished)
            }
        }
    }

    /// Continues a portal whose result has further rows.
    fn continue_portal(
        &mut self,
        statement: &Statement,
        running: Box<OpenRows>,
    ) -> WireResult<PortalProgress> {
        self.state.check_transaction(statement)?;
        self.take_place(statement)?;
        self.interrupt.begin_statement(self.state.settings.statement_timeout());
        Ok(PortalProgress::Running(running))
    }

    /// Handles Close: removes a portal or a prepared statement.
    pub(super) fn close(&mut self, close: Close) -> WireResult<()> {
        let name = close.name.unwrap_or_default();
        match close.target_type {
            TARGET_TYPE_BYTE_STATEMENT => drop(self.prepared.remove(&name)),
            TARGET_TYPE_BYTE_PORTAL => drop(self.portals.remove(&name)),
            other => {
                let text = format!("Close of the unknown kind {:?}", char::from(other));
                return Err(WireError::protocol(text));
            }
        }
        self.conn.send(CloseComplete::new())
    }
}

/// Returns an error if `all` bytes are more than the maximum of a session, `most`.
fn check_bytes(what: &str, all: usize, most: usize) -> WireResult<()> {
    if all <= most {
        return Ok(());
    }
    let message = format!("the {what} of this session would take {all} bytes; at most {most}");
    Err(Error::new(ErrorCode::OverLimit, message)
        .with_hint("close some, or prepare shorter statements with parameters")
        .into())
}
