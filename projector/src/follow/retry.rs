//! The growing pause between two attempts.

use std::time::Duration;

use proto::Error;

/// The first pause; doubled after each failure up to [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_millis(50);

const RETRY_MAX: Duration = Duration::from_secs(1);

pub(super) struct Retry(Duration);

impl Retry {
    pub fn new() -> Self {
        Self(RETRY_MIN)
    }

    pub async fn pause(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(RETRY_MAX);
    }
}

pub(super) fn report(doing: &str, error: &Error) {
    if error.is_retry() {
        tracing::debug!(%error, "{doing} failed; retrying");
    } else {
        tracing::warn!(%error, "{doing} failed; retrying");
    }
}
