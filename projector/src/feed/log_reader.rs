//! Reads the change log for a stream. If entries are missing, the reader determines whether they
//! were purged, or the log is damaged.
//!
//! A gap in the log that is not detected would become a gap in the index. A purge may remove
//! entries while streams read. So a reader that finds a gap reads the purge point from the store,
//! because a purge sets that point before it removes entries. A vbucket that has moved to another
//! owner is removed too. Its readers get the error that another projector owns it, not an error
//! about a purge, because the new owner has the log.

use std::sync::Arc;

use proto::model::assignment::VbucketSet;
use proto::model::cut::Cut;
use proto::model::ids::{Seqno, VbucketId};
use proto::{Error, ErrorCode, Result};

use super::context::StreamContext;
use crate::source::view::bucket::Bucket;
use crate::source::{LogExtent, LogRange, Mutation};

/// The size in bytes of one read from a vbucket's log.
const LOG_READ_BYTES: usize = 256 << 10;

/// Returns an error if mutations after a position were purged from the log in one of these
/// vbuckets. The error is `HistoryPurged` and names the vbucket.
pub async fn check_not_purged(
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
    found.map_or(Ok(()), |(vbucket, after, purged)| {
        Err(missing_mutations_error(bucket, vbucket, after, purged))
    })
}

/// Returns the next mutations of a range of the log; at least one.
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
        if range.after < purged || !bucket.ownership().owned.contains(range.vbucket) {
            return missing_mutations_error(bucket, range.vbucket, range.after, purged);
        }
        let what = format!(
            "the log of vbucket {} of bucket {} has a gap after seqno {}",
            range.vbucket, bucket.info.name, range.after
        );
        Error::new(ErrorCode::Corrupt, what)
    })
}

/// Returns the error for a reader whose next mutations are not in the log any more.
fn missing_mutations_error(
    bucket: &Bucket,
    vbucket: VbucketId,
    after: Seqno,
    purged: Seqno,
) -> Error {
    // A vbucket is disowned before its data is removed.
    if !bucket.ownership().owned.contains(vbucket) {
        return Error::unavailable(format!("another projector owns vbucket {vbucket}"));
    }
    let text = format!(
        "bucket {}: the log of vbucket {vbucket} was purged up to seqno {purged}, the stream stands at {after}",
        bucket.info.name
    );
    Error::new(ErrorCode::HistoryPurged, text)
        .with_hint("the copy is resynced from a snapshot; --change-log-mb sets the size of the log")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proto::env::Env;
    use proto::model::bucket::{BucketInfo, SourceKind};
    use proto::model::ids::{BucketId, NodeId, Vbuuid};
    use proto::model::index::IndexInfo;
    use proto::model::topology::PartitionKey;
    use proto::rpc::mutation::MutationKind;
    use proto::rpc::routing::{MutationRouter, Route};

    use super::*;
    use crate::source::{Batch, BucketRecord, DocumentStore, MemoryStore};

    struct NoRouter;

    impl MutationRouter for NoRouter {
        fn route(&self, _: NodeId, _: &IndexInfo, _: Option<PartitionKey<'_>>) -> Route {
            Route::Elsewhere
        }
        fn concerns(&self, _: NodeId, _: &IndexInfo) -> bool {
            false
        }
    }

    /// Returns a bucket of two vbuckets, the first of which is owned by this projector. Each has
    /// ten entries, and the older half is purged.
    fn half_gone() -> (StreamContext, Bucket) {
        let info = BucketInfo::new(BucketId(1), "b", 2, SourceKind::Push, NodeId(1));
        let branches = vec![vec![(Vbuuid(1), 0)]; 2];
        let mut record = BucketRecord {
            info,
            branches,
            ownership: Default::default(),
            given_up: Default::default(),
            commits: Default::default(),
        };
        record.ownership.owned = [VbucketId(0)].into_iter().collect();
        let store = MemoryStore::default();
        store.apply_catalog(1, std::slice::from_ref(&record), &[]).expect("a bucket");
        let entry = |n: u64| {
            let place = (VbucketId((n / 10) as u16), Seqno(n % 10 + 1));
            let (id, kind) = (Arc::from("id"), MutationKind::Upsert);
            Arc::new(Mutation::new(place, id, kind, Bytes::from_static(b"1")))
        };
        let mutations = (0..20).map(entry).collect();
        let changes = Batch { mutations, ..Batch::default() };
        store.commit(BucketId(1), changes).expect("a batch");
        let half = [0, 1].map(|n| (VbucketId(n), Seqno(5)));
        store.purge(BucketId(1), &half).expect("purged");
        let context = StreamContext {
            env: Env::real(),
            store: Arc::new(store),
            router: Arc::new(NoRouter),
            frames_ahead_bytes_max: 1 << 20,
            left_out: Default::default(),
        };
        (context, Bucket::new(record, &[Seqno(10); 2], 1 << 20))
    }

    #[tokio::test]
    async fn removing_a_vbucket_is_not_reported_as_a_purge() {
        let (context, bucket) = half_gone();
        let place = Cut::zero(2);
        for (vbucket, expected) in [(0, ErrorCode::HistoryPurged), (1, ErrorCode::Unavailable)] {
            let vbucket = VbucketId(vbucket);
            let range = LogRange { bucket: BucketId(1), vbucket, after: Seqno(2), to: Seqno(10) };
            let found = read(&context, &bucket, range).await.map(|found| found.len());
            assert_eq!(found.map_err(|error| error.code), Err(expected));
            let vbuckets = [vbucket].into_iter().collect();
            let kept = check_not_purged(&context, &bucket, &vbuckets, &place).await;
            assert_eq!(kept.map_err(|error| error.code), Err(expected));
        }
    }
}
