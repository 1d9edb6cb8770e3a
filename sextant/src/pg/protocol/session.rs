//! One client's session, and the steps before a statement runs: parsing, the limits of running
//! statements, and time limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use pgwire::messages::response::{CommandComplete, ReadyForQuery, TransactionStatus};
use pgwire::messages::startup::ParameterStatus;
use proto::env::Env;
use proto::model::catalog::Catalog;
use proto::value::Value;
use tokio::io::{AsyncRead, AsyncWrite};

use super::portal::{Portal, Prepared};
use crate::access::Access;
use crate::backend::Samples;
use crate::flow::{ReservedMemory, StatementPlace};
use crate::pg::interrupt::{Interrupt, Registration, await_outcome};
use crate::pg::message::conn::{Conn, FLUSH_AFTER};
use crate::pg::message::error::{Notice, WireError, WireResult};
use crate::pg::session::known_settings::REPORTED;
use crate::pg::session::resolved_names::ResolvedNames;
use crate::pg::session::settings::Settings;
use crate::pg::session::state::{Login, SessionState, changes_at_once, ends_transaction};
use crate::pg::session::transaction::{Block, Transaction};
use crate::pg::start::startup::Parameters;
use crate::pg::statement::execute::StatementOutcome;
use crate::sql::ParsedStatement;
use crate::sql::ast::Statement;
use crate::sql::definitions::building::{state_after_alter, state_after_create, state_after_load};
use crate::sql::places::with_column_position;
use crate::sql::remarks::{RemarkReceiver, Remarks};
use crate::sql::texts::{LONG_TEXT_BYTES, parse_long, reserve_for_parsing};

