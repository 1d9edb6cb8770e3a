//! The checks that the calls share: whether a bucket accepts a call, and whether documents that
//! were read may be returned.

use std::sync::Arc;

use proto::Result;
use proto::model::ids::{BucketId, vbucket_of};

use crate::projector::Projector;
use crate::source::kind::WriteCall;
use crate::source::registry::source_of_kind;
use crate::source::view::bucket::Bucket;

/// The size in bytes of documents up to which a call handles them on its own thread, which may
/// also serve connections: less than a millisecond of work.
pub(super) const INLINE_BYTES_MAX: usize = 64 << 10;
/// The size limit in bytes of the documents that one call returns: half of the longest message
/// between processes, so that space for ids and framing is left. At least one document is always
/// returned.
pub(super) const GET_BYTES_MAX: usize = 32 << 20;

impl Projector {
    /// Returns a bucket after waiting until it is served. An error if the bucket does not accept
    /// this kind of call.
    pub(super) async fn bucket_for_call(
        &self,
        bucket: BucketId,
        call: WriteCall,
    ) -> Result<Arc<Bucket>> {
        let bucket = self.bucket(bucket).await?;
        source_of_kind(bucket.info.source).check_call(&bucket.info, call)?;
        Ok(bucket)
    }
}

/// Returns an error if documents that were just read may be outdated, because this projector does
/// not lead the bucket or own the vbuckets any more.
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
