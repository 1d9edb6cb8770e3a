//! The checks before a write, and after a read.

use std::sync::Arc;

use proto::Result;
use proto::model::ids::{BucketId, vbucket_of};

use crate::projector::Projector;
use crate::source::kind::WriteCall;
use crate::source::registry::source_of_kind;
use crate::source::view::bucket::Bucket;

/// Bytes of documents that are handled on the caller's thread, which may serve connections as well: less than a
/// millisecond.
pub(super) const INLINE_BYTES_MAX: usize = 64 << 10;
/// The size limit of the documents of one call: half a message between processes, so that ids and framing have room.
/// Never less than one document.
pub(super) const GET_BYTES_MAX: usize = 32 << 20;

impl Projector {
    /// Returns a bucket that accepts the call.
    pub(super) async fn writable(&self, bucket: BucketId, call: WriteCall) -> Result<Arc<Bucket>> {
        let bucket = self.bucket(bucket).await?;
        source_of_kind(bucket.info.source).check_call(&bucket.info, call)?;
        Ok(bucket)
    }
}

/// Checks a read after it.
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
