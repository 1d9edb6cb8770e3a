//! Registers the node at the coordinator, and sends heartbeats with its progress.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use proto::client::{ForgottenPolicy, Membership, MembershipConfig, Retry};
use proto::flow::Admission;
use proto::lock::lock;
use proto::model::cut::EpochMark;
use proto::model::ids::{LocalIndexId, SliceId};
use proto::model::index::IndexInfo;
use proto::model::range_split::bound_at;
use proto::rpc::api::{BucketProgress, Heartbeat, IndexerReport, SliceProgress, SplitPoint};
use storage::SliceStore;
use tokio::time::Instant;

use super::followers::Followers;
use crate::build_pace::BuildPace;
use crate::context::NodeContext;
use crate::moves::IncomingMoves;

/// Returns the progress of the node in each bucket that it follows.
fn bucket_progress(context: &NodeContext, followers: &Followers) -> Vec<BucketProgress> {
    let followers = lock(followers);
    let progress = |mark: EpochMark| {
        let state = followers.get(&mark.bucket).map(|f| f.state.borrow().clone());
        let state = state.unwrap_or_default();
        BucketProgress {
            bucket: mark.bucket,
            high_watermark: state.watermarks,
            applied: mark.epoch,
            durable: context.store.counters(mark.bucket).durable,
            queue_bytes: state.staged_bytes,
            queue_bytes_max: context.config.queue_bytes_max(),
        }
    };
    context.store.applied().into_iter().map(progress).collect()
}

/// Returns the slices of this node, with the progress of builds. Drops the progress of builds that
/// have ended.
fn slice_progress(context: &NodeContext, incoming: &IncomingMoves) -> Vec<SliceProgress> {
    let mut slices = [context.store.progress(), incoming.restore_progress()].concat();
    let now = Instant::now();
    let mut builds = lock(&context.builds);
    let is_built = |told: &SliceProgress| told.floor.is_none() && told.copied_from.is_none();
    builds.retain(|id, _| {
        slices.iter().any(|told| told.slice.local_index() == *id && is_built(told))
    });
    for told in slices.iter_mut().filter(|told| is_built(told)) {
        let pace = builds.get(&told.slice.local_index());
        told.built_percent = pace.map(BuildPace::percent);
        told.seconds_left = pace.and_then(|pace| pace.seconds_left(now));
    }
    slices
}

/// Returns at most one split point for each index by ranges: that of the largest slice above the
/// limit that can be split.
fn split_points(context: &NodeContext, slices: &[SliceProgress]) -> Vec<SplitPoint> {
    let catalog = context.catalog.load();
    let mut large = BTreeMap::<LocalIndexId, Vec<&SliceProgress>>::new();
    for told in slices.iter().filter(|told| told.floor.is_some()) {
        let (id, node) = (told.slice.local_index(), context.config.node.id);
        let Some(bytes_max) = catalog.slice_bytes_max.get(&id.index) else { continue };
        let serves = |index: &&Arc<IndexInfo>| index.local_id() == id;
        let Some(index) = catalog.indexes.get(&id.index).filter(serves) else { continue };
        let is_whole = index.topology.hosts(node, told.slice.slice);
        if told.live_bytes > Some(*bytes_max) && is_whole && index.spec.leading_ranges().is_some() {
            large.entry(id).or_default().push(told);
        }
    }
    let point = |slice| bound_at(&context.store.split_point(slice)?);
    large.into_values().filter_map(|large| split_point(large, point)).collect()
}

/// Returns the split point of the largest slice that can be split. A slice in which one value has
/// most of the entries has no split point, and must not prevent the split of other slices.
fn split_point(
    mut large: Vec<&SliceProgress>,
    point: impl Fn(SliceId) -> Option<Vec<u8>>,
) -> Option<SplitPoint> {
    large.sort_by_key(|told| (Reverse(told.live_bytes), told.slice));
    large
        .into_iter()
        .find_map(|told| Some(SplitPoint { slice: told.slice, at: point(told.slice)? }))
}

/// Keeps the node registered, and sends its heartbeats: regularly, and immediately when a slice
/// becomes readable.
pub(super) async fn send_heartbeats(
    context: NodeContext,
    incoming: IncomingMoves,
    followers: Followers,
    scans: Admission,
) -> Infallible {
    let slices = context.slices.subscribe();
    let config = MembershipConfig {
        node: context.config.node.clone(),
        heartbeat: context.config.heartbeat,
        retry: Retry::constant(context.config.retry),
        client: None,
        has_news_at_once: true,
        when_forgotten: ForgottenPolicy::StayOut,
        identity: Some(Arc::clone(&context.identity)),
    };
    let membership = Membership::new(Arc::clone(&context.directory), config);
    let heartbeat = move || {
        let slices = slice_progress(&context, &incoming);
        let report = IndexerReport {
            buckets: bucket_progress(&context, &followers),
            moves: incoming.progress(),
            split_points: split_points(&context, &slices),
            slices,
            scans: scans.status(),
        };
        Heartbeat::new(context.config.node.id, context.catalog.load().cas, report)
    };
    membership.run(heartbeat, Some(slices)).await
}

#[cfg(test)]
mod tests {
    use proto::model::ids::{Generation, IndexId, SliceNo};

    use super::*;

    #[test]
    fn an_unsplittable_slice_does_not_block_others() {
        let id = LocalIndexId { index: IndexId(1), generation: Generation(1) };
        let told = |slice, bytes| SliceProgress {
            slice: id.slice(SliceNo(slice)),
            floor: None,
            entries: 1,
            bytes: 10,
            live_bytes: Some(bytes),
            built_percent: None,
            seconds_left: None,
            copied_from: None,
            trouble: None,
        };
        let slices = [told(0, 5), told(1, 9), told(2, 7), told(3, 7)];
        let found = |without: &[u16]| {
            let point = |slice: SliceId| {
                (!without.contains(&slice.slice.0)).then(|| vec![slice.slice.0 as u8])
            };
            split_point(slices.iter().collect(), point).map(|found| found.slice.slice.0)
        };
        assert_eq!([found(&[]), found(&[1]), found(&[1, 2])], [Some(1), Some(2), Some(3)]);
        assert_eq!([found(&[1, 2, 3]), found(&[0, 1, 2, 3])], [Some(0), None]);
    }
}
