//! Parallel requests to another copy when a node is slow.
//!
//! A shard scan requests its first batch from one node. If no answer arrives within a certain
//! time, the *stage*, the next copy is queried in parallel, and the first good answer wins. The
//! same happens, once for each node, to a batch after the first: the other copy begins after the
//! last row (`scan/shard.rs`). A stage is three times the recent 95th percentile of the durations
//! of such batches, and at least 10 ms, so without load hardly any scan exceeds it.
//!
//! - *Budget.* Each scan of slices with several copies adds a twentieth of a parallel request to a
//!   budget, which has a maximum. So at most 5 % of such scans send a second request. That also
//!   holds if all nodes are slow, because more requests would make them slower. Half of the
//!   maximum budget is reserved for first batches.
//! - *Avoidance.* A node that has missed three stages in a row is queried last: its slices are read
//!   from other ready copies, which needs no budget. From time to time a scan is sent to the node
//!   anyway, as a *probe*; after a stage another copy is queried in parallel, without budget. An
//!   answer within a stage ends the avoidance, also an answer to a scan without another copy.
//! - *Measurement.* Only a node that has applied the scan's epoch can count as slow: any other
//!   node must wait for the epoch, and further copies may have to wait too. Every duration enters
//!   the percentile, also one above the stage, so that the stage adapts. A duration during which
//!   the reader was not polled is ignored.
//!
//! If no other node has all slices of an avoided node, an unordered scan reads them from several
//! nodes, by streams.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use proto::lock::lock;
use proto::model::ids::NodeId;
use tokio::time::Instant;

/// The shortest stage (time until another copy is queried). A shorter one could be exceeded
/// because the machine is busy, so that a node would look slow.
pub(crate) const STAGE_MIN: Duration = Duration::from_millis(10);
/// A stage is this multiple of the 95th percentile of recent durations.
const STAGE_FACTOR: u64 = 3;
/// The number of answers after which the percentile is computed again.
const WINDOW: u32 = 256;
/// The budget that each scan adds, in hundredths of a parallel request.
const EARNED: i64 = 5;
/// The budget that a parallel request costs, in hundredths.
const COST: i64 = 100;
/// The maximum of the budget: enough for the scans in progress when a node stops.
const SAVED_MAX: i64 = 64 * COST;
/// Number of consecutive late answers after which a node is avoided.
const MISSED_MAX: u32 = 3;
/// Time between two probes of an avoided node.
const PROBE_EVERY: Duration = Duration::from_millis(500);
/// Time after which a late answer is forgotten.
const MISSED_FOR: Duration = Duration::from_secs(10);
/// Number of buckets of the histogram: four for each power of two of microseconds, up to a minute.
const BUCKETS: usize = 4 * 26;

/// Kinds of batches, whose usual durations differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Batches {
    /// First batches of rows.
    Rows,
    /// First batches of aggregates.
    Aggregates,
    /// Batches after the first.
    Rest,
}

/// The measured durations of batches, the slow nodes, and the budget for parallel requests. Shared
/// by all shard scans of a router.
#[derive(Default)]
pub(crate) struct Hedging {
    rows: DurationHistogram,
    /// Durations of first batches of aggregates. Such a batch contains the result of a whole
    /// shard, so it takes longer.
    aggregates: DurationHistogram,
    /// Durations of batches after the first, which a node may have ready.
    rest: DurationHistogram,
    saved: AtomicI64,
    missed: DashMap<NodeId, MissedStages>,
    /// The number of nodes in `missed`. The number is mostly zero, and every scan reads it before
    /// it locks the map.
    slow: AtomicUsize,
    /// Number of parallel requests that were sent.
    begun: AtomicU64,
    /// Number of parallel requests that were answered before the first request.
    won: AtomicU64,
    /// Number of parallel requests that were not sent for lack of budget.
    refused: AtomicU64,
}

/// Counters of parallel requests since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HedgingStatus {
    /// Number of parallel requests that were sent.
    pub begun: u64,
    /// Number of parallel requests that were answered before the first request.
    pub won: u64,
    /// Number of parallel requests that were not sent for lack of budget.
    pub refused: u64,
}

