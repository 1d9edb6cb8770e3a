//! Errors of the demo's SQL connection.

use proto::{Error, ErrorCode};

use super::super::client::describe;

/// An error of the SQL connection, with what was being done.
pub fn sql(doing: &str) -> impl Fn(tokio_postgres::Error) -> Error + '_ {
    move |error| Error::new(ErrorCode::Internal, format!("{doing}: {}", describe(&error)))
}
