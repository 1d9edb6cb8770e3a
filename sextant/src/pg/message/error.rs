//! Errors on the wire: `ErrorResponse` with severity, SQLSTATE, message, hint and position.

use std::borrow::Cow;

use pgwire::messages::response::{ErrorResponse, NoticeResponse};
use proto::{Error, ErrorCode, ErrorKind};

use crate::sql::SqlError;
use crate::sql::remarks::Remark;

/// An error in the form in which it is sent to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::pg) struct WireError {
    sqlstate: &'static str,
    message: String,
    hint: Option<String>,
    position: Option<u32>,
    fatal: bool,
}

/// A result whose error is sent to the client.
pub(in crate::pg) type WireResult<T> = Result<T, WireError>;

impl WireError {
    /// Returns an error with an SQLSTATE and a message, which does not end the session.
    fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { sqlstate, message: message.into(), hint: None, position: None, fatal: false }
    }

    /// Returns the error for a client that violates the protocol. The error ends the session.
    pub(in crate::pg) fn protocol(message: impl Into<String>) -> Self {
        Self { fatal: true, ..Self::new("08P01", message) }
    }

    /// Returns the error for an unknown prepared statement.
    pub(in crate::pg) fn no_statement(name: &str) -> Self {
        Self::new("26000", format!("there is no prepared statement \"{name}\""))
    }

    /// Returns the error for a prepared statement whose name is in use.
    pub(in crate::pg) fn statement_exists(name: &str) -> Self {
        Self::new("42P05", format!("prepared statement \"{name}\" already exists"))
            .with_hint("close it, or DEALLOCATE it, before its name is used again")
    }

    /// Returns the error for a portal whose name is in use.
    pub(in crate::pg) fn portal_exists(name: &str) -> Self {
        Self::new("42P03", format!("portal \"{name}\" already exists"))
    }

    /// Returns the error for a definition in a transaction that has already written documents.
    pub(in crate::pg) fn late_definition() -> Self {
        let what = "a definition cannot follow writes in their transaction, because it cannot be rolled back with them";
        Self::new("25001", what)
            .with_hint("COMMIT the writes first, or run the definition before them")
    }

    /// Returns the error for an unknown portal.
    pub(in crate::pg) fn no_portal(name: &str) -> Self {
        Self::new("34000", format!("there is no portal \"{name}\""))
    }

    /// Returns the error for a portal (a statement with values) whose further rows were not
    /// requested in time.
    pub(in crate::pg) fn portal_timed_out(name: &str) -> Self {
        let what = format!("the rows of portal \"{name}\" waited too long for their client");
        Self::new("34000", what).with_hint("run it again; the setting cursor_idle_s is the limit")
    }

    /// Returns the error for a session that was idle for too long. The error ends the session.
    pub(in crate::pg) fn idle_session() -> Self {
        Self::new("57P05", "the session waited too long for a statement")
            .with_hint(
                "SET idle_session_timeout changes the limit, whose default is idle_session_s",
            )
            .fatal()
    }

    /// Returns the error for a session that ends because its process stops.
    pub(in crate::pg) fn stopped() -> Self {
        Self::new("57P01", "terminating connection due to administrator command: the process stops")
            .with_hint("connect again, to another router or after its start")
            .fatal()
    }

    /// Returns the error for a client that connects while the process is being stopped.
    pub(in crate::pg) fn stopping() -> Self {
        Self::new("57P03", "the process is shutting down")
            .with_hint("connect to another router, or after its start")
            .fatal()
    }

    /// Returns the error for a statement in a failed transaction.
    pub(in crate::pg) fn failed_transaction() -> Self {
        Self {
            hint: Some(
                "ROLLBACK ends the transaction; ROLLBACK TO goes back to a savepoint".into(),
            ),
            ..Self::new("25P02", "the transaction has failed; statements are ignored until its end")
        }
    }

    /// Returns the error for a session whose transaction was idle for too long. The error ends
    /// the session.
    pub(in crate::pg) fn idle_in_transaction() -> Self {
        let what = "the transaction waited too long for its client, and was rolled back";
        Self::new("25P03", what)
            .with_hint("SET idle_in_transaction_session_timeout changes the limit; 0 is none")
            .fatal()
    }

    /// Appends a text to the message.
    pub(in crate::pg) fn with_message_end(mut self, more: &str) -> Self {
        self.message.push_str(more);
        self
    }

    /// Sets the hint.
    pub(in crate::pg) fn with_hint(mut self, hint: &str) -> Self {
        self.hint = Some(hint.to_owned());
        self
    }

    /// Appends a description of what an interrupted statement has left, and sets the hint.
    pub(in crate::pg) fn with_left_state(mut self, left: &str, hint: String) -> Self {
        self.message = format!("{}; {left}", self.message);
        self.hint = Some(hint);
        self
    }

    /// Returns this error as one that ends the session.
    pub(in crate::pg) fn fatal(mut self) -> Self {
        self.fatal = true;
        self
    }

    /// Returns the SQLSTATE of the error.
    pub(in crate::pg) fn sqlstate(&self) -> &'static str {
        self.sqlstate
    }

    /// Returns true if the error ends the session.
    pub(in crate::pg) fn is_fatal(&self) -> bool {
        self.fatal
    }

    /// Returns the fields of the protocol's message, with a severity.
    fn fields(&self, severity: &str) -> Vec<(u8, String)> {
        // The protocol ends a field with NUL.
        let clean = |text: &str| text.replace('\0', "\u{fffd}");
        let mut fields = vec![
            (b'S', severity.to_owned()),
            (b'V', severity.to_owned()),
            (b'C', self.sqlstate.to_owned()),
            (b'M', clean(&self.message)),
        ];
        fields.extend(self.hint.as_deref().map(|hint| (b'H', clean(hint))));
        fields.extend(self.position.map(|position| (b'P', position.to_string())));
        fields
    }

    /// Returns the protocol's message for the error.
    pub(in crate::pg) fn response(&self) -> ErrorResponse {
        ErrorResponse::new(self.fields(if self.fatal { "FATAL" } else { "ERROR" }))
    }
}

