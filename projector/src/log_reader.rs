//! Reads the change log for a stream, and tells what was purged from what is damaged.
//!
//! A gap in the log would become a gap in the index that nobody notices. A purge removes entries while streams read,
//! so whoever finds a gap asks the store how far it has purged: the store knows that no later than the gap is there.

use std::sync::Arc;

use proto::cut::Cut;
use proto::homes::VbucketSet;
use proto::ids::{Seqno, VbucketId};
use proto::index::BucketInfo;
use proto::{Error, ErrorCode, Result};

use crate::source::bucket::Bucket;
use crate::source::{LogExtent, LogRange, Mutation};
use crate::stream::StreamContext;

/// Bytes read from a vbucket's log at once.
const LOG_READ_BYTES: usize = 256 << 10;

/// Is all that comes after a place in some vbuckets still in the log? `HistoryPurged` names one of which it is not.
pub async fn check_kept(
    context: &StreamContext,
    bucket: &BucketInfo,
    vbuckets: &VbucketSet,
    at: &Cut,
) -> Result<()> {
    let (store, id) = (Arc::clone(&context.store), bucket.id);
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
    found?.map_err(|LogExtent { purged, .. }| match range.after < purged {
        true => gone(&bucket.info, range.vbucket, range.after, purged),
        false if !bucket.keeping().kept.contains(range.vbucket) => {
            Error::unavailable(format!("vbucket {} is kept elsewhere", range.vbucket))
        }
        false => Error::new(
            ErrorCode::Corrupt,
            format!(
                "the log of vbucket {} of bucket {} has a gap after seqno {}",
                range.vbucket, bucket.info.name, range.after
            ),
        ),
    })
}

fn gone(bucket: &BucketInfo, vbucket: VbucketId, after: Seqno, purged: Seqno) -> Error {
    let text = format!(
        "bucket {}: the log of vbucket {vbucket} was purged up to seqno {purged}, {after} is the last that is here",
        bucket.name
    );
    Error::new(ErrorCode::HistoryPurged, text).with_hint(
        "the copy is brought up to date from a snapshot; --log-mb says how much log is kept",
    )
}
