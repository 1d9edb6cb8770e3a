//! The pause between two attempts of a failed call.

use std::time::Duration;

/// The pause between two attempts: constant, or doubled from one failure to the next up to a
/// maximum.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    min: Duration,
    max: Duration,
    next: Duration,
    failures: u32,
}

impl Retry {
    /// A constant pause after each failure.
    pub fn constant(pause: Duration) -> Self {
        Self::doubling(pause, pause)
    }

    /// A pause of `min` after the first failure, doubled with each further one, at most `max`.
    pub fn doubling(min: Duration, max: Duration) -> Self {
        Self { min, max, next: min, failures: 0 }
    }

    /// Resets the pause after a successful call.
    pub fn reset(&mut self) {
        *self = Self::doubling(self.min, self.max);
    }

    /// Returns true if the last call before this failure succeeded.
    pub fn is_first_failure(&self) -> bool {
        self.failures == 0
    }

    /// Waits before the next attempt.
    pub async fn pause(&mut self) {
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(self.max);
        self.failures = self.failures.saturating_add(1);
    }
}
