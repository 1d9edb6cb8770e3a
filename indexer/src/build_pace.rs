//! The progress of a build that reads documents from the source, and an estimate of the remaining
//! time.
//!
//! The node counts the documents that a build has read. Its heartbeat reports the percentage, and
//! the remaining seconds at the average pace. The status of the cluster combines the reports of
//! the nodes (`CoordinatorStatus::build_status`).

use tokio::time::Instant;

/// The time, in milliseconds, after which a build reports an estimate. The documents before are
/// too few to measure the pace.
const KNOWN_AFTER_MS: u128 = 1_000;

/// The number of documents that a build has read so far, and the time of its start.
#[derive(Clone, Copy, Debug)]
pub struct BuildPace {
    began: Instant,
    read: u64,
    of: u64,
}

impl BuildPace {
    /// Creates the progress of a build that begins to read its snapshot.
    pub fn begin(began: Instant) -> Self {
        Self { began, read: 0, of: 0 }
    }

    /// Records the number of documents read (`read`) and the approximate number of all documents
    /// (`of`).
    pub fn record_read(&mut self, read: u64, of: u64) {
        (self.read, self.of) = (read, of.max(read));
    }

    /// Returns the percentage of the documents read so far. It stays below 100, since work
    /// remains after the last document.
    pub fn percent(&self) -> u8 {
        (self.read * 100).checked_div(self.of).unwrap_or(0).min(99) as u8
    }

    /// Returns the seconds until all documents are read, at the average pace so far; `None` until
    /// the pace can be estimated. The number grows while a build makes no progress.
    pub fn seconds_left(&self, now: Instant) -> Option<u64> {
        let passed_ms = now.saturating_duration_since(self.began).as_millis();
        let left = u128::from(self.of.saturating_sub(self.read));
        if self.read == 0 || passed_ms < KNOWN_AFTER_MS {
            return None;
        }
        let left_ms = passed_ms.saturating_mul(left) / u128::from(self.read);
        u64::try_from(left_ms.div_ceil(1_000)).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_build_ends_when_its_pace_has_read_the_rest() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut pace = BuildPace::begin(began);
        assert_eq!((pace.percent(), pace.seconds_left(at(60))), (0, None), "nothing was read");
        pace.record_read(100, 1_000);
        assert_eq!(pace.seconds_left(at(0)), None, "too early");
        assert_eq!((pace.percent(), pace.seconds_left(at(10))), (10, Some(90)));
        assert_eq!(pace.seconds_left(at(20)), Some(180), "it has stood still since");
        pace.record_read(600, 1_000);
        assert_eq!((pace.percent(), pace.seconds_left(at(20))), (60, Some(14)), "rounded up");
    }

    #[test]
    fn a_finished_read_is_below_100_percent() {
        let began = Instant::now();
        let mut pace = BuildPace::begin(began);
        let later = began + Duration::from_secs(5);
        // Documents came meanwhile.
        pace.record_read(1_200, 1_000);
        assert_eq!((pace.percent(), pace.seconds_left(later)), (99, Some(0)));
        pace.record_read(999, 1_000);
        assert_eq!(pace.seconds_left(later), Some(1));
    }
}
