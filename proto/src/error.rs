//! Errors, grouped by remedy: the caller's program can retry, the caller can change the request, or an operator must repair
//! the machine. Each error has the SQLSTATE that PostgreSQL clients know, a message that says what failed and where, and,
//! if possible, a hint that says what to do.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Maximum size of an error's message, and of its hint, in bytes. A message may quote a client's
/// name of any length, and usual gRPC clients accept 16 KiB of metadata, in which a byte may take
/// three.
const TEXT_BYTES_MAX: usize = 2 << 10;

/// The number of bytes at the end of a text that shortening keeps, since the remedy is often
/// there.
const TAIL_BYTES: usize = 512;

/// The kind of an error, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ErrorCode {
    /// Retry: this member is not the leader; the message names the leader, if known.
    NotLeader,
    /// Retry: no node can serve the request now (57P03).
    Unavailable,
    /// Retry: a peer did not answer in time or was cancelled (57014).
    Cancelled,
    /// Retry: the epoch of the scan is no longer retained (72000); restart the scan.
    SnapshotTooOld,
    /// Retry: the slice was moved from this node; the scan continues at the node in the topology.
    SliceMoved,
    /// Retry: the reader's position is not on the stream; it opens a new stream from its
    /// watermarks.
    DropData,
    /// Caller: a syntax error (42601).
    Syntax,
    /// Caller: no such bucket, index or node (42P01).
    Unknown,
    /// Caller: the name is taken (42P07).
    Exists,
    /// Caller: a document with that id exists (23505).
    DuplicateId,
    /// Caller: bad JSON or a value that its type cannot hold (22P02).
    InvalidText,
    /// Caller: over a limit (54000).
    OverLimit,
    /// Caller: too many operators in a statement (54001).
    TooComplex,
    /// Caller: a valid request that this version does not support (0A000).
    Unsupported,
    /// Caller: a parameter is outside its range, or a token was not made by this server (22023).
    InvalidParameter,
    /// Caller: a producer sent a position that does not follow the last one (22023).
    OutOfOrder,
    /// Caller: the statement is not possible in the transaction's state (25000).
    TransactionState,
    /// Operator: data on disk is damaged (XX001).
    Corrupt,
    /// Operator: reading or writing files or sockets failed (58030).
    Io,
    /// Operator: data or a message of a version that this build cannot read (XX000).
    Version,
    /// Operator: a bug; the message names the broken assumption (XX000).
    Internal,
    /// Retry: the limit of concurrent work is reached (53300).
    TooBusy,
    /// Retry: the beginning of a stream was purged from the change log; its reader resyncs from a snapshot.
    HistoryPurged,
    /// Retry: another projector owns the vbucket or is about to; the request had no effect (57P03).
    NotOwner,
    /// Caller: a number that its type cannot hold (22003).
    OutOfRange,
    /// Caller: more columns than a row may have (54011).
    TooManyColumns,
    /// Operator: another process has registered under the node's number (55006).
    NodeTaken,
    /// Caller: no such column (42703).
    UnknownColumn,
    /// Caller: no such setting or option (42704).
    UnknownSetting,
    /// Caller: the name belongs to an object of another kind (42809).
    WrongKind,
    /// Caller: other objects depend on the object (2BP01).
    HasDependents,
    /// Caller: a write in a read-only transaction (25006).
    ReadOnly,
    /// Caller: a character that no text may contain (22P05).
    UntranslatableCharacter,
    /// Retry: the connection to another process was lost during a call, which may have been carried out (57P03).
    Interrupted,
    /// Retry: the called process belongs to another cluster (57P03).
    OtherCluster,
    /// Operator: the coordinator was restored from an older copy of its data (58000).
    OlderCopy,
    /// Retry: a block is not in memory, and the read must not wait; the reader repeats the read on
    /// a thread that may wait.
    NotInMemory,
    /// Caller: another transaction has changed the same documents, or the transaction is lost (40001); restart the transaction.
    Conflict,
    /// Caller: no such savepoint (3B001).
    NoSavepoint,
    /// Caller: the statement needs a transaction (25P01).
    NoTransaction,
    /// Caller: it is unknown whether a transaction was committed (08007); check the data.
    InDoubt,
    /// Retry: a document is locked by a prepared transaction whose outcome is not known yet
    /// (55P03).
    Held,
    /// Caller: the statement requires another condition of the object (55000).
    WrongState,
    /// Caller: another session has ended the build that the statement waits for (57014).
    BuildCancelled,
    /// Caller: the user lacks a privilege (42501).
    NotAllowed,
    /// Caller: no such user (42704).
    UnknownUser,
    /// Caller: a user of that name exists (42710).
    UserExists,
    /// Caller: the name, password or token of a log-in is wrong (28P01).
    BadPassword,
    /// Caller: the user cannot log in by this method (28000).
    BadLogin,
    /// Caller: the user of the session was dropped or has another password (57P05).
    SessionEnded,
    /// Retry: the memory for the work of clients is used up (53200).
    OutOfRoom,
    /// Caller: a division by zero (22012).
    DivisionByZero,
    /// Caller: a name that is reserved for the server (42939).
    ReservedName,
    /// Caller: a name that may mean two columns (42702).
    AmbiguousColumn,
    /// Caller: the statement must come earlier in its transaction (25001).
    TooLate,
    /// Caller: an expression has a type that is not allowed at its position (42804).
    WrongType,
    /// Caller: an object was changed or dropped after the statement had looked it up (55000); repeat the statement if it still fits.
    Changed,
}