/// The number of consecutive answers of a node that came later than a stage.
#[derive(Default)]
struct MissedStages {
    count: u32,
    /// The time of the last late answer that was counted.
    last: Option<Instant>,
    probed: Option<Instant>,
}

impl MissedStages {
    fn is_probe_due(&self, now: Instant) -> bool {
        self.probed.is_none_or(|last| now >= last + PROBE_EVERY)
    }
}

impl Hedging {
    /// Returns the measured durations of a kind of batches.
    fn times(&self, of: Batches) -> &DurationHistogram {
        match of {
            Batches::Rows => &self.rows,
            Batches::Aggregates => &self.aggregates,
            Batches::Rest => &self.rest,
        }
    }

    /// Returns the stage for a kind of batches: the time after which another copy is queried in
    /// parallel.
    pub fn stage(&self, of: Batches) -> Duration {
        STAGE_MIN.max(Duration::from_micros(self.times(of).stage_us()))
    }

    /// Adds a twentieth of a parallel request to the budget. Called for each scan of slices with
    /// several copies.
    pub fn earn_budget(&self) {
        if self.saved.load(Ordering::Relaxed) < SAVED_MAX {
            self.saved.fetch_add(EARNED, Ordering::Relaxed);
        }
    }

    /// Takes a parallel request for a first batch from the budget; returns false if the budget is
    /// used up.
    pub fn spend_budget(&self) -> bool {
        let less = |saved: i64| (saved >= COST).then_some(saved - COST);
        let spent = self.saved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
        let counter = if spent { &self.begun } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
        spent
    }

    /// Takes a parallel request for a later batch from the budget. Returns false if less than half
    /// of the maximum budget would remain for first batches.
    pub fn spend_budget_for_rest(&self) -> bool {
        let less = |saved: i64| (saved >= COST + SAVED_MAX / 2).then_some(saved - COST);
        let spent = self.saved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
        self.begun.fetch_add(u64::from(spent), Ordering::Relaxed);
        spent
    }

    /// Counts a parallel request that was answered before the first request.
    pub fn note_won(&self) {
        self.won.fetch_add(1, Ordering::Relaxed);
    }

    /// Records the duration of a batch.
    pub fn note_batch(&self, of: Batches, took: Duration) {
        self.times(of).note(took);
    }

