//! The task that purges old entries from the change logs of buckets, so that the logs stay
//! bounded. A log lets indexes catch up after they were down for a while; an index that was down
//! for longer is resynced from a snapshot.
//!
//! Each bucket's log is measured regularly. A log above its limit is purged to clearly below the
//! limit, so that the next purge is some time away. The oldest entries are removed, up to the cut
//! of a stability timestamp: an index is always at a timestamp, and needs all later entries of
//! all vbuckets. After a restart, the projector may have no timestamp that is old enough. Then
//! the same share of each vbucket's bytes is removed.
//!
//! A log is stored in segments, and a segment is removed when all its mutations are purged. A
//! vbucket that seldom changes can retain a segment for long. If a log uses twice its limit on
//! disk, all mutations in its oldest segments are purged.
//!
//! The task also rolls back open transactions whose sessions have not made a call for long.
//!
//! A purge is one group of the log, or a few if the bucket has many vbuckets. Purges run off the
//! async threads, and the bucket's writer commits its groups in between. A stream that still
//! reads purged entries detects the purge itself (`crate::feed`).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use proto::Result;
use proto::model::cut::Cut;
use proto::model::ids::{BucketId, Epoch, Seqno, VbucketId};
use tokio::time::Instant;

use crate::projector::Projector;
use crate::source::view::bucket::Bucket;
use crate::source::writer::Writer;
use crate::source::{DocumentStore, LogExtent};

/// The interval at which the logs are measured. At full load a log grows by a few percent of its
/// limit in this time.
const LOOK: Duration = Duration::from_secs(1);
/// The number of vbuckets that one purge step handles. Each vbucket costs a look-up in the log
/// while the bucket's writer waits; a step takes some milliseconds.
const STEP_VBUCKETS: usize = 64;

/// Returns the size in bytes to which a log is purged that is over its limit `bytes_max`.
fn purge_target_bytes(bytes_max: u64) -> u64 {
    bytes_max / 8 * 7
}

/// Purges logs over their limit, and rolls back forgotten transactions. Runs until cancelled; a
/// purge step that has begun is completed.
pub(crate) async fn purge_logs(projector: Arc<Projector>) -> Infallible {
    loop {
        tokio::time::sleep(LOOK).await;
        roll_back_forgotten(&projector);
        for bucket in projector.bucket_ids() {
            let Some(bucket) = projector.find(bucket) else { continue };
            if let Err(error) = purge_if_over_limit(&projector, &bucket).await
                && !bucket.is_removed()
            {
                tracing::warn!(bucket = %bucket.info.name, %error, "a purge of a change log failed");
            }
        }
    }
}

/// Rolls back the open transactions whose sessions have made no call for long. Such transactions
/// use memory, but no log.
fn roll_back_forgotten(projector: &Projector) {
    let (now, kept) = (Instant::now(), projector.config.transaction_kept);
    let buckets = projector.bucket_ids().into_iter().filter_map(|id| projector.find(id));
    let forgotten = buckets.map(|bucket| bucket.transactions.roll_back_forgotten(now, kept));
    projector.transaction_counts.add_forgotten(forgotten.sum());
}

/// One step of a purge: some vbuckets, each with the last seqno to remove.
type PurgeStep = Vec<(VbucketId, Seqno)>;

/// Purges a bucket's log if the log is over its limit.
async fn purge_if_over_limit(projector: &Projector, bucket: &Arc<Bucket>) -> Result<()> {
    // A version has no log.
    if !bucket.info.source.reports_position() {
        return Ok(());
    }
    let bytes_max = projector.config.log_bytes_max;
    let (store, of) = (projector.store(), Arc::clone(bucket));
    let steps = projector.env.blocking(move || plan_purge(&*store, &of, bytes_max)).await?;
    if !steps.is_empty() {
        tracing::debug!(bucket = %bucket.info.name, steps = steps.len(), "purging the change log");
    }
    for step in steps {
        let remove = move |writer: &Writer, bucket: &Bucket| {
            let _gate = bucket.gate.close();
            writer.store.purge(bucket.info.id, &step)
        };
        projector.run_exclusively(Arc::clone(bucket), remove).await?;
    }
    Ok(())
}

