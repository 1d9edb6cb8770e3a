//! The pause between two attempts to reach the coordinators, which grows with each failure.

use std::time::Duration;

use proto::Error;
use proto::client::Retry;

/// The first pause; each failure doubles it, up to [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_millis(50);

const RETRY_MAX: Duration = Duration::from_secs(1);

pub(super) fn new_retry() -> Retry {
    Retry::doubling(RETRY_MIN, RETRY_MAX)
}

pub(super) fn log_failure(doing: &str, error: &Error) {
    if error.is_retry() {
        tracing::debug!(%error, "{doing} failed; retrying");
    } else {
        tracing::warn!(%error, "{doing} failed; retrying");
    }
}
