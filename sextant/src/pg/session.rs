//! The session loop.
//!
//! One message after the other is read and answered. Outside the extended protocol each query text
//! ends with ReadyForQuery. In it, an error is told at once and everything up to the next Sync is
//! skipped, so that a client which has sent ahead knows where it stands. Stray COPY messages, of a COPY
//! that has failed, are skipped too.

use std::collections::BTreeMap;
use std::sync::Arc;

use pgwire::messages::PgWireFrontendMessage as Message;
use pgwire::messages::copy::{CopyDone, CopyOutResponse};
use pgwire::messages::data::{FieldDescription, RowDescription};
use pgwire::messages::response::{
    CommandComplete, EmptyQueryResponse, ReadyForQuery, TransactionStatus,
};
use pgwire::messages::startup::ParameterStatus;
use proto::env::Env;
use proto::value::Value;
use proto::{Error, ErrorCode};
use tokio::io::{AsyncRead, AsyncWrite};

use super::conn::{Conn, Input};
use super::error::{WireError, WireResult, warning};
use super::execute::{Done, State, Transaction};
use super::extended::{Portal, Prepared};
use super::frame::MESSAGE_BYTES_MAX;
use super::interrupt::{Interrupt, Registration};
use super::rows::{RowWriter, Shape};
use super::settings::{REPORTED, Settings};
use super::startup::{self, Parameters};
use super::stream::Rows;
use super::types::{Format, oid, size};
use crate::sql::ast::Statement;
use crate::sql::backend::Backend;
use crate::sql::plan::ColumnInfo;

/// One client's session.
pub(super) struct Session<S> {
    pub(super) conn: Conn<S>,
    pub(super) env: Env,
    pub(super) interrupt: Interrupt,
    pub(super) state: State,
    pub(super) prepared: BTreeMap<String, Arc<Prepared>>,
    pub(super) portals: BTreeMap<String, Portal>,
    parameters: Parameters,
    registration: Registration,
    /// After an error in the extended protocol, until Sync.
    skipping: bool,
}

