//! The state of one client's session, and the steps before a statement runs: parsing, places and
//! time limits.

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
use crate::flow::{Room, StatementPlace};
use crate::pg::interrupt::{Interrupt, Registration, outcome};
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
use crate::sql::definitions::building::{left_behind, left_changing, left_loading};
use crate::sql::places::with_place;
use crate::sql::remarks::{RemarkSink, Remarks};
use crate::sql::texts::{LONG_TEXT_BYTES, parse_long, room_for};

/// The state of one client's session.
pub(in crate::pg) struct Session<S> {
    pub(in crate::pg) conn: Conn<S>,
    pub(in crate::pg) env: Env,
    pub(in crate::pg) interrupt: Interrupt,
    pub(in crate::pg) state: SessionState,
    /// The remarks about the running statement.
    told: RemarkSink,
    pub(super) prepared: BTreeMap<String, Arc<Prepared>>,
    pub(super) portals: BTreeMap<String, Portal>,
    pub(super) registration: Registration,
    /// The values of [`REPORTED`] that were sent to the client, and the count of changes of
    /// settings at that time.
    reported: (Vec<String>, u64),
    /// True after an error in the extended protocol, until Sync.
    pub(super) skipping: bool,
    /// The place of the running statement.
    pub(super) place: Option<StatementPlace>,
    /// The memory of the running statement, if its text is long.
    pub(super) room: Option<Room>,
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
        conn.limit(&flow, access.principal());
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

    /// Sends an error to the client; returns it if it ends the session.
    pub(super) fn tell(&mut self, error: WireError) -> WireResult<()> {
        if error.is_fatal() {
            return Err(error);
        }
        self.state.access.note_error(error.sqlstate());
        self.fail(&error)
    }

    /// Sends an error to the client and records that a statement failed, which makes an open
    /// transaction fail.
    pub(super) fn fail(&mut self, error: &WireError) -> WireResult<()> {
        self.state.fail_transaction();
        self.send_notices()?;
        self.conn.send(error.response())?;
        // The settings of the transaction may have ended with it.
        self.report()
    }

    /// Sends the notices to the client; false if there are none.
    pub(in crate::pg) fn send_notices(&mut self) -> WireResult<bool> {
        let mut has_any = false;
        for notice in std::mem::take(&mut self.state.notices) {
            has_any |= self.state.settings.shows(notice.severity);
            self.send_notice(notice)?;
        }
        Ok(has_any)
    }

    /// Sends ReadyForQuery, and closes portals whose transaction has ended.
    pub(super) async fn ready(&mut self) -> WireResult<()> {
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

    /// Parses a query text within the session's time-out; a long text on a blocking thread.
    pub(super) async fn parse_text(&mut self, sql: &str) -> WireResult<Vec<ParsedStatement>> {
        if sql.len() <= LONG_TEXT_BYTES {
            return Ok(crate::sql::parse(sql)?);
        }
        let timeout = self.state.settings.statement_timeout();
        // The wait has the time limit of the statement, and a separate error.
        self.interrupt.arm(None);
        // The room of parsing contains the message's.
        self.conn.give_room_back();
        let memory = self.state.memory();
        let room = self.interrupt.guard(room_for(sql.len(), &memory, timeout)).await??;
        self.interrupt.arm(timeout);
        let parsing = parse_long(sql.to_owned(), room, &self.env);
        let (parsed, room) = self.interrupt.guard(parsing).await?;
        self.room = Some(room);
        Ok(parsed?)
    }

    /// Releases the place and the memory that the statements of a message have taken.
    pub(super) fn give_back(&mut self) {
        (self.place, self.room) = (None, None);
        self.conn.give_room_back();
    }

    /// Takes a place for a statement, unless its message has one. The place is released after the
    /// answer to the message.
    pub(super) fn take_place(&mut self, statement: &Statement) -> WireResult<()> {
        // The place of the end of a transaction was taken without a limit.
        self.place.take_if(|place| place.is_exempt() && !ends_transaction(statement));
        if self.place.is_none() {
            self.place = Some(self.state.login.statement(statement)?);
        }
        Ok(())
    }

    /// Runs a statement within the session's time-out and returns its outcome.
    pub(super) async fn start(
        &mut self,
        parsed: &ParsedStatement,
        values: &[Value],
        kept: &ResolvedNames,
    ) -> WireResult<StatementOutcome> {
        self.start_in(("", 0), parsed, values, kept).await
    }

    /// Runs a statement that begins at byte `start` of a query text, and adds positions in the text
    /// to errors.
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
        self.interrupt.arm(self.state.settings.statement_timeout());
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
                        Err(error) if changes_at_once(statement) => outcome(error, run).await,
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
        let done = done.map_err(|error| with_place(error, sql, start))?;
        if let Statement::RollbackTo(_) | Statement::Release(_) = statement {
            self.keep_portals(statement);
        }
        self.report()?;
        Ok(done)
    }

    fn send_notice(&mut self, notice: Notice) -> WireResult<()> {
        match self.state.settings.shows(notice.severity) {
            true => self.conn.send(notice.response()),
            false => Ok(()),
        }
    }

    /// Ends the implicit transaction of the previous statements, if there is one, and sends an
    /// error of its commit to the client.
    pub(super) async fn end_block(&mut self) -> WireResult<()> {
        if !self.state.is_outside() {
            return Ok(());
        }
        if matches!(self.state.transaction, Transaction::None) {
            self.state.end_block().await?;
            return self.report();
        }
        self.state.login.check()?;
        self.take_place(&Statement::Commit)?;
        self.interrupt.arm(self.state.settings.statement_timeout());
        let done = {
            let mut commit = std::pin::pin!(self.state.end_block());
            match self.interrupt.guard(commit.as_mut()).await {
                Err(error) => outcome(error, commit).await,
                done => done,
            }
        };
        done??;
        self.send_notices()?;
        self.report()
    }

    /// Drops the portals that ROLLBACK TO undoes: those opened after the savepoint, and those whose
    /// rows may include changes that were rolled back. After RELEASE, portals opened after the
    /// savepoint belong to the enclosing savepoint.
    fn keep_portals(&mut self, statement: &Statement) {
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

    /// Sends the settings that the protocol reports to clients, if they have changed.
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

    pub(super) fn complete(&mut self, tag: String) -> WireResult<()> {
        self.conn.send(CommandComplete::new(tag))
    }
}

/// Returns the values of [`REPORTED`].
fn reported(settings: &Settings) -> Vec<String> {
    REPORTED.iter().map(|name| settings.show(&name.to_lowercase()).unwrap_or_default()).collect()
}

/// Returns the error of an interrupted statement. If the statement has begun a build, the error
/// says that the build continues.
fn after_interrupt(
    error: WireError,
    statement: &Statement,
    catalog: impl Fn() -> Arc<Catalog>,
) -> WireError {
    let names = match statement {
        Statement::CreateIndex(create) => std::slice::from_ref(&create.name),
        Statement::BuildIndex { indexes, .. } => indexes,
        Statement::AlterIndex { name, .. } => {
            let (left, hint) = left_changing(&catalog(), name);
            return error.leaving(&left, hint);
        }
        Statement::LoadVersion { bucket, version, .. } => {
            let (left, hint) = left_loading(&catalog(), bucket, version);
            return error.leaving(&left, hint);
        }
        _ => return error,
    };
    let (left, hint) = left_behind(&catalog(), names);
    error.leaving(&left, hint)
}