/// The remedy for an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request may succeed later or elsewhere.
    Retry,
    /// The request must change.
    Caller,
    /// An operator must repair the machine.
    Operator,
}

impl ErrorCode {
    /// Returns true if this error refuses a commit for good: the commit was not made, and a
    /// repeated attempt would be refused too.
    pub fn refuses_commit(self) -> bool {
        matches!(self, Self::Conflict | Self::DuplicateId)
    }

    /// Returns the remedy for the error.
    pub fn kind(self) -> ErrorKind {
        use ErrorCode::*;
        match self {
            NotLeader | Unavailable | Cancelled | SnapshotTooOld | SliceMoved | DropData
            | TooBusy | HistoryPurged | NotOwner | Interrupted | OtherCluster | NotInMemory
            | Held | OutOfRoom => ErrorKind::Retry,
            Corrupt | Io | Version | Internal | NodeTaken | OlderCopy => ErrorKind::Operator,
            _ => ErrorKind::Caller,
        }
    }

    /// Returns the SQLSTATE for PostgreSQL clients.
    pub fn sqlstate(self) -> &'static str {
        use ErrorCode::*;
        match self {
            NotLeader | Unavailable | SliceMoved | DropData | HistoryPurged | NotOwner
            | Interrupted | OtherCluster | NotInMemory => "57P03",
            Cancelled | BuildCancelled => "57014",
            SnapshotTooOld => "72000",
            Syntax => "42601",
            Unknown => "42P01",
            Exists => "42P07",
            DuplicateId => "23505",
            InvalidText => "22P02",
            OverLimit => "54000",
            TooComplex => "54001",
            OutOfRange => "22003",
            TooManyColumns => "54011",
            Unsupported => "0A000",
            InvalidParameter | OutOfOrder => "22023",
            TransactionState => "25000",
            Corrupt => "XX001",
            Io => "58030",
            Version | Internal => "XX000",
            TooBusy => "53300",
            NodeTaken => "55006",
            OlderCopy => "58000",
            UnknownColumn => "42703",
            UnknownSetting => "42704",
            WrongKind => "42809",
            HasDependents => "2BP01",
            ReadOnly => "25006",
            UntranslatableCharacter => "22P05",
            Conflict => "40001",
            NoSavepoint => "3B001",
            NoTransaction => "25P01",
            InDoubt => "08007",
            Held => "55P03",
            WrongState | Changed => "55000",
            NotAllowed => "42501",
            UnknownUser => "42704",
            UserExists => "42710",
            BadPassword => "28P01",
            BadLogin => "28000",
            SessionEnded => "57P05",
            OutOfRoom => "53200",
            DivisionByZero => "22012",
            ReservedName => "42939",
            AmbiguousColumn => "42702",
            TooLate => "25001",
            WrongType => "42804",
        }
    }
}

/// An error, as services return it to each other and to the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    /// The kind of the error, for programs.
    pub code: ErrorCode,
    /// The text for display: what failed, and where.
    pub message: String,
    /// The remedy, if one is known, as a sentence for the user.
    pub hint: Option<String>,
}

impl Error {
    /// Creates an error without a hint.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: shorten_text(message.into()), hint: None }
    }

    /// Adds a hint to the error.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(shorten_text(hint.into()));
        self
    }

    /// Puts the failed action, `doing`, before the error's message.
    pub fn context(mut self, doing: impl fmt::Display) -> Self {
        self.message = shorten_text(format!("{doing}: {}", self.message));
        self
    }

    /// Returns true if the same request may succeed later or elsewhere.
    pub fn is_retry(&self) -> bool {
        self.code.kind() == ErrorKind::Retry
    }

    /// Creates an error with [`ErrorCode::Internal`].
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, message)
    }

    /// Creates an error with [`ErrorCode::Unavailable`].
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Unavailable, message)
    }
}

/// Shortens a text over [`TEXT_BYTES_MAX`] in its middle.
fn shorten_text(text: String) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text;
    }
    let boundary = |at: usize| (at..).find(|at| text.is_char_boundary(*at)).unwrap_or(at);
    let (head, tail) =
        (boundary(TEXT_BYTES_MAX - TAIL_BYTES - 64), boundary(text.len() - TAIL_BYTES));
    format!("{} … ({} bytes left out) … {}", &text[..head], tail - head, &text[tail..])
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " (hint: {hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::new(ErrorCode::Io, error.to_string())
    }
}

/// The result of a function that may fail with an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_name_of_any_length_leaves_a_short_error() {
        for name in ["x".repeat(100_000), "ä".repeat(50_000), "€".repeat(33_333)] {
            let message = format!("there is no index {name:?} in bucket b");
            let error = Error::new(ErrorCode::Unknown, message).context(&name).with_hint(&name);
            let hint = error.hint.as_deref().expect("a hint");
            assert!(error.message.len() <= TEXT_BYTES_MAX && hint.len() <= TEXT_BYTES_MAX);
            assert!(error.message.ends_with("\" in bucket b"), "{error}");
            assert!(error.message.contains("bytes left out"), "{error}");
        }
        let short = Error::new(ErrorCode::Unknown, "x".repeat(TEXT_BYTES_MAX));
        assert_eq!(short.message.len(), TEXT_BYTES_MAX);
    }
}
