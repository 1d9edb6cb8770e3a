//! Limits the mutations between two stability timestamps of a bucket, in two situations: a reader
//! lags, or writers are ahead of the timestamps. The limit is needed because an indexer collects
//! the mutations between two timestamps in memory, until it has all of them.
//!
//! **Readers that lag.** Only a reader that catches up uses timestamps below the horizon. It
//! reads from one timestamp to the next, and applies the mutations at each. Many of these
//! timestamps are dropped, until about [`STRIDE`] mutations are between two of them, and more if
//! there are still too many.
//!
//! **Writers that are ahead.** While no coordinator answers, no timestamp is published. Writes
//! continue up to a limit and then wait. Otherwise the next timestamp would cover more than an
//! indexer can collect.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use proto::model::assignment::VbucketSet;
use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::ids::{Epoch, Seqno, VbucketId};

use documents::mutation::Mutation;

/// The number of mutations that a lagging reader reads from one timestamp to the next: some
/// megabytes of key-versions, which cost far more than a scan of all vbuckets.
pub const STRIDE: u64 = 16 << 10;
/// The size in bytes up to which consecutive groups share an entry of [`BacklogBytes`].
const ENTRY_BYTES: usize = 64 << 10;

/// Returns the number of mutations between a cut and a later position, in one vbucket.
fn mutations_ahead(from: &Cut, (vbucket, end): (VbucketId, Position)) -> u64 {
    end.seqno.0.saturating_sub(from.get(vbucket).seqno.0)
}

/// Returns the number of mutations between a cut and a later cut.
fn mutations_between(from: &Cut, to: &Cut) -> u64 {
    to.iter().map(|end| mutations_ahead(from, end)).sum()
}

/// Drops timestamps below the horizon that no reader needs, and more timestamps if there are more
/// than `epochs_max`. Runs at each new timestamp, and skips the timestamps that an earlier run
/// has kept.
pub fn thin_timestamps(epochs: &mut VecDeque<EpochMark>, horizon: Epoch, epochs_max: usize) {
    let below = epochs.partition_point(|mark| mark.epoch < horizon);
    let (mut at, mut kept) = (below, 0);
    while at > 1 && at < epochs.len() && kept < 2 {
        at -= 1;
        if mutations_between(&epochs[at - 1].cut, &epochs[at + 1].cut) < STRIDE {
            epochs.remove(at);
            kept = 0;
        } else {
            kept += 1;
        }
    }
    while epochs.len() > epochs_max {
        let below = epochs.partition_point(|mark| mark.epoch < horizon);
        if below < 2 {
            epochs.pop_front();
            continue;
        }
        let mut n = 0;
        epochs.retain(|_| {
            n += 1;
            n > below || n % 2 == 0
        });
    }
}

/// Returns the timestamp up to which a reader of some vbuckets reads next: the last one within
/// [`STRIDE`] mutations, or the next one if that is farther. Mutations of other vbuckets are not
/// counted, because the reader does not read them.
pub fn next_goal<'a>(
    epochs: &'a VecDeque<EpochMark>,
    vbuckets: &VbucketSet,
    at: &Cut,
) -> Option<&'a EpochMark> {
    let distance = |mark: &EpochMark| -> u64 {
        let here = mark.cut.iter().filter(|(vbucket, _)| vbuckets.contains(*vbucket));
        here.map(|end| mutations_ahead(at, end)).sum()
    };
    let reached = epochs.partition_point(|mark| distance(mark) == 0);
    let near = epochs.partition_point(|mark| distance(mark) <= STRIDE);
    epochs.get(near.saturating_sub(1).max(reached))
}

/// For each vbucket that a group changes, the last seqno of the group, and the bytes of its
/// mutations.
pub type GroupEnds = BTreeMap<VbucketId, (Seqno, usize)>;

