//! Reads the change log for a stream, and tells what was purged from what is damaged.
//!
//! A gap in the log would become a gap in the index that nobody notices. A purge removes entries while streams read,
//! so whoever finds a gap asks the store how far it has purged: the store knows that no later than the gap is there.
//! A vbucket that has another home now is removed the same way; that is no purge to its readers, since the new home has
//! its log.

use std::sync::Arc;

use proto::model::cut::Cut;
use proto::model::homes::VbucketSet;
use proto::model::ids::{Seqno, VbucketId};
use proto::{Error, ErrorCode, Result};

use super::context::StreamContext;
use crate::source::bucket::Bucket;
use crate::source::{LogExtent, LogRange, Mutation};

/// Bytes read from a vbucket's log at once.
const LOG_READ_BYTES: usize = 256 << 10;

/// Is all that comes after a place in some vbuckets still in the log? `HistoryPurged` names one of which it is not.
pub async fn check_kept(
    context: &StreamContext,
    bucket: &Bucket,
    vbuckets: &VbucketSet,
    at: &Cut,
) -> Result<()> {
    let (store, id) = (Arc::clone(&context.store), bucket.info.id);
    let extents = context.env.blocking(move || store.extents(id)).await?;
    let found = vbuckets.iter().find_map(|vbucket| {
        let position = at.get(vbucket);
        let extent = extents.get(usize::from(vbucket.0))?;
        (position.seqno < extent.purged).then_some((vbucket, position.seqno, extent.purged))
    });
    found.map_or(Ok(()), |(vbucket, after, purged)| Err(gone(bucket, vbucket, after, purged)))
}

/// The next mutations of a range, at least one.
pub async fn read(
    context: &StreamContext,
    bucket: &Bucket,
    range: LogRange,
) -> Result<Vec<Arc<Mutation>>> {
    let store = Arc::clone(&context.store);
    let read = move || {
        let found = store.read_log(range, LOG_READ_BYTES)?;
        let mut expected = (range.after.0 + 1)..;
        if !found.is_empty() && found.iter().all(|m| Some(m.seqno.0) == expected.next()) {
            return Ok(Ok(found));
        }
        let extents = store.extents(range.bucket)?;
        Ok(Err(extents.get(usize::from(range.vbucket.0)).copied().unwrap_or_default()))
    };
    let found: Result<std::result::Result<_, LogExtent>> = context.env.blocking(read).await;
    found?.map_err(|LogExtent { purged, .. }| {
        if range.after < purged || !bucket.keeping().kept.contains(range.vbucket) {
            return gone(bucket, range.vbucket, range.after, purged);
        }
        let what = format!(
            "the log of vbucket {} of bucket {} has a gap after seqno {}",
            range.vbucket, bucket.info.name, range.after
        );
        Error::new(ErrorCode::Corrupt, what)
    })
}

fn gone(bucket: &Bucket, vbucket: VbucketId, after: Seqno, purged: Seqno) -> Error {
    // What is removed is not kept any more before it goes.
    if !bucket.keeping().kept.contains(vbucket) {
        return Error::unavailable(format!("vbucket {vbucket} is kept elsewhere"));
    }
    let text = format!(
        "bucket {}: the log of vbucket {vbucket} was purged up to seqno {purged}, {after} is the last that is here",
        bucket.info.name
    );
    Error::new(ErrorCode::HistoryPurged, text).with_hint(
        "the copy is brought up to date from a snapshot; --log-mb says how much log is kept",
    )
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use bytes::Bytes;
    use proto::env::Env;
    use proto::model::bucket::{BucketInfo, SourceKind};
    use proto::model::ids::{BucketId, NodeId, Vbuuid};
    use proto::model::index::IndexInfo;
    use proto::model::topology::PartitionKey;
    use proto::rpc::mutation::MutationKind;
    use proto::rpc::routing::{MutationRouter, Route};

    use super::*;
    use crate::source::{Batch, BucketChanges, BucketRecord, DocumentStore, MemoryStore};

    struct NoRouter;

    impl MutationRouter for NoRouter {
        fn route(&self, _: NodeId, _: &IndexInfo, _: Option<PartitionKey<'_>>) -> Route {
            Route::Elsewhere
        }
        fn concerns(&self, _: NodeId, _: &IndexInfo) -> bool {
            false
        }
    }

    /// A bucket of two vbuckets, the first of which is kept here; each has ten entries, and the older half has gone.
    fn half_gone() -> (StreamContext, Bucket) {
        let info = BucketInfo::new(BucketId(1), "b", 2, SourceKind::Push, NodeId(1));
        let branches = vec![vec![(Vbuuid(1), 0)]; 2];
        let mut record = BucketRecord {
            info,
            branches,
            keeping: Default::default(),
            given_up: Default::default(),
        };
        record.keeping.kept = [VbucketId(0)].into_iter().collect();
        let store = MemoryStore::default();
        store.apply_catalog(1, std::slice::from_ref(&record), &[]).expect("a bucket");
        let entry = |n: u64| {
            let place = (VbucketId((n / 10) as u16), Seqno(n % 10 + 1));
            let (id, kind) = (Arc::from("id"), MutationKind::Upsert);
            Arc::new(Mutation::new(place, id, kind, Bytes::from_static(b"1")))
        };
        let mutations = (0..20).map(entry).collect();
        let changes = BucketChanges { mutations, ..BucketChanges::default() };
        store.commit(&Batch { buckets: [(BucketId(1), changes)].into() }).expect("a batch");
        let half = [0, 1].map(|n| (VbucketId(n), Seqno(5)));
        store.purge(BucketId(1), &half).expect("purged");
        let context = StreamContext {
            env: Env::real(),
            store: Arc::new(store),
            router: Arc::new(NoRouter),
            frames_ahead_bytes_max: 1 << 20,
            left_out: AtomicU64::new(0),
        };
        (context, Bucket::new(record, &[Seqno(10); 2], 1 << 20))
    }

    #[tokio::test]
    async fn a_vbucket_that_is_removed_was_not_purged() {
        let (context, bucket) = half_gone();
        let place = Cut::zero(2);
        for (vbucket, expected) in [(0, ErrorCode::HistoryPurged), (1, ErrorCode::Unavailable)] {
            let vbucket = VbucketId(vbucket);
            let range = LogRange { bucket: BucketId(1), vbucket, after: Seqno(2), to: Seqno(10) };
            let found = read(&context, &bucket, range).await.map(|found| found.len());
            assert_eq!(found.map_err(|error| error.code), Err(expected));
            let vbuckets = [vbucket].into_iter().collect();
            let kept = check_kept(&context, &bucket, &vbuckets, &place).await;
            assert_eq!(kept.map_err(|error| error.code), Err(expected));
        }
    }
}