impl From<Error> for WireError {
    fn from(error: Error) -> Self {
        // This is the one place where the error is logged: it leaves the cluster here.
        if error.code.kind() == ErrorKind::Operator {
            tracing::error!(%error, "a statement failed");
        }
        Self { hint: error.hint, ..Self::new(error.code.sqlstate(), error.message) }
    }
}

impl From<SqlError> for WireError {
    fn from(error: SqlError) -> Self {
        Self { position: error.position, ..Self::from(error.error) }
    }
}

impl From<std::io::Error> for WireError {
    /// Converts an error of the socket, which ends the session.
    fn from(error: std::io::Error) -> Self {
        Self { fatal: true, ..Self::new(ErrorCode::Io.sqlstate(), error.to_string()) }
    }
}

/// A notice about a statement that does not fail: severity, SQLSTATE, message and hint.
#[derive(Clone, Debug)]
pub(in crate::pg) struct Notice {
    pub(in crate::pg) severity: &'static str,
    pub(in crate::pg) sqlstate: &'static str,
    pub(in crate::pg) message: Cow<'static, str>,
    pub(in crate::pg) hint: Option<Cow<'static, str>>,
}

impl Notice {
    /// The severity of remarks (information that is no warning).
    pub(in crate::pg) const REMARK: &'static str = "NOTICE";

    /// Returns a notice with severity WARNING.
    pub(in crate::pg) fn warning(
        sqlstate: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { severity: "WARNING", sqlstate, message: message.into(), hint: None }
    }

    /// Returns a notice with a remark: information about a statement that continues.
    pub(in crate::pg) fn remark(remark: Remark) -> Self {
        let Remark { message, hint } = remark;
        let hint = hint.map(Cow::Borrowed);
        Self { severity: Self::REMARK, sqlstate: "00000", message: message.into(), hint }
    }

    /// Returns a notice that consists of a message and a hint.
    pub(in crate::pg) fn notice_with_hint((message, hint): (String, String)) -> Self {
        let hint = Some(hint.into());
        Self { severity: Self::REMARK, sqlstate: "00000", message: message.into(), hint }
    }

    /// Returns the protocol's message for the notice.
    pub(in crate::pg) fn response(self) -> NoticeResponse {
        let hint = self.hint.map(Cow::into_owned);
        let text = WireError { hint, ..WireError::new(self.sqlstate, self.message) };
        NoticeResponse::new(text.fields(self.severity))
    }
}