/// Returns the last seqno and the bytes of a group's mutations in each vbucket.
pub fn ends_of(mutations: &[Arc<Mutation>]) -> GroupEnds {
    let mut ends = GroupEnds::new();
    // The mutations of a large commit are sorted by vbucket.
    for of_vbucket in mutations.chunk_by(|one, next| one.vbucket == next.vbucket) {
        let [.., last] = of_vbucket else { continue };
        let end = ends.entry(last.vbucket).or_default();
        let bytes = of_vbucket.iter().map(|mutation| mutation.bytes()).sum::<usize>();
        *end = (last.seqno, end.1 + bytes);
    }
    ends
}

/// Counts the bytes of a bucket's mutations that no stability timestamp covers yet.
#[derive(Default)]
pub struct BacklogBytes {
    /// The logged groups that are not covered, each entry with its bytes; an entry may combine
    /// several groups. A timestamp may cover a group in some vbuckets and not in others, for
    /// example while a producer's commit blocks some.
    groups: VecDeque<(GroupEnds, usize)>,
    bytes: usize,
}

impl BacklogBytes {
    /// Adds a logged group.
    pub fn add(&mut self, group: GroupEnds) {
        let bytes = group.values().map(|(_, bytes)| bytes).sum();
        self.bytes += bytes;
        match self.groups.back_mut() {
            Some((ends, before)) if *before < ENTRY_BYTES => {
                for (vbucket, (seqno, bytes)) in group {
                    let end = ends.entry(vbucket).or_default();
                    *end = (seqno, end.1 + bytes);
                }
                *before += bytes;
            }
            _ if group.is_empty() => {}
            _ => self.groups.push_back((group, bytes)),
        }
    }

    /// Stops counting the mutations that a new timestamp covers, and those that are not in the
    /// history any more because they are after its end `durable`.
    pub fn publish(&mut self, cut: &Cut, durable: &Cut) {
        let waits = |vbucket: VbucketId, seqno: Seqno| {
            cut.get(vbucket).seqno < seqno && seqno <= durable.get(vbucket).seqno
        };
        for (ends, bytes) in &mut self.groups {
            ends.retain(|vbucket, (seqno, _)| waits(*vbucket, *seqno));
            *bytes = ends.values().map(|(_, bytes)| bytes).sum();
        }
        self.groups.retain(|(ends, _)| !ends.is_empty());
        self.bytes = self.groups.iter().map(|(_, bytes)| bytes).sum();
    }

    /// Returns the bytes of mutations that no timestamp covers yet.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use proto::model::ids::{BucketId, Vbuuid};

    use super::*;

    fn cut(seqnos: [u64; 2]) -> Cut {
        let position = |seqno| Position { vbuuid: Vbuuid(1), seqno: Seqno(seqno) };
        Cut::from_positions(seqnos.map(position).to_vec())
    }

    fn mark(epoch: u64, seqnos: [u64; 2]) -> EpochMark {
        let (bucket, parent) = (BucketId(1), Epoch(epoch - 1));
        let cut = Arc::new(cut(seqnos));
        EpochMark {
            bucket,
            epoch: Epoch(epoch),
            parent,
            cut,
            horizon: Epoch(0),
            points: Arc::default(),
        }
    }

    fn numbers(epochs: &VecDeque<EpochMark>) -> Vec<u64> {
        epochs.iter().map(|mark| mark.epoch.0).collect()
    }

    #[test]
    fn timestamps_below_the_horizon_are_thinned_to_about_one_per_stride() {
        let mut epochs = VecDeque::new();
        let step = STRIDE / 64;
        for n in 1..=2_000 {
            epochs.push_back(mark(n, [n * step, n * step]));
            // The horizon does not move for a while, then jumps.
            thin_timestamps(&mut epochs, Epoch((n / 300 * 300).saturating_sub(10)), 100_000);
        }
        let below = epochs.partition_point(|mark| mark.epoch < Epoch(1_790));
        assert!((50..130).contains(&below), "{below} of 1,789 are kept below the horizon");
        for (one, next) in epochs.iter().zip(epochs.iter().skip(1)) {
            assert!(
                mutations_between(&one.cut, &next.cut) <= STRIDE,
                "{} to {}",
                one.epoch,
                next.epoch
            );
        }
        assert_eq!(numbers(&epochs)[below..], (1_790..=2_000).collect::<Vec<_>>(), "all above it");
    }

