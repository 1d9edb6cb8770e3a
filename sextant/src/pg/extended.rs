//! The extended protocol: Parse, Bind, Describe, Execute, Close.
//!
//! A prepared statement is its parsed text and the types of its parameters. A portal is a prepared
//! statement with values; it is planned when it is executed first, and then keeps its rows, so that
//! Execute with a row limit can return them in pieces. Portals live until the end of their transaction.
//!
//! A portal that is suspended may never be executed again: after a while its scan is parked
//! ([`crate::rows::suspended`]).

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

use super::error::{WireError, WireResult};
use super::execute::{Description, Done};
use super::finish::row_description;
use super::portal::{Portal, Prepared, Progress, Running};
use super::row_writer::{RowWriter, Shape};
use super::session::Session;
use super::stream::{Piece, row_limit};
use super::types::{parameter, parameter_oid};
use crate::rows::format::Format;
use crate::rows::suspended::Suspended;
use crate::sql::{Parsed, ast::Statement};

/// Prepared statements of a session; drivers that cache keep a few hundred.
const PREPARED_MAX: usize = 10_000;

/// Portals of a session.
const PORTALS_MAX: usize = 1000;

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Session<S> {
    pub(super) async fn parse(&mut self, parse: Parse) -> WireResult<()> {
        let name = parse.name.unwrap_or_default();
        if !name.is_empty() && self.prepared.contains_key(&name) {
            let message = format!("there is a prepared statement \"{name}\" already");
            return Err(Error::new(ErrorCode::Exists, message).into());
        }
        if self.prepared.len() >= PREPARED_MAX {
            let message = format!("a session keeps at most {PREPARED_MAX} prepared statements");
            return Err(Error::new(ErrorCode::OverLimit, message).into());
        }
        let mut statements = crate::sql::parse(&parse.query)?;
        if statements.len() > 1 {
            let message = "several statements in a prepared statement";
            return Err(Error::new(ErrorCode::Syntax, message).into());
        }
        let statement = statements.pop();
        let description = match &statement {
            Some(parsed) => {
                self.state.check_transaction(&parsed.statement)?;
                self.describe_statement(parsed).await?
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
        // A client may declare parameters that the text does not name.
        parameter_oids.extend(parse.type_oids.iter().skip(parameter_oids.len()));
        self.prepared.insert(name, Arc::new(Prepared { statement, parameter_oids }));
        self.conn.send(ParseComplete::new())
    }

    async fn describe_statement(&mut self, parsed: &Parsed) -> WireResult<Description> {
        self.interrupt.arm(self.state.settings.statement_timeout());
        let describe = self.state.describe(&parsed.statement, parsed.parameters);
        Ok(self.interrupt.guard(describe).await??)
    }

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
                format!("{} values for {} parameters", bind.parameters.len(), oids.len()),
            )
            .into());
        }
        let formats = Format::list(&bind.parameter_format_codes, oids.len())?;
        let mut values = Vec::with_capacity(oids.len());
        for (n, (oid, bytes)) in oids.iter().zip(&bind.parameters).enumerate() {
            let value = parameter(*oid, formats[n], bytes.as_ref());
            values.push(value.map_err(|error| error.context(format!("${}", n + 1)))?);
        }
        let name = bind.portal_name.unwrap_or_default();
        if !name.is_empty() && self.portals.contains_key(&name) {
            let message = format!("there is a portal \"{name}\" already");
            return Err(Error::new(ErrorCode::Exists, message).into());
        }
        if self.portals.len() >= PORTALS_MAX {
            let message = format!("a session keeps at most {PORTALS_MAX} portals");
            return Err(Error::new(ErrorCode::OverLimit, message).into());
        }
        let format_codes = bind.result_column_format_codes;
        let portal = Portal { prepared, values, format_codes, progress: Progress::Bound };
        self.portals.insert(name, portal);
        self.conn.send(BindComplete::new())
    }

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
                return Err(WireError::protocol(format!("Describe of a {}", char::from(other))));
            }
        };
        let columns = match &prepared.statement {
            Some(parsed) => {
                self.state.check_transaction(&parsed.statement)?;
                self.describe_statement(parsed).await?.columns
            }
            None => None,
        };
        match columns {
            Some(columns) => {
                let formats = Format::list(&format_codes, columns.len())?;
                self.conn.send(row_description(&columns, &formats))
            }
            None => self.conn.send(NoData::new()),
        }
    }

    pub(super) async fn execute(&mut self, execute: Execute) -> WireResult<()> {
        let name = execute.name.unwrap_or_default();
        // Taken out while it runs: COMMIT may clear the others.
        let mut portal = self.portals.remove(&name).ok_or_else(|| WireError::no_portal(&name))?;
        let prepared = Arc::clone(&portal.prepared);
        let Some(parsed) = &prepared.statement else {
            self.portals.insert(name, portal);
            return self.conn.send(EmptyQueryResponse::new());
        };
        portal.progress = match portal.progress {
            Progress::Bound => {
                self.begin(&parsed.statement, &portal.values, &portal.format_codes).await?
            }
            Progress::Finished => {
                let message = format!("portal \"{name}\" has been executed");
                return Err(Error::new(ErrorCode::TransactionState, message).into());
            }
            Progress::Running(running) => self.go_on(&parsed.statement, running)?,
            Progress::Suspended(suspended) => self.go_on(&parsed.statement, suspended.resume()?)?,
        };
        if let Progress::Running(mut running) = portal.progress {
            let (Running { rows, writer }, limit) = (&mut *running, row_limit(execute.max_rows));
            let piece = rows.write(&mut self.conn, &mut self.interrupt, writer, limit).await?;
            portal.progress = match piece {
                Piece::Suspended => {
                    self.conn.send(PortalSuspended::new())?;
                    Progress::Suspended(Suspended::new(running, &self.env))
                }
                Piece::Finished => {
                    self.complete(rows.tag())?;
                    Progress::Running(running)
                }
            };
        }
        self.portals.insert(name, portal);
        Ok(())
    }

    async fn begin(
        &mut self,
        statement: &Statement,
        values: &[Value],
        format_codes: &[i16],
    ) -> WireResult<Progress> {
        match self.start(statement, values).await? {
            Done::Rows(rows) => {
                let formats = Format::list(format_codes, rows.columns.len())?;
                let writer = RowWriter::new(Shape::Data, &rows.columns, &formats);
                Ok(Progress::Running(Box::new(Running { rows, writer })))
            }
            other => {
                self.finish(other).await?;
                Ok(Progress::Finished)
            }
        }
    }

    fn go_on(&mut self, statement: &Statement, running: Box<Running>) -> WireResult<Progress> {
        self.state.check_transaction(statement)?;
        self.interrupt.arm(self.state.settings.statement_timeout());
        Ok(Progress::Running(running))
    }

    pub(super) fn close(&mut self, close: Close) -> WireResult<()> {
        let name = close.name.unwrap_or_default();
        match close.target_type {
            TARGET_TYPE_BYTE_STATEMENT => drop(self.prepared.remove(&name)),
            TARGET_TYPE_BYTE_PORTAL => drop(self.portals.remove(&name)),
            other => return Err(WireError::protocol(format!("Close of a {}", char::from(other)))),
        }
        self.conn.send(CloseComplete::new())
    }
}