/// One client's session, with its connection, settings, prepared statements and portals.
pub(in crate::pg) struct Session<S> {
    pub(in crate::pg) conn: Conn<S>,
    pub(in crate::pg) env: Env,
    pub(in crate::pg) interrupt: Interrupt,
    pub(in crate::pg) state: SessionState,
    /// The receiver of remarks about the running statement.
    told: RemarkReceiver,
    pub(super) prepared: BTreeMap<String, Arc<Prepared>>,
    pub(super) portals: BTreeMap<String, Portal>,
    pub(super) registration: Registration,
    /// The values of the settings [`REPORTED`] that the client knows, and the count of changes of
    /// settings when they were sent.
    reported: (Vec<String>, u64),
    /// True while messages are skipped: after an error in the extended protocol, until Sync.
    pub(super) skipping: bool,
    /// The permission to run the present statement, within the limits of clients.
    pub(super) place: Option<StatementPlace>,
    /// The memory reserved for the running statement, if its text is long.
    pub(super) room: Option<ReservedMemory>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Session<S> {
    pub(in crate::pg) fn new(
        mut conn: Conn<S>,
        (env, interrupt): (Env, Interrupt),
        (access, samples, login): (Access, Arc<Samples>, Login),
        (parameters, settings): (Parameters, Settings),
        registration: Registration,
    ) -> Self {
        let flow = Arc::clone(login.doors.flow());
        conn.apply_limits(&flow, access.principal());
        let (remarks, told) = Remarks::channel();
        let state = SessionState {
            env: env.clone(),
            access,
            samples,
            login,
            settings,
            transaction: Transaction::None,
            block: Block::default(),
            database: parameters.database(),
            user: parameters.user(),
            process: registration.process,
            notices: Vec::new(),
            remarks,
        };
        let reported = (reported(&state.settings), state.settings.changes());
        Self {
            conn,
            env,
            interrupt,
            state,
            told,
            prepared: BTreeMap::new(),
            portals: BTreeMap::new(),
            registration,
            reported,
            skipping: false,
            place: None,
            room: None,
        }
    }

    /// Sends an error to the client. Returns the error if it ends the session.
    pub(super) fn send_error(&mut self, error: WireError) -> WireResult<()> {
        if error.is_fatal() {
            return Err(error);
        }
        self.state.access.note_error(error.sqlstate());
        self.fail(&error)
    }

    /// Sends an error to the client. Records that a statement has failed, so that an open
    /// transaction becomes failed.
    pub(super) fn fail(&mut self, error: &WireError) -> WireResult<()> {
        self.state.fail_transaction();
        self.send_notices()?;
        self.conn.send(error.response())?;
        // The settings of the transaction may have ended with it.
        self.report()
    }

    /// Sends the waiting notices to the client. Returns false if there are none.
    pub(in crate::pg) fn send_notices(&mut self) -> WireResult<bool> {
        let mut has_any = false;
        for notice in std::mem::take(&mut self.state.notices) {
            has_any |= self.state.settings.shows(notice.severity);
            self.send_notice(notice)?;
        }
        Ok(has_any)
    }

    /// Sends ReadyForQuery, and drops the portals whose transaction has ended.
    pub(super) async fn send_ready(&mut self) -> WireResult<()> {
        let status = match self.state.transaction {
            Transaction::None => {
                self.portals.clear();
                TransactionStatus::Idle
            }
            Transaction::Open(_) => TransactionStatus::Transaction,
            Transaction::Failed(_) => TransactionStatus::Error,
        };
        self.conn.send(ReadyForQuery::new(status))?;
        Ok(self.conn.flush().await?)
    }

    /// Parses a query text within the session's time-out. A long text is parsed on a blocking
    /// thread.
    pub(super) async fn parse_text(&mut self, sql: &str) -> WireResult<Vec<ParsedStatement>> {
        if sql.len() <= LONG_TEXT_BYTES {
            return Ok(crate::sql::parse(sql)?);
        }
        let timeout = self.state.settings.statement_timeout();
        // The wait has the time limit of the statement, and a separate error.
        self.interrupt.begin_statement(None);
        // The memory reserved for parsing includes that of the message.
        self.conn.release_memory();
        let memory = self.state.memory();
        let room = self.interrupt.guard(reserve_for_parsing(sql.len(), &memory, timeout)).await??;
        self.interrupt.begin_statement(timeout);
        let parsing = parse_long(sql.to_owned(), room, &self.env);
        let (parsed, room) = self.interrupt.guard(parsing).await?;
        self.room = Some(room);
        Ok(parsed?)
    }

    /// Ends the permission and releases the memory of the statements of a message.
    pub(super) fn release_place(&mut self) {
        (self.place, self.room) = (None, None);
        self.conn.release_memory();
    }

    /// Obtains the permission to run a statement, within the limits of clients, unless its
    /// message already has one. The permission ends after the answer to the message.
    pub(super) fn take_place(&mut self, statement: &Statement) -> WireResult<()> {
        // The place of a statement that ends a transaction was taken without a check of the
        // limits.
        self.place.take_if(|place| place.is_exempt() && !ends_transaction(statement));
        if self.place.is_none() {
            self.place = Some(self.state.login.statement(statement)?);
        }
        Ok(())
    }

    /// Runs a statement within the session's time-out. Returns its outcome.
    pub(super) async fn start(
        &mut self,
        parsed: &ParsedStatement,
        values: &[Value],
        kept: &ResolvedNames,
    ) -> WireResult<StatementOutcome> {
        self.start_in(("", 0), parsed, values, kept).await
    }

    /// Runs a statement that begins at byte `start` of a query text. Adds to errors their
    /// position in the text.
    pub(super) async fn start_in(
        &mut self,
        (sql, start): (&str, usize),
        parsed: &ParsedStatement,
        values: &[Value],
        kept: &ResolvedNames,
    ) -> WireResult<StatementOutcome> {
        let statement = &parsed.statement;
        // An error in it undoes the settings before it too.
        self.state.block.note(statement);
        self.state.check_transaction(statement)?;
        self.state.check_definition(statement)?;
        self.take_place(statement)?;
        if self.conn.is_full() {
            // A client that does not read its answers gets no further ones.
            self.conn.flush().await?;
        }
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
        self.interrupt.begin_statement(self.state.settings.statement_timeout());
        let shows_remarks = self.state.settings.shows(Notice::REMARK);
        let done = {
            let mut run = std::pin::pin!(self.state.run(parsed, values, kept));
            match futures::poll!(run.as_mut()) {
                std::task::Poll::Ready(done) => Ok(done),
                std::task::Poll::Pending => {
                    let interrupted = loop {
                        let has_answers = self.conn.has_answers();
                        tokio::select! {
                            biased;
                            remark = self.told.next() => {
                                if shows_remarks {
                                    self.conn.send(Notice::remark(remark).response())?;
                                }
                            }
                            done = self.interrupt.guard(run.as_mut()) => break done,
                            () = tokio::time::sleep(FLUSH_AFTER), if has_answers => {
                                match self.interrupt.guard(self.conn.flush()).await {
                                    Ok(flushed) => flushed?,
                                    Err(error) => break Err(error),
                                }
                            }
                        }
                    };
                    match interrupted {
                        Err(error) if changes_at_once(statement) => await_outcome(error, run).await,
                        done => done,
                    }
                }
            }
        };
        let catalog = || self.state.access.catalog();
        let done = done.map_err(|error| after_interrupt(error, statement, catalog))?;
        while let Some(remark) = self.told.next_now() {
            self.send_notice(Notice::remark(remark))?;
        }
        self.send_notices()?;
        let done = done.map_err(|error| with_column_position(error, sql, start))?;
        if let Statement::RollbackTo(_) | Statement::Release(_) = statement {
            self.drop_undone_portals(statement);
        }
        self.report()?;
        Ok(done)
    }

    /// Sends a notice to the client, unless its setting suppresses it.
    fn send_notice(&mut self, notice: Notice) -> WireResult<()> {
        match self.state.settings.shows(notice.severity) {
            true => self.conn.send(notice.response()),
            false => Ok(()),
        }
    }

    /// Ends the implicit transaction of the previous statements, if there is one. If the commit
    /// fails, sends its error to the client.
    pub(super) async fn end_block(&mut self) -> WireResult<()> {
        if !self.state.is_outside_transaction() {
            return Ok(());
        }
        if matches!(self.state.transaction, Transaction::None) {
            self.state.end_block().await?;
            return self.report();
        }
        self.state.login.check()?;
        self.take_place(&Statement::Commit)?;
        self.interrupt.begin_statement(self.state.settings.statement_timeout());
        let done = {
            let mut commit = std::pin::pin!(self.state.end_block());
            match self.interrupt.guard(commit.as_mut()).await {
                Err(error) => await_outcome(error, commit).await,
                done => done,
            }
        };
        done??;
        self.send_notices()?;
        self.report()
    }

    /// Drops the portals that a ROLLBACK TO statement invalidates: portals that were opened after
    /// the savepoint, and portals whose rows may include changes that are rolled back. After
    /// RELEASE, portals that were opened after the savepoint belong to the enclosing savepoint.
    fn drop_undone_portals(&mut self, statement: &Statement) {
        let (depth, has_undone) = self.state.savepoints();
        match statement {
            Statement::RollbackTo(_) => self.portals.retain(|_, portal| {
                portal.opened < depth && !(has_undone && portal.began >= depth)
            }),
            _ => self.portals.values_mut().for_each(|portal| {
                portal.opened = portal.opened.min(depth);
                portal.began = portal.began.min(depth);
            }),
        }
    }

    /// Sends the settings that the protocol reports to clients, if any of them has changed.
    fn report(&mut self) -> WireResult<()> {
        let changes = self.state.settings.changes();
        let (known, known_changes) = &self.reported;
        if changes == *known_changes {
            return Ok(());
        }
        let now = reported(&self.state.settings);
        for ((name, value), known) in REPORTED.iter().zip(&now).zip(known) {
            if value != known {
                self.conn.send(ParameterStatus::new((*name).to_owned(), value.clone()))?;
            }
        }
        self.reported = (now, changes);
        Ok(())
    }

    /// Sends the command tag of a finished statement.
    pub(super) fn complete(&mut self, tag: String) -> WireResult<()> {
        self.conn.send(CommandComplete::new(tag))
    }
}

/// Returns the values of the settings [`REPORTED`].
fn reported(settings: &Settings) -> Vec<String> {
    REPORTED.iter().map(|name| settings.show(&name.to_lowercase()).unwrap_or_default()).collect()
}

/// Returns the error of an interrupted statement. If the statement had begun the build of an
/// index, the error says that the build continues.
fn after_interrupt(
    error: WireError,
    statement: &Statement,
    catalog: impl Fn() -> Arc<Catalog>,
) -> WireError {
    let names = match statement {
        Statement::CreateIndex(create) => std::slice::from_ref(&create.name),
        Statement::BuildIndex { indexes, .. } => indexes,
        Statement::AlterIndex { name, .. } => {
            let (left, hint) = state_after_alter(&catalog(), name);
            return error.with_left_state(&left, hint);
        }
        Statement::LoadVersion { bucket, version, .. } => {
            let (left, hint) = state_after_load(&catalog(), bucket, version);
            return error.with_left_state(&left, hint);
        }
        _ => return error,
    };
    let (left, hint) = state_after_create(&catalog(), names);
    error.with_left_state(&left, hint)
}
