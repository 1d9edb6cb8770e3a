//! Computes the horizon of a bucket: no scan may read an epoch below it, and compaction may drop
//! versions that only older epochs need.
//!
//! The horizon follows the newest epoch at a distance of [`KEEP_WHOLE_MS`]. The lease of a
//! running scan holds the horizon back, but not for ever. The lease of a moment holds back the
//! horizon of each bucket at the epoch that is in force at that moment. An index holds the
//! horizon back while all copies of one of its slices lag, because the index cannot serve a newer
//! epoch then. The horizon never moves back. A new leader does not know the leases, so it leaves
//! the horizon unchanged until every router had time to renew its leases.

use std::collections::VecDeque;

use proto::model::ids::Epoch;
pub use proto::rpc::api::LEASE_AGE_MS_MAX;

use crate::state::EpochHistory;

/// The time, in ms, for which every epoch stays readable after its publication, so that a new
/// scan has time to get a lease.
pub const KEEP_WHOLE_MS: u64 = 5_000;
/// The time, in ms, after which a lease expires unless it is renewed.
pub const LEASE_MS: u64 = 10_000;

/// The times at which the leader first saw each epoch of a bucket. The times are from a clock
/// that only grows: a jump of the time of day must not expire a lease. Epochs from before the
/// term count as seen at the beginning of the term.
#[derive(Debug, Default)]
pub struct PublicationTimes(VecDeque<(Epoch, u64)>);

impl PublicationTimes {
    /// Records the newest published epoch.
    pub fn observe(&mut self, history: &EpochHistory, now_ms: u64) {
        let last = history.last();
        if self.0.back().is_none_or(|(newest, _)| *newest < last.epoch) {
            self.0.push_back((last.epoch, now_ms));
        }
        // One epoch at or below the horizon stays: it was the newest until the next epoch was published.
        while self.0.get(1).is_some_and(|(epoch, _)| *epoch <= last.horizon) {
            self.0.pop_front();
        }
    }

    /// Returns the newest epoch that was published at or before the time `at_ms`; `None` if the
    /// leader has seen none.
    pub fn at_time(&self, at_ms: u64) -> Option<Epoch> {
        let after = self.0.partition_point(|(_, seen_ms)| *seen_ms <= at_ms);
        after.checked_sub(1).map(|at| self.0[at].0)
    }

    /// Returns the time at which the next epoch followed the given one; `None` for the newest
    /// epoch.
    fn superseded_ms(&self, epoch: Epoch) -> Option<u64> {
        self.0.iter().find(|(seen, _)| *seen > epoch).map(|(_, seen_ms)| *seen_ms)
    }
}

/// Returns the next horizon of a bucket. `leases` are the epochs that running scans read.
/// `moments` are the epochs in force at leased moments, ascending. `servable` has, for each
/// index, the newest epoch at which all of its slices can be read.
pub fn next_horizon(
    history: &EpochHistory,
    published: &PublicationTimes,
    now_ms: u64,
    leases: impl Iterator<Item = Epoch>,
    mut moments: impl Iterator<Item = Epoch>,
    servable: impl Iterator<Item = Epoch>,
) -> Epoch {
    let reached = history.last().horizon;
    let past = published.at_time(now_ms.saturating_sub(KEEP_WHOLE_MS)).unwrap_or(reached);
    // A rollback may have removed that epoch.
    let present = history.newest_until(past);
    let holds = |epoch: &Epoch| {
        // A lease below the horizon is void: its versions may be gone.
        let superseded = published.superseded_ms(*epoch);
        *epoch >= reached
            && superseded.is_none_or(|at_ms| now_ms.saturating_sub(at_ms) <= LEASE_AGE_MS_MAX)
    };
    let of_moments = moments.find(holds);
    let bound = leases.filter(holds).chain(of_moments).chain(servable).min().unwrap_or(present);
    present.min(bound).max(reached)
}

#[cfg(test)]
mod tests {
    use std::iter::{empty, once};

    use proto::model::cut::Position;
    use proto::model::ids::{BucketId, Seqno, VbucketId, Vbuuid};
    use proto::rpc::command::{Command, PromoteEpochs, Promotion};

    use super::*;
    use crate::state::Decisions;
    use crate::state::StateContext;
    use crate::state::tests::with_bucket;

    /// A state, and the times at which the leader first saw its epochs.
    struct History(StateContext, PublicationTimes);

    fn horizon(
        History(state, published): &History,
        now_ms: u64,
        leases: impl Iterator<Item = Epoch>,
        servable: impl Iterator<Item = Epoch>,
    ) -> Epoch {
        super::next_horizon(of(state), published, now_ms, leases, empty(), servable)
    }

