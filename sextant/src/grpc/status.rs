//! Errors as gRPC statuses.

use proto::{Error, ErrorCode, ErrorKind};
use tonic::{Code, Status};

use crate::access::Access;

/// Converts an error to a gRPC status and counts the error.
pub(super) fn counted_status(access: &Access, error: Error) -> Status {
    access.note_error(error.code.sqlstate());
    status(error)
}

/// Converts an error to a gRPC status. The status code tells the client how to react. The
/// metadata contains the SQLSTATE as `sqlstate`.
pub(super) fn status(error: Error) -> Status {
    let code = match (error.code, error.code.kind()) {
        (ErrorCode::Unknown | ErrorCode::UnknownColumn | ErrorCode::UnknownSetting, _) => {
            Code::NotFound
        }
        (ErrorCode::NotAllowed, _) => Code::PermissionDenied,
        (ErrorCode::BadPassword | ErrorCode::BadLogin | ErrorCode::SessionEnded, _) => {
            Code::Unauthenticated
        }
        (ErrorCode::UnknownUser, _) => Code::NotFound,
        (ErrorCode::NoTransaction, _) => Code::NotFound,
        (ErrorCode::HasDependents | ErrorCode::TransactionState, _) => Code::FailedPrecondition,
        (ErrorCode::WrongState | ErrorCode::Changed, _) => Code::FailedPrecondition,
        (ErrorCode::Exists | ErrorCode::DuplicateId | ErrorCode::UserExists, _) => {
            Code::AlreadyExists
        }
        (ErrorCode::Unsupported, _) => Code::Unimplemented,
        (ErrorCode::OverLimit | ErrorCode::TooComplex | ErrorCode::OutOfRoom, _) => {
            Code::ResourceExhausted
        }
        (ErrorCode::SnapshotTooOld | ErrorCode::Conflict | ErrorCode::Held, _) => Code::Aborted,
        (ErrorCode::BuildCancelled, _) => Code::Aborted,
        (ErrorCode::InDoubt, _) => Code::Unknown,
        (ErrorCode::Cancelled, _) => Code::DeadlineExceeded,
        (ErrorCode::OutOfOrder, _) => Code::FailedPrecondition,
        (_, ErrorKind::Retry) => Code::Unavailable,
        (_, ErrorKind::Caller) => Code::InvalidArgument,
        (_, ErrorKind::Operator) => Code::Internal,
    };
    let mut status = Status::new(code, error.to_string());
    if let Ok(state) = error.code.sqlstate().parse() {
        status.metadata_mut().insert("sqlstate", state);
    }
    status
}