    /// Records the duration of a node's first batch, or of a wait without an answer. If the
    /// duration is within a stage, the node is no longer avoided.
    pub fn note_time(&self, node: NodeId, of: Batches, took: Duration) {
        self.times(of).note(took);
        let is_any_slow = self.slow.load(Ordering::Relaxed) > 0;
        if is_any_slow && took <= self.stage(of) && self.missed.remove(&node).is_some() {
            self.slow.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Records that a node has not answered a call from the time `began` within a stage. Of
    /// several concurrent calls only one is counted.
    pub fn note_missed(&self, node: NodeId, began: Instant) {
        let mut missed = self.missed.entry(node).or_insert_with(|| {
            self.slow.fetch_add(1, Ordering::Relaxed);
            MissedStages::default()
        });
        if missed.last.is_some_and(|last| began < last) {
            return;
        }
        let now = Instant::now();
        if missed.last.is_some_and(|last| now > last + MISSED_FOR) && missed.count < MISSED_MAX {
            missed.count = 0;
        }
        missed.count = missed.count.saturating_add(1);
        missed.last = Some(now);
        if missed.count == MISSED_MAX {
            // The first probe comes after a while.
            missed.probed = Some(now);
        }
    }

    /// Returns true if a node is avoided, that is, queried last, because it is slow.
    pub fn is_avoided(&self, node: NodeId) -> bool {
        self.slow.load(Ordering::Relaxed) > 0
            && self.missed.get(&node).is_some_and(|missed| missed.count >= MISSED_MAX)
    }

    /// Returns the nodes that are avoided because they are slow.
    pub fn avoided(&self) -> Vec<NodeId> {
        if self.slow.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let avoided = self.missed.iter().filter(|missed| missed.count >= MISSED_MAX);
        let mut nodes: Vec<NodeId> = avoided.map(|missed| *missed.key()).collect();
        nodes.sort();
        nodes
    }

    /// Returns true if the next scan should query an avoided node as a probe.
    pub fn is_probe_due(&self, node: NodeId, now: Instant) -> bool {
        self.missed.get(&node).is_some_and(|missed| missed.is_probe_due(now))
    }

    /// Reserves the next probe of a node for the caller, and returns true, if a probe is due. So
    /// only one of several concurrent scans probes the node.
    pub fn claim_probe(&self, node: NodeId, now: Instant) -> bool {
        let Some(mut missed) = self.missed.get_mut(&node) else { return false };
        let is_due = missed.is_probe_due(now);
        if is_due {
            missed.probed = Some(now);
            self.begun.fetch_add(1, Ordering::Relaxed);
        }
        is_due
    }

    /// Forgets nodes that are not in the catalog.
    pub fn retain(&self, is_known: impl Fn(NodeId) -> bool) {
        self.missed.retain(|node, _| {
            let is_known = is_known(*node);
            if !is_known {
                self.slow.fetch_sub(1, Ordering::Relaxed);
            }
            is_known
        });
    }

    /// Returns the counters of parallel requests.
    pub fn status(&self) -> HedgingStatus {
        let [begun, won, refused] =
            [&self.begun, &self.won, &self.refused].map(|count| count.load(Ordering::Relaxed));
        HedgingStatus { begun, won, refused }
    }
}

/// A histogram of recent durations, in logarithmic buckets. Each window of answers counts half as
/// much as the window after it.
struct DurationHistogram {
    counts: [AtomicU32; BUCKETS],
    noted: AtomicU32,
    stage_us: AtomicU64,
    /// Locked while the percentile is recomputed.
    window: Mutex<()>,
}

impl Default for DurationHistogram {
    fn default() -> Self {
        let counts = std::array::from_fn(|_| AtomicU32::new(0));
        let (noted, stage_us) = (AtomicU32::new(0), AtomicU64::new(0));
        Self { counts, noted, stage_us, window: Mutex::default() }
    }
}

impl DurationHistogram {
    /// Returns three times the percentile, in microseconds.
    fn stage_us(&self) -> u64 {
        self.stage_us.load(Ordering::Relaxed)
    }

    /// Adds a duration.
    fn note(&self, took: Duration) {
        let us = took.as_micros().min(u128::from(u32::MAX)) as u64;
        self.counts[bucket_of(us)].fetch_add(1, Ordering::Relaxed);
        if (self.noted.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(WINDOW) {
            self.update_percentile();
        }
    }

    /// Computes the percentile again, and halves all counts.
    fn update_percentile(&self) {
        let _one_at_a_time = lock(&self.window);
        let counts: Vec<u32> = self.counts.iter().map(|c| c.load(Ordering::Relaxed)).collect();
        let total: u32 = counts.iter().sum();
        let mut above = total / 20;
        let percentile = counts.iter().rposition(|count| match above.checked_sub(*count) {
            Some(left) => {
                above = left;
                false
            }
            None => true,
        });
        let us = percentile.map_or(0, |bucket| end_of(bucket) * STAGE_FACTOR);
        self.stage_us.store(us, Ordering::Relaxed);
        for (count, seen) in self.counts.iter().zip(counts) {
            count.fetch_sub(seen.div_ceil(2), Ordering::Relaxed);
        }
    }
}

/// Returns the number of the bucket for a duration in microseconds.
fn bucket_of(us: u64) -> usize {
    let us = us.max(4);
    let power = us.ilog2();
    let quarter = us >> (power - 2) & 3;
    (4 * (power as usize - 2) + quarter as usize).min(BUCKETS - 1)
}

/// Returns the exclusive upper bound of a bucket, in microseconds.
fn end_of(bucket: usize) -> u64 {
    let (power, quarter) = (bucket / 4, bucket as u64 % 4);
    (5 + quarter) << power
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(1);
    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn stage_follows_percentile() {
        let hedging = Hedging::default();
        assert_eq!(hedging.stage(Batches::Rows), STAGE_MIN, "nothing is known");
        let note = |ms: u32, count: u32| {
            (0..count).for_each(|_| hedging.note_time(NODE, Batches::Rows, ms * MS));
            hedging.stage(Batches::Rows)
        };
        assert_eq!(note(1, WINDOW), STAGE_MIN);
        // One in ten is slow.
        let mut stage = Duration::ZERO;
        for _ in 0..WINDOW {
            note(1, 9);
            stage = note(20, 1);
        }
        assert!((60 * MS..75 * MS).contains(&stage), "{stage:?}");
        assert_eq!(note(1, 20 * WINDOW), STAGE_MIN, "it forgets");
        assert_eq!(hedging.stage(Batches::Aggregates), STAGE_MIN, "aggregates are counted apart");
    }

    #[test]
    fn each_duration_is_in_its_bucket() {
        for us in [0, 1, 4, 5, 7, 8, 999, 1_000, 1_023, 1_024, 30_000_000] {
            let end = end_of(bucket_of(us));
            assert!(us < end && end <= us.max(4) * 5 / 4 + 1, "{us} {end}");
        }
        assert_eq!(bucket_of(u64::from(u32::MAX)), BUCKETS - 1);
    }

    #[test]
    fn one_scan_in_twenty_earns_a_parallel_request_and_some_are_saved_up() {
        let hedging = Hedging::default();
        assert!(!hedging.spend_budget(), "nothing is earned yet");
        (0..20).for_each(|_| hedging.earn_budget());
        assert!(hedging.spend_budget() && !hedging.spend_budget());
        (0..100_000).for_each(|_| hedging.earn_budget());
        let spent = (0..1_000).filter(|_| hedging.spend_budget()).count();
        assert_eq!(spent, (SAVED_MAX / COST) as usize);
        let HedgingStatus { begun, won, refused } = hedging.status();
        assert_eq!((begun, won, refused), (1 + spent as u64, 0, 1_000 - spent as u64 + 2));
    }

    #[test]
    fn later_batches_leave_half() {
        let hedging = Hedging::default();
        (0..100_000).for_each(|_| hedging.earn_budget());
        let half = (SAVED_MAX / 2 / COST) as usize;
        assert_eq!((0..1_000).filter(|_| hedging.spend_budget_for_rest()).count(), half);
        assert_eq!((0..1_000).filter(|_| hedging.spend_budget()).count(), half);
    }

    #[test]
    fn a_node_is_avoided_after_three_missed_stages_until_it_answers_a_probe() {
        let (hedging, now) = (Hedging::default(), Instant::now());
        let miss = || hedging.note_missed(NODE, Instant::now());
        miss();
        miss();
        hedging.note_time(NODE, Batches::Rows, MS);
        (0..2).for_each(|_| miss());
        assert!(!hedging.is_avoided(NODE), "an answer between begins anew");
        (0..9).for_each(|_| hedging.note_missed(NODE, now));
        assert!(!hedging.is_avoided(NODE), "calls that are under way together count once");
        miss();
        assert!(hedging.is_avoided(NODE) && !hedging.is_avoided(NodeId(2)));
        assert_eq!(hedging.avoided(), [NODE]);
        let first = Instant::now() + PROBE_EVERY;
        assert!(!hedging.is_probe_due(NODE, first - 200 * MS), "it was slow a moment ago");
        assert!(hedging.is_probe_due(NODE, first) && hedging.is_probe_due(NODE, first));
        assert!(hedging.claim_probe(NODE, first) && !hedging.claim_probe(NODE, first));
        assert!(hedging.claim_probe(NODE, first + PROBE_EVERY));
        hedging.note_time(NODE, Batches::Rows, 1_000 * MS);
        assert!(hedging.is_avoided(NODE), "a late answer is none");
        hedging.note_time(NODE, Batches::Rows, MS);
        assert!(!hedging.is_avoided(NODE));
        (0..3).for_each(|_| miss());
        hedging.retain(|_| false);
        assert!(hedging.avoided().is_empty());
    }
}
