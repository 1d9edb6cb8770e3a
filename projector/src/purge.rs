//! Keeps the change logs within their bound: a log serves copies that were away for a while, and those that were
//! away for longer are resynced from a snapshot, whatever the log has.
//!
//! Now and then each bucket's log is measured. One that is above its bound is purged down to a low mark, so that
//! there is some way to go until the next time. What goes is the oldest: everything before the cut of a stability
//! timestamp, as a copy stands at one and needs all vbuckets from there. After a restart no timestamp may be known
//! that is old enough; then each vbucket gives the same share of its bytes.
//!
//! Entries go in small batches, off the async threads, and the writer commits its groups between them. A stream that
//! still reads what goes finds that out by itself (`crate::feed`).

use std::sync::Arc;
use std::time::Duration;

use proto::Result;
use proto::model::cut::Cut;
use proto::model::ids::{BucketId, Epoch, Seqno, VbucketId};

use crate::projector::Projector;
use crate::source::bucket::Bucket;
use crate::source::{DocumentStore, LogExtent};

/// How often logs are measured: at full load a few per cent of the bound come in between.
const LOOK: Duration = Duration::from_secs(1);
/// Entries that are removed in one batch: a millisecond of work.
const STEP_ENTRIES: u64 = 2048;

/// Down to which size a log is purged that has grown beyond its bound.
fn low_mark(bytes_max: u64) -> u64 {
    bytes_max / 8 * 7
}

/// Purges what is over the bound, until the task is dropped; what it had begun is whole, batch by batch.
pub(crate) async fn keep_bounded(projector: Arc<Projector>) {
    loop {
        tokio::time::sleep(LOOK).await;
        for bucket in projector.bucket_ids() {
            let Some(bucket) = projector.find(bucket) else { continue };
            if let Err(error) = bound(&projector, &bucket).await
                && !bucket.is_removed()
            {
                tracing::warn!(bucket = %bucket.info.name, %error, "purging a change log");
            }
        }
    }
}

/// The ends of what goes of some vbuckets' logs, in one batch.
type Step = Vec<(VbucketId, Seqno)>;

async fn bound(projector: &Projector, bucket: &Arc<Bucket>) -> Result<()> {
    let bytes_max = projector.config.log_bytes_max;
    let (store, of) = (projector.store(), Arc::clone(bucket));
    let steps = projector.env.blocking(move || plan(&*store, &of, bytes_max)).await?;
    if !steps.is_empty() {
        tracing::debug!(bucket = %bucket.info.name, steps = steps.len(), "purging the change log");
    }
    for step in steps {
        let (store, id) = (projector.store(), bucket.info.id);
        projector.env.blocking(move || store.purge(id, &step)).await?;
    }
    Ok(())
}

/// What goes of a bucket's log, if it is over its bound.
fn plan(store: &dyn DocumentStore, bucket: &Bucket, bytes_max: u64) -> Result<Vec<Step>> {
    let extents = store.extents(bucket.info.id)?;
    if extents.iter().map(LogExtent::bytes).sum::<u64>() <= bytes_max {
        return Ok(Vec::new());
    }
    let cuts: Vec<_> = bucket.epochs_after(Epoch(0)).into_iter().map(|mark| mark.cut).collect();
    let points = choose(store, bucket.info.id, &extents, &cuts, low_mark(bytes_max))?;
    Ok(steps(&extents, &points))
}

/// Up to where each vbucket's log goes, so that `keep` bytes stay together, or a little less.
fn choose(
    store: &dyn DocumentStore,
    bucket: BucketId,
    extents: &[LogExtent],
    cuts: &[Arc<Cut>],
    keep: u64,
) -> Result<Vec<Seqno>> {
    let kept_behind = |cut: &Cut| -> Result<u64> {
        let kept = extents.iter().zip(cut.iter()).map(|(extent, (vbucket, position))| {
            // A log that grows meanwhile may end later than its extent says.
            let to = store.log_bytes_to(bucket, vbucket, position.seqno)?;
            Ok(extent.bytes_end.saturating_sub(to))
        });
        kept.sum()
    };
    // The oldest timestamp behind which there is no more than may stay.
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
        first_with(extent, extent.bytes_purged + goes, log)
    };
    extents.iter().zip(0..).map(share).collect()
}

