//! Errors of the demo's SQL connection.

use proto::{Error, ErrorCode};

use super::super::sql_client::describe;

/// Turns an error of the SQL connection into one that names the failed step.
pub fn sql_error(doing: &str) -> impl Fn(tokio_postgres::Error) -> Error + '_ {
    move |error| Error::new(ErrorCode::Internal, format!("{doing}: {}", describe(&error)))
}