    fn promote(history: &mut History, seqno: u64, now_ms: u64, horizon: Epoch) {
        let History(state, published) = history;
        let position = Position { vbuuid: Vbuuid(7), seqno: Seqno(seqno) };
        let changes = vec![(VbucketId(0), position)];
        let promotion = Promotion { bucket: BucketId(1), changes, horizon };
        let command = Command::PromoteEpochs(PromoteEpochs {
            promotions: vec![promotion],
            joined: Vec::new(),
        });
        // The time of day has no influence.
        let unix_ms = now_ms * 1_000_003 % 777;
        state.apply(100 + seqno, &Decisions::at(unix_ms), &command.into());
        published.observe(of(state), now_ms);
    }

    /// Returns ten seconds of history: epoch n + 1 at second n; the bucket and epoch 1 at second 0.
    fn history() -> History {
        let mut state = History(with_bucket(), PublicationTimes::default());
        state.1.observe(of(&state.0), 0);
        (1..=10).for_each(|n| promote(&mut state, n, n * 1000, Epoch(1)));
        state
    }

    fn of(state: &StateContext) -> &EpochHistory {
        state.bucket(BucketId(1)).unwrap().epochs
    }

    #[test]
    fn the_horizon_follows_the_newest_epoch_at_a_distance() {
        let state = history();
        assert_eq!(horizon(&state, 10_000, empty(), empty()), Epoch(6));
        assert_eq!(horizon(&state, 100, empty(), empty()), Epoch(1), "not before the first");
        assert_eq!(horizon(&state, 1_000_000, empty(), empty()), Epoch(11));
    }

    #[test]
    fn leases_and_slices_that_are_behind_hold_the_horizon_back() {
        let state = history();
        assert_eq!(horizon(&state, 10_000, once(Epoch(3)), empty()), Epoch(3));
        assert_eq!(horizon(&state, 10_000, once(Epoch(9)), empty()), Epoch(6));
        assert_eq!(horizon(&state, 10_000, empty(), once(Epoch(2))), Epoch(2));
        // Epoch 4 was published at second 3, which superseded epoch 3.
        let at_last = 3_000 + LEASE_AGE_MS_MAX;
        assert_eq!(horizon(&state, at_last, once(Epoch(3)), empty()), Epoch(3));
        assert_eq!(horizon(&state, at_last + 1, once(Epoch(3)), empty()), Epoch(11));
    }

    #[test]
    fn the_oldest_leased_moment_that_still_counts_holds_the_horizon() {
        let History(state, published) = &history();
        let of_moments = |now_ms, epochs: &[u64]| {
            let moments = epochs.iter().copied().map(Epoch);
            super::next_horizon(of(state), published, now_ms, empty(), moments, empty())
        };
        assert_eq!(of_moments(10_000, &[3, 5]), Epoch(3));
        assert_eq!(of_moments(10_000, &[8, 9]), Epoch(6), "those are younger than the distance");
        let at_last = 3_000 + LEASE_AGE_MS_MAX;
        assert_eq!(of_moments(at_last, &[3, 5]), Epoch(3));
        assert_eq!(of_moments(at_last + 1, &[3, 5]), Epoch(5), "the older one has lapsed");
    }

    #[test]
    fn a_long_idle_bucket_keeps_the_epoch_that_a_new_scan_reads() {
        let mut state = history();
        let morning = 10_000 + 3 * LEASE_AGE_MS_MAX;
        assert_eq!(horizon(&state, morning, once(Epoch(11)), empty()), Epoch(11));
        promote(&mut state, 11, morning, Epoch(11));
        let later = morning + 2 * KEEP_WHOLE_MS;
        promote(&mut state, 12, later, Epoch(11));
        let now = later + 2 * KEEP_WHOLE_MS;
        assert_eq!(horizon(&state, now, empty(), empty()), Epoch(13));
        assert_eq!(horizon(&state, now, once(Epoch(11)), empty()), Epoch(11));
    }

    #[test]
    fn the_horizon_never_goes_back_and_older_epochs_are_dropped() {
        let mut state = history();
        promote(&mut state, 11, 11_000, Epoch(6));
        assert_eq!(horizon(&state, 11_000, empty(), once(Epoch(2))), Epoch(6));
        assert_eq!(horizon(&state, 11_000, once(Epoch(6)), empty()), Epoch(6));
        let void = once(Epoch(2));
        assert_eq!(horizon(&state, 11_000, void, empty()), Epoch(7), "below the horizon");
        let kept: Vec<u64> = of(&state.0).after(Epoch(0)).map(|mark| mark.epoch.0).collect();
        assert_eq!(kept, (6..=12).collect::<Vec<_>>());
    }
}
