//! The checks before a write, and after a read.

use std::sync::Arc;

use proto::Result;
use proto::model::ids::{BucketId, vbucket_of};

use crate::projector::Projector;
use crate::source::kind::WriteCall;
use crate::source::registry::source_of_kind;
use crate::source::view::bucket::Bucket;

/// The maximum bytes of documents that are handled on the caller's thread, which may also serve
/// connections: less than a millisecond.
pub(super) const INLINE_BYTES_MAX: usize = 64 << 10;
/// The size limit in bytes of the documents of one call: half of the longest message between
/// processes, which leaves space for ids and framing. One document is always returned.
pub(super) const GET_BYTES_MAX: usize = 32 << 20;

impl Projector {
    /// Returns a bucket that accepts this kind of call.
    pub(super) async fn writable(&self, bucket: BucketId, call: WriteCall) -> Result<Arc<Bucket>> {
        let bucket = self.bucket(bucket).await?;
        source_of_kind(bucket.info.source).check_call(&bucket.info, call)?;
        Ok(bucket)
    }
}

/// Returns an error if documents that were just read may not be the newest ones, because this
/// projector does not lead or own them any more.
pub(super) fn check_read(bucket: &Bucket, ids: &[String]) -> Result<()> {
    // A leader whose lease has ended meanwhile may have read what is no longer the newest.
    bucket.check_open()?;
    // A vbucket is disowned before its data is removed.
    let readable = bucket.readable();
    let mut vbuckets = ids.iter().map(|id| vbucket_of(id, bucket.info.vbuckets));
    match vbuckets.find(|vbucket| !readable.contains(*vbucket)) {
        Some(vbucket) => Err(bucket.not_owned(vbucket)),
        None => Ok(()),
    }
}