/// Does the session go on?
type GoesOn = bool;

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Session<S> {
    pub(super) fn new(
        conn: Conn<S>,
        (env, interrupt): (Env, Interrupt),
        backend: Arc<dyn Backend>,
        parameters: Parameters,
        registration: Registration,
    ) -> Self {
        let mut settings = Settings::default();
        parameters.apply(&mut settings);
        let state = State {
            backend,
            settings,
            transaction: Transaction::None,
            database: parameters.database(),
            user: parameters.user(),
            process: registration.process,
        };
        Self {
            conn,
            env,
            interrupt,
            state,
            prepared: BTreeMap::new(),
            portals: BTreeMap::new(),
            parameters,
            registration,
            skipping: false,
        }
    }

    /// Runs the session to its end.
    pub(super) async fn run(mut self) {
        let settings = &self.state.settings;
        let welcome =
            startup::welcome(&mut self.conn, &self.parameters, settings, &self.registration);
        if welcome.is_err() || self.ready().await.is_err() {
            return;
        }
        loop {
            match self.step().await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    let told = self.conn.send(error.response()).is_ok();
                    if error.is_fatal() || !told {
                        let _client_may_be_gone = self.conn.flush().await;
                        return;
                    }
                    self.fail();
                    self.skipping = true;
                    // The client may have asked for a flush and not for Sync: it waits for this.
                    if self.conn.flush().await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Reads and answers one message. An error skips to Sync.
    async fn step(&mut self) -> WireResult<GoesOn> {
        let message = match self.conn.read().await? {
            Input::Message(message) => message,
            Input::Closed => return Ok(false),
            Input::TooLong(kind, bytes) => return self.too_long(kind, bytes).await,
        };
        match message {
            Message::Terminate(_) => return Ok(false),
            Message::Sync(_) => {
                self.skipping = false;
                if matches!(self.state.transaction, Transaction::None) {
                    self.portals.clear();
                }
                self.ready().await?;
            }
            Message::Flush(_) => self.conn.flush().await?,
            _ if self.skipping => {}
            Message::Query(query) => self.simple_query(&query.query).await?,
            Message::Parse(parse) => self.parse(parse).await?,
            Message::Bind(bind) => self.bind(bind)?,
            Message::Describe(describe) => self.describe(describe).await?,
            Message::Execute(execute) => self.execute(execute).await?,
            Message::Close(close) => self.close(close)?,
            Message::CopyData(_) | Message::CopyDone(_) | Message::CopyFail(_) => {}
            _ => return Err(WireError::protocol("a message that is not expected here")),
        }
        Ok(true)
    }

    async fn too_long(&mut self, kind: u8, bytes: usize) -> WireResult<GoesOn> {
        let error = Error::new(
            ErrorCode::OverLimit,
            format!("a message of {bytes} bytes; at most {MESSAGE_BYTES_MAX} are taken"),
        )
        .with_hint("COPY … FROM STDIN takes any number of documents, in messages of any size");
        match kind {
            b'Q' => {
                self.tell(error.into())?;
                self.ready().await?;
                Ok(true)
            }
            b'd' | b'c' | b'f' => Ok(true),
            _ if self.skipping => Ok(true),
            _ => Err(error.into()),
        }
    }

    /// Tells an error that does not end the session.
    fn tell(&mut self, error: WireError) -> WireResult<()> {
        if error.is_fatal() {
            return Err(error);
        }
        self.fail();
        self.conn.send(error.response())
    }

    /// A statement has failed, and with it the transaction that it was in.
    fn fail(&mut self) {
        if matches!(self.state.transaction, Transaction::Open(_)) {
            self.state.transaction = Transaction::Failed;
        }
    }

    async fn ready(&mut self) -> WireResult<()> {
        let status = match self.state.transaction {
            Transaction::None => TransactionStatus::Idle,
            Transaction::Open(_) => TransactionStatus::Transaction,
            Transaction::Failed => TransactionStatus::Error,
        };
        self.conn.send(ReadyForQuery::new(status))?;
        Ok(self.conn.flush().await?)
    }

    /// A query text: all of its statements, or those before the first that fails.
    async fn simple_query(&mut self, sql: &str) -> WireResult<()> {
        if let Err(error) = self.simple_statements(sql).await {
            self.tell(error)?;
        }
        self.ready().await
    }

    async fn simple_statements(&mut self, sql: &str) -> WireResult<()> {
        let statements = crate::sql::parse(sql)?;
        if statements.is_empty() {
            return self.conn.send(EmptyQueryResponse::new());
        }
        for parsed in statements {
            if parsed.parameters > 0 {
                return Err(Error::new(
                    ErrorCode::Syntax,
                    "parameters need the extended protocol: there is no value for $1",
                )
                .into());
            }
            match self.start(&parsed.statement, &[]).await? {
                Done::Rows(mut rows) => {
                    self.conn.send(row_description(&rows.columns, &[]))?;
                    let writer = RowWriter::new(Shape::Data, &rows.columns, &[]);
                    rows.write(&mut self.conn, &mut self.interrupt, &writer, u64::MAX).await?;
                    self.complete(rows.tag())?;
                }
                other => self.finish(other).await?,
            }
        }
        Ok(())
    }

    /// Starts a statement under the session's time-out.
    pub(super) async fn start(
        &mut self,
        statement: &Statement,
        values: &[Value],
    ) -> WireResult<Done> {
        self.state.check_transaction(statement)?;
        match statement {
            Statement::Deallocate(Some(name)) => {
                self.prepared.remove(name).ok_or_else(|| WireError::no_statement(name))?;
            }
            Statement::Deallocate(None) => self.prepared.clear(),
            Statement::DiscardAll => {
                self.prepared.clear();
                self.portals.clear();
            }
            Statement::Commit | Statement::Rollback => self.portals.clear(),
            _ => {}
        }
        self.interrupt.arm(self.state.settings.statement_timeout());
        // What is answered already must not wait for a statement that takes its time.
        let done = {
            let mut run = std::pin::pin!(self.state.run(statement, values));
            match futures::poll!(run.as_mut()) {
                std::task::Poll::Ready(done) => done,
                std::task::Poll::Pending => {
                    self.interrupt.guard(self.conn.flush()).await??;
                    self.interrupt.guard(run).await?
                }
            }
        }?;
        if let Statement::Set { name, .. } = statement {
            self.report(name)?;
        }
        Ok(done)
    }

    /// Clients are told when a setting changes that they were told at the start.
    fn report(&mut self, name: &str) -> WireResult<()> {
        match REPORTED.iter().find(|reported| reported.eq_ignore_ascii_case(name)) {
            Some(reported) => {
                let value = self.state.settings.show(name)?;
                self.conn.send(ParameterStatus::new((*reported).to_owned(), value))
            }
            None => Ok(()),
        }
    }

    /// Brings to an end what a statement came to, except rows that a portal may return in pieces.
    pub(super) async fn finish(&mut self, done: Done) -> WireResult<()> {
        match done {
            Done::Tag(tag, notice) => {
                if let Some((sqlstate, message)) = notice {
                    self.conn.send(warning(sqlstate, message))?;
                }
                self.complete(tag)
            }
            Done::CopyOut(rows) => self.copy_out(rows).await,
            Done::CopyIn { bucket, id_field } => {
                let copied = self.copy_in(bucket, id_field).await?;
                self.complete(format!("COPY {copied}"))
            }
            Done::Rows(_) => {
                Err(Error::internal("rows are written by who knows their formats").into())
            }
        }
    }

    pub(super) fn complete(&mut self, tag: String) -> WireResult<()> {
        self.conn.send(CommandComplete::new(tag))
    }

    async fn copy_out(&mut self, mut rows: Rows) -> WireResult<()> {
        let count = rows.columns.len();
        self.conn.send(CopyOutResponse::new(0, count as i16, vec![0; count]))?;
        let writer = RowWriter::new(Shape::Copy, &rows.columns, &[]);
        rows.write(&mut self.conn, &mut self.interrupt, &writer, u64::MAX).await?;
        self.conn.send(CopyDone::new())?;
        self.complete(rows.tag())
    }
}

/// The columns of a result, in the formats that were asked for.
pub(super) fn row_description(columns: &[ColumnInfo], formats: &[Format]) -> RowDescription {
    let fields = columns.iter().enumerate().map(|(n, column)| {
        let format = formats.get(n).copied().unwrap_or_default();
        let column_type = column.column_type;
        // A NUL would end the name early.
        let name = column.name.replace('\0', "");
        FieldDescription::new(name, 0, 0, oid(column_type), size(column_type), -1, format.code())
    });
    RowDescription::new(fields.collect())
}