    #[test]
    fn old_surplus_timestamps_are_thinned_and_new_ones_stay() {
        let mut epochs: VecDeque<_> = (1..=100).map(|n| mark(n, [n * STRIDE, 0])).collect();
        thin_timestamps(&mut epochs, Epoch(90), 60);
        let expected = (1..=44).map(|n| n * 2).chain(90..=100);
        assert_eq!(numbers(&epochs), expected.collect::<Vec<_>>());
        thin_timestamps(&mut epochs, Epoch(0), 10);
        assert_eq!(numbers(&epochs), (91..=100).collect::<Vec<_>>());
    }

    #[test]
    fn a_reader_reads_to_the_newest_timestamp_within_a_stride_or_to_the_next() {
        let far = STRIDE * 3;
        let epochs = [mark(1, [10, 0]), mark(2, [10, 20]), mark(3, [10, far]), mark(4, [11, far])];
        let epochs = VecDeque::from(epochs);
        let all = VbucketSet::all(2);
        let goal = |at| next_goal(&epochs, &all, &cut(at)).map(|mark| mark.epoch.0);
        assert_eq!(goal([0, 0]), Some(2), "both that are near at once");
        assert_eq!(goal([10, 20]), Some(3), "however far");
        assert_eq!(goal([10, far - 1]), Some(4));
        assert_eq!(goal([11, far]), None);
        assert_eq!(goal([50, far + 1]), None);
    }

    #[test]
    fn a_reader_of_some_vbuckets_ignores_the_distance_in_others() {
        let epochs: VecDeque<_> =
            (1..=4).map(|n| mark(n, [n * STRIDE, n * 100 * STRIDE])).collect();
        let first = [VbucketId(0)].into_iter().collect();
        // A stream begins at zero in the vbuckets that it does not carry.
        let goal = |at| next_goal(&epochs, &first, &cut([at, 0])).map(|mark| mark.epoch.0);
        assert_eq!(goal(0), Some(1));
        assert_eq!(goal(STRIDE), Some(2), "the first is reached");
        assert_eq!(goal(4 * STRIDE - 1), Some(4));
        assert_eq!(goal(4 * STRIDE), None, "nothing is ahead of it");
    }

    #[test]
    fn covered_and_lost_mutations_are_no_longer_unpublished() {
        let mut unpublished = BacklogBytes::default();
        for n in 1..=4 {
            unpublished.add([(VbucketId(0), (Seqno(n), ENTRY_BYTES))].into());
        }
        unpublished.publish(&cut([2, 0]), &cut([4, 0]));
        assert_eq!(unpublished.bytes(), 2 * ENTRY_BYTES);
        unpublished.publish(&cut([2, 0]), &cut([2, 0]));
        assert_eq!(unpublished.bytes(), 0, "the history ends at 2 again");
    }

    /// An incomplete commit in a vbucket blocks the publication of the vbucket's mutations, while
    /// other vbuckets of its groups are published.
    #[test]
    fn uncovered_vbucket_of_a_group_still_counts() {
        let mut unpublished = BacklogBytes::default();
        for n in 1..=3 {
            let end = (Seqno(n), ENTRY_BYTES / 4);
            unpublished.add([(VbucketId(0), end), (VbucketId(1), end)].into());
        }
        unpublished.publish(&cut([0, 3]), &cut([3, 3]));
        assert_eq!(unpublished.bytes(), 3 * ENTRY_BYTES / 4);
        unpublished.publish(&cut([3, 3]), &cut([3, 3]));
        assert_eq!(unpublished.bytes(), 0);
    }
}
