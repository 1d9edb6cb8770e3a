//! The age and the origin of a router's information about the cluster.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::env::Clock;
use proto::lock::lock;
use tokio::sync::watch;
use tokio::time::Instant;

/// The age of a router's information about the cluster, and its origin: a coordinator or the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Knowledge {
    /// Milliseconds since the last answer of a coordinator; `None` before the first catalog. For a
    /// catalog from disk, the time since the last answer that the earlier process received.
    pub age_ms: Option<u64>,
    /// True if the catalog comes from the router's data directory, because no coordinator has sent
    /// one since the start.
    pub is_from_disk: bool,
}

/// The times of the coordinators' answers.
#[derive(Clone, Default)]
pub(crate) struct AnswerTimes {
    /// The time of the last answer of the coordinators' leader to this process.
    answered: watch::Sender<Option<Instant>>,
    /// The wall-clock time of the last answer that an earlier process received; `None` once its
    /// stored catalog is no longer in use.
    kept_unix_ms: Arc<Mutex<Option<u64>>>,
}

impl AnswerTimes {
    /// Returns the sender that the heartbeat task sets at each answer of the leader.
    pub fn answered(&self) -> watch::Sender<Option<Instant>> {
        self.answered.clone()
    }

    /// Records that the catalog comes from the disk, and when the earlier process received its
    /// last answer.
    pub fn begin_from_disk(&self, heard_unix_ms: u64) {
        *lock(&self.kept_unix_ms) = Some(heard_unix_ms);
    }

    /// Records that a coordinator has sent a catalog.
    pub fn note_catalog(&self) {
        self.answered.send_replace(Some(Instant::now()));
        *lock(&self.kept_unix_ms) = None;
    }

    /// Returns true until a coordinator's catalog replaces the stored one.
    pub fn is_from_disk(&self) -> bool {
        lock(&self.kept_unix_ms).is_some()
    }

    /// Returns the time of the coordinators' last answer; `None` if this process has received
    /// none.
    pub fn last_answer(&self) -> Option<Instant> {
        *self.answered.borrow()
    }

    /// Returns the wall-clock time of the coordinators' last answer; `None` if this process has
    /// received none.
    pub fn heard_unix_ms(&self, clock: &dyn Clock) -> Option<u64> {
        let since = self.last_answer().map(|answered| answered.elapsed());
        since.map(|since| clock.unix_ms().saturating_sub(whole_ms(since)))
    }

    /// Returns the present age and origin of the information.
    pub fn knowledge(&self, clock: &dyn Clock) -> Knowledge {
        let kept = *lock(&self.kept_unix_ms);
        // An answer to a heartbeat makes the catalog of the disk no younger.
        let age_ms = match kept {
            Some(heard_unix_ms) => Some(clock.unix_ms().saturating_sub(heard_unix_ms)),
            None => self.last_answer().map(|answered| whole_ms(answered.elapsed())),
        };
        Knowledge { age_ms, is_from_disk: kept.is_some() }
    }
}

/// Returns a duration in complete milliseconds.
fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proto::env::sim::SimClock;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_age_counts_from_the_last_answer_also_over_a_restart() {
        let (heard, clock) = (AnswerTimes::default(), SimClock::new(60_000));
        let knowledge = |heard: &AnswerTimes| {
            let known = heard.knowledge(&clock);
            (known.age_ms, known.is_from_disk)
        };
        assert_eq!(knowledge(&heard), (None, false));
        heard.begin_from_disk(47_000);
        assert_eq!(knowledge(&heard), (Some(13_000), true));
        heard.answered().send_replace(Some(Instant::now()));
        assert_eq!(
            knowledge(&heard),
            (Some(13_000), true),
            "the catalog is that of the disk still"
        );
        heard.note_catalog();
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(knowledge(&heard), (Some(2_000), false));
        assert_eq!(heard.heard_unix_ms(&clock), Some(58_000));
        clock.set(1_000);
        assert_eq!(knowledge(&heard), (Some(2_000), false), "the time of day jumps as it likes");
    }
}
