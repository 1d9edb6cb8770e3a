//! The pause between two attempts of a failed call.

use std::time::Duration;

/// The pauses between the attempts of a failing call: constant, or doubled from one failure to
/// the next up to a maximum.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    min: Duration,
    max: Duration,
    next: Duration,
    failures: u32,
}

impl Retry {
    /// Creates a constant pause after each failure.
    pub fn constant(pause: Duration) -> Self {
        Self::doubling(pause, pause)
    }

    /// Creates a pause of `min` after the first failure, doubled with each further one up to
    /// `max`.
    pub fn doubling(min: Duration, max: Duration) -> Self {
        Self { min, max, next: min, failures: 0 }
    }

    /// Resets the pause to its first length, after a successful call.
    pub fn reset(&mut self) {
        *self = Self::doubling(self.min, self.max);
    }

    /// Returns true if the present failure is the first one since a call succeeded.
    pub fn is_first_failure(&self) -> bool {
        self.failures == 0
    }

    /// Waits for the pause, and doubles the next one.
    pub async fn pause(&mut self) {
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(self.max);
        self.failures = self.failures.saturating_add(1);
    }
}
