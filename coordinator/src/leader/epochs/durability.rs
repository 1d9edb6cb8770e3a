//! Computes the newest epoch of a bucket that is durable on all copies of its indexes.
//!
//! An indexer that restarts continues after its last durable epoch, so no indexer requests the
//! mutations up to the computed epoch again. A source that keeps its mutations until they are
//! confirmed can drop them up to that epoch. The last report of a silent node still counts, so
//! the node holds the epoch back until it is removed.
//!
//! The answer to SYNC contains the epoch, and the projector passes it to `Source::confirm`.

use std::collections::BTreeSet;

use proto::model::bucket::BucketInfo;
use proto::model::ids::{BucketId, Epoch, NodeId};
use proto::model::index::IndexState;

use crate::leader::nodes::heartbeats::Heartbeats;
use crate::state::StateContext;

/// Returns the newest epoch that is durable on all copies of the bucket's maintained indexes,
/// including indexes that are being built. Returns `None` while a node with a copy has not
/// reported in this term, and while a rollback is removing epochs.
pub(in crate::leader) fn durable_epoch(
    state: &StateContext,
    heartbeats: &Heartbeats,
    bucket: BucketId,
) -> Option<Epoch> {
    let known = state.bucket(bucket)?;
    known.info.readable_from()?;
    let indexes = state.indexes().map(|record| &record.info);
    let maintained =
        indexes.filter(|index| index.bucket == bucket && index.state != IndexState::Pending);
    let hosts: BTreeSet<NodeId> =
        maintained.flat_map(|index| index.topology.placement.iter().flatten().copied()).collect();
    let durable = |node: &NodeId| {
        let progress = &heartbeats.indexer(*node)?.buckets;
        let progress = progress.iter().find(|progress| progress.bucket == bucket)?;
        Some(newest_surviving_epoch(known.info, progress.durable))
    };
    // Without copies, no indexer will request the mutations published so far.
    let newest = known.epochs.last().epoch;
    hosts.iter().map(durable).try_fold(newest, |least, epoch| Some(least.min(epoch?)))
}

/// Returns the newest epoch at or below `epoch` that no rollback has made dead. A node that has
/// not rolled back yet may report a dead epoch; the source's history contains that epoch only up
/// to the rollback point.
fn newest_surviving_epoch(info: &BucketInfo, epoch: Epoch) -> Epoch {
    info.dead.iter().rev().fold(epoch, |epoch, dead| match dead.contains(epoch) {
        true => dead.below_range(),
        false => epoch,
    })
}

#[cfg(test)]
mod tests {
    use proto::model::cut::Cut;
    use proto::rpc::api::BucketProgress;
    use proto::rpc::command::{PromoteEpochs, RemoveNode};

    use super::*;
    use crate::leader::memory::tests::with_bucket_at;
    use crate::state::tests::{apply, done, mark_dead, promotion, serving, with_bucket};

    const BUCKET: BucketId = BucketId(1);

    fn report(heartbeats: &mut Heartbeats, node: u64, durable: u64) {
        let progress = BucketProgress {
            bucket: BUCKET,
            high_watermark: Cut::zero(2),
            applied: Epoch(durable + 1),
            durable: Epoch(durable),
            queue_bytes: 0,
            queue_bytes_max: 1,
        };
        heartbeats.add(with_bucket_at(node, progress), 10);
    }

    /// Publishes epochs up to 5.
    fn five_epochs(state: &mut StateContext) {
        for seqno in 1..5 {
            apply(
                state,
                PromoteEpochs { promotions: vec![promotion(0, 7, seqno)], joined: Vec::new() },
            );
        }
        assert_eq!(state.bucket(BUCKET).unwrap().epochs.last().epoch, Epoch(5));
    }

    #[test]
    fn the_slowest_copy_counts_and_every_host_must_have_reported() {
        let (mut state, mut heartbeats) = (serving(1), Heartbeats::new(0));
        five_epochs(&mut state);
        report(&mut heartbeats, 20, 4);
        assert_eq!(durable_epoch(&state, &heartbeats, BUCKET), None, "node 21 has not reported");
        report(&mut heartbeats, 21, 3);
        report(&mut heartbeats, 22, 1);
        let durable = durable_epoch(&state, &heartbeats, BUCKET);
        assert_eq!(durable, Some(Epoch(3)), "node 22 has no copy");
        assert_eq!(durable_epoch(&state, &heartbeats, BucketId(9)), None, "an unknown bucket");
    }

    #[test]
    fn a_silent_node_holds_the_epoch_back_until_it_is_removed() {
        let (mut state, mut heartbeats) = (serving(1), Heartbeats::new(0));
        five_epochs(&mut state);
        report(&mut heartbeats, 20, 5);
        report(&mut heartbeats, 21, 2);
        assert_eq!(durable_epoch(&state, &heartbeats, BUCKET), Some(Epoch(2)));
        done(&mut state, RemoveNode { node: NodeId(21), force: false });
        assert_eq!(durable_epoch(&state, &heartbeats, BUCKET), Some(Epoch(5)));
    }

    #[test]
    fn a_bucket_without_indexes_is_durable_up_to_its_newest_epoch() {
        let mut state = with_bucket();
        five_epochs(&mut state);
        let durable = durable_epoch(&state, &Heartbeats::new(0), BUCKET);
        assert_eq!(durable, Some(Epoch(5)));
    }

    #[test]
    fn a_dead_epoch_counts_as_the_point_below_it() {
        let (mut state, mut heartbeats) = (serving(1), Heartbeats::new(0));
        five_epochs(&mut state);
        report(&mut heartbeats, 20, 5);
        report(&mut heartbeats, 21, 3);
        mark_dead(&mut state, 2, 4);
        let durable = durable_epoch(&state, &heartbeats, BUCKET);
        assert_eq!(durable, Some(Epoch(2)), "node 21 stands in a dead epoch");
    }
}
