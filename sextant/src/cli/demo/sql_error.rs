//! Errors of the demo's SQL connection.

use proto::{Error, ErrorCode};

use super::super::sql_client::describe;

/// Returns a function that adds the name of the failed step to an error of the SQL connection.
pub fn sql_error(doing: &str) -> impl Fn(tokio_postgres::Error) -> Error + '_ {
    move |error| Error::new(ErrorCode::Internal, format!("{doing}: {}", describe(&error)))
}