/// Returns the steps of a purge of a bucket's log; none if the log is within its limit.
fn plan_purge(
    store: &dyn DocumentStore,
    bucket: &Bucket,
    bytes_max: u64,
) -> Result<Vec<PurgeStep>> {
    let extents = store.extents(bucket.info.id)?;
    if extents.iter().map(LogExtent::bytes).sum::<u64>() <= bytes_max {
        let held = store.points_to_shrink_to(bucket.info.id, bytes_max.saturating_mul(2))?;
        return Ok(if held.is_empty() { Vec::new() } else { vec![held] });
    }
    let cuts: Vec<_> = bucket.epochs_after(Epoch(0)).into_iter().map(|mark| mark.cut).collect();
    let points =
        choose_purge_points(store, bucket.info.id, &extents, &cuts, purge_target_bytes(bytes_max))?;
    Ok(split_into_steps(&extents, &points))
}

/// Chooses the last seqno to remove in each vbucket, so that about `keep` bytes of the log
/// remain, or a little less.
fn choose_purge_points(
    store: &dyn DocumentStore,
    bucket: BucketId,
    extents: &[LogExtent],
    cuts: &[Arc<Cut>],
    keep: u64,
) -> Result<Vec<Seqno>> {
    let kept_behind = |cut: &Cut| -> Result<u64> {
        let kept = extents.iter().zip(cut.iter()).map(|(extent, (vbucket, position))| {
            // The log grows meanwhile and may end after its extent.
            let to = store.log_bytes_to(bucket, vbucket, position.seqno)?;
            Ok(extent.bytes_end.saturating_sub(to))
        });
        kept.sum()
    };
    // Find the oldest timestamp after which at most `keep` bytes remain.
    let (mut low, mut high) = (0, cuts.len());
    while low < high {
        let middle = low.midpoint(high);
        match kept_behind(&cuts[middle])? <= keep {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    if let Some(cut) = cuts.get(low)
        && kept_behind(cut)? >= keep / 2
    {
        return Ok(cut.iter().map(|(_, position)| position.seqno).collect());
    }
    let total: u64 = extents.iter().map(LogExtent::bytes).sum();
    let share = |(extent, n): (&LogExtent, u16)| {
        let goes = u128::from(extent.bytes()) * u128::from(total.saturating_sub(keep));
        let goes = goes.div_ceil(u128::from(total.max(1))) as u64;
        let log = |to| store.log_bytes_to(bucket, VbucketId(n), to);
        first_seqno_with_bytes(extent, extent.bytes_purged + goes, log)
    };
    extents.iter().zip(0..).map(share).collect()
}

/// Returns the first seqno of a vbucket up to which its log has at least `bytes` bytes. `log`
/// returns the bytes of the log up to a seqno.
fn first_seqno_with_bytes(
    extent: &LogExtent,
    bytes: u64,
    log: impl Fn(Seqno) -> Result<u64>,
) -> Result<Seqno> {
    let (mut low, mut high) = (extent.purged.0, extent.end.0);
    while low < high {
        let middle = low.midpoint(high);
        match log(Seqno(middle))? >= bytes {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Ok(Seqno(low))
}

/// Splits a purge into steps, each for a limited number of vbuckets. Vbuckets from which nothing
/// is removed are left out.
fn split_into_steps(extents: &[LogExtent], points: &[Seqno]) -> Vec<PurgeStep> {
    let goes = |((extent, point), n): ((&LogExtent, &Seqno), u16)| {
        let to = (*point).min(extent.end);
        (to > extent.purged).then_some((VbucketId(n), to))
    };
    let all: PurgeStep = extents.iter().zip(points).zip(0..).filter_map(goes).collect();
    all.chunks(STEP_VBUCKETS).map(<[_]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proto::model::assignment::VbucketSet;
    use proto::model::bucket::{BucketInfo, SourceKind};
    use proto::model::cut::{EpochMark, Position};
    use proto::model::ids::{NodeId, Vbuuid};
    use proto::rpc::mutation::MutationKind;

    use super::*;
    use crate::source::{Batch, BucketRecord, MemoryStore, Mutation};
    use documents::ownership::Ownership;

    const BUCKET: BucketId = BucketId(1);

    /// Returns a bucket in which vbucket 0 has old entries, and vbucket 1 as many, all later. Each
    /// entry has 100 bytes.
    fn world() -> (MemoryStore, Bucket) {
        let info = BucketInfo::new(BUCKET, "b", 2, SourceKind::Embedded, NodeId(1));
        let ownership = Ownership { owned: VbucketSet::all(2), ..Ownership::default() };
        let record = BucketRecord {
            info,
            branches: vec![vec![(Vbuuid(1), 0)]; 2],
            ownership,
            given_up: Default::default(),
            commits: Default::default(),
        };
        let store = MemoryStore::default();
        store.apply_catalog(1, std::slice::from_ref(&record), &[]).expect("a bucket");
        let entry = |n: u64| {
            let (vbucket, seqno) = (VbucketId((n / 1000) as u16), Seqno(n % 1000 + 1));
            let document = Bytes::from(vec![b'7'; 74]);
            let id = Arc::from("id");
            Arc::new(Mutation::new((vbucket, seqno), id, MutationKind::Upsert, document))
        };
        let mutations = (0..2000).map(entry).collect();
        let changes = Batch { mutations, ..Batch::default() };
        store.commit(BUCKET, changes).expect("a batch");
        (store, Bucket::new(record, &[Seqno(1000); 2], 1 << 20))
    }

    fn mark(epoch: u64, seqnos: [u64; 2]) -> EpochMark {
        let position = |seqno| Position { vbuuid: Vbuuid(1), seqno: Seqno(seqno) };
        EpochMark {
            bucket: BUCKET,
            epoch: Epoch(epoch),
            parent: Epoch(epoch - 1),
            cut: Arc::new(Cut::from_positions(seqnos.map(position).to_vec())),
            horizon: Epoch(0),
            points: Arc::default(),
        }
    }

    fn purge(store: &MemoryStore, bucket: &Bucket, bytes_max: u64) -> [u64; 2] {
        for step in plan_purge(store, bucket, bytes_max).expect("a plan") {
            store.purge(BUCKET, &step).expect("purged");
        }
        let extents = store.extents(BUCKET).expect("extents");
        let bytes: u64 = extents.iter().map(LogExtent::bytes).sum();
        assert!(bytes <= bytes_max, "{bytes} of {bytes_max} are kept");
        [extents[0].purged.0, extents[1].purged.0]
    }

    #[test]
    fn a_log_is_purged_at_the_oldest_timestamp_that_reaches_the_low_mark() {
        let (store, bucket) = world();
        for (epoch, seqnos) in
            [(1, [500, 0]), (2, [1000, 200]), (3, [1000, 300]), (4, [1000, 1000])]
        {
            bucket.add_epoch(mark(epoch, seqnos));
        }
        assert_eq!(purge(&store, &bucket, 200_000), [0, 0], "the log is within its bound");
        // Seven eighths of the limit are 78,750 bytes: 800 entries are more, 700 are less.
        assert_eq!(purge(&store, &bucket, 90_000), [1000, 300]);
    }

    #[test]
    fn without_an_old_timestamp_each_vbucket_gives_up_the_same_share() {
        let (store, bucket) = world();
        bucket.add_epoch(mark(9, [1000, 990]));
        assert_eq!(purge(&store, &bucket, 160_000), [300, 300]);
    }

    #[test]
    fn a_purge_of_few_vbuckets_is_one_group_and_ends_with_the_log() {
        let extent = |purged, end| LogExtent {
            purged: Seqno(purged),
            end: Seqno(end),
            ..LogExtent::default()
        };
        let extents = [extent(10, 5_000_000), extent(0, 100), extent(7, 9), extent(0, 0)];
        let points = [Seqno(9_000_000), Seqno(40), Seqno(7), Seqno(0)];
        let expected = vec![(VbucketId(0), Seqno(5_000_000)), (VbucketId(1), Seqno(40))];
        assert_eq!(split_into_steps(&extents, &points), [expected]);
        let many = split_into_steps(
            &[extent(0, 5); 2 * STEP_VBUCKETS + 1],
            &[Seqno(3); 2 * STEP_VBUCKETS + 1],
        );
        let lens: Vec<_> = many.iter().map(Vec::len).collect();
        assert_eq!(lens, [STEP_VBUCKETS, STEP_VBUCKETS, 1]);
        let last = many.concat().last().copied();
        assert_eq!(last, Some((VbucketId(2 * STEP_VBUCKETS as u16), Seqno(3))));
    }
}