/// The first seqno up to which a log has so many bytes.
fn first_with(extent: &LogExtent, bytes: u64, log: impl Fn(Seqno) -> Result<u64>) -> Result<Seqno> {
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

/// The same as batches of a bounded number of entries, the oldest of each vbucket first.
fn steps(extents: &[LogExtent], points: &[Seqno]) -> Vec<Step> {
    let mut steps = vec![Vec::new()];
    let mut room = STEP_ENTRIES;
    for ((extent, point), n) in extents.iter().zip(points).zip(0..) {
        let (mut at, to) = (extent.purged.0, point.0.min(extent.end.0.saturating_sub(1)));
        while at < to {
            let next = to.min(at + room);
            if let Some(step) = steps.last_mut() {
                step.push((VbucketId(n), Seqno(next)));
            }
            room -= next - at;
            at = next;
            if room == 0 {
                steps.push(Vec::new());
                room = STEP_ENTRIES;
            }
        }
    }
    steps.retain(|step| !step.is_empty());
    steps
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;
    use proto::model::bucket::{BucketInfo, SourceKind};
    use proto::model::cut::{EpochMark, Position};
    use proto::model::homes::VbucketSet;
    use proto::model::ids::{NodeId, Vbuuid};
    use proto::rpc::mutation::MutationKind;

    use super::*;
    use crate::source::ownership::Keeping;
    use crate::source::{Batch, BucketChanges, BucketRecord, MemoryStore, Mutation};

    const BUCKET: BucketId = BucketId(1);

    /// Vbucket 0 has old entries alone, vbucket 1 has as many, later; 100 bytes each.
    fn world() -> (MemoryStore, Bucket) {
        let info = BucketInfo::new(BUCKET, "b", 2, SourceKind::Embedded, NodeId(1));
        let keeping = Keeping { kept: VbucketSet::all(2), ..Keeping::default() };
        let record = BucketRecord {
            info,
            branches: vec![vec![(Vbuuid(1), 0)]; 2],
            keeping,
            given_up: Default::default(),
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
        let changes = BucketChanges { mutations, last: BTreeMap::new(), record: None };
        store.commit(&Batch { buckets: [(BUCKET, changes)].into() }).expect("a batch");
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
        for step in plan(store, bucket, bytes_max).expect("a plan") {
            store.purge(BUCKET, &step).expect("purged");
        }
        let extents = store.extents(BUCKET).expect("extents");
        let bytes: u64 = extents.iter().map(LogExtent::bytes).sum();
        assert!(bytes <= bytes_max, "{bytes} of {bytes_max} are kept");
        [extents[0].purged.0, extents[1].purged.0]
    }

    #[test]
    fn a_log_is_purged_at_the_oldest_timestamp_that_leaves_no_more_than_the_low_mark() {
        let (store, bucket) = world();
        for (epoch, seqnos) in
            [(1, [500, 0]), (2, [1000, 200]), (3, [1000, 300]), (4, [1000, 1000])]
        {
            bucket.add_epoch(mark(epoch, seqnos));
        }
        assert_eq!(purge(&store, &bucket, 200_000), [0, 0], "it is within its bound");
        // Seven eighths are 78,750 bytes: 800 entries are more, 700 are less; the last entry of a log stays.
        assert_eq!(purge(&store, &bucket, 90_000), [999, 300]);
    }

    #[test]
    fn without_a_timestamp_that_is_old_enough_each_vbucket_gives_its_share() {
        let (store, bucket) = world();
        bucket.add_epoch(mark(9, [1000, 990]));
        assert_eq!(purge(&store, &bucket, 160_000), [300, 300]);
    }

    #[test]
    fn steps_are_bounded_and_end_before_the_last_entry() {
        let extent = |purged, end| LogExtent {
            purged: Seqno(purged),
            end: Seqno(end),
            ..LogExtent::default()
        };
        let extents = [extent(10, 5_000), extent(0, 100), extent(0, 0)];
        let steps = steps(&extents, &[Seqno(9_000), Seqno(40), Seqno(0)]);
        let expected = [
            vec![(VbucketId(0), Seqno(2_058))],
            vec![(VbucketId(0), Seqno(4_106))],
            vec![(VbucketId(0), Seqno(4_999)), (VbucketId(1), Seqno(40))],
        ];
        assert_eq!(steps, expected);
    }
}
