//! The source of a bucket, which knows the end of the bucket's durable history.

use std::sync::Arc;

use proto::client::source::source_of;
use proto::model::bucket::BucketInfo;
use proto::model::history::SourcePlace;
use proto::model::ids::BucketId;
use proto::rpc::api::ProjectorApi;
use proto::{Error, Result};

use crate::context::RouterContext;

/// A client of the source of a bucket.
pub(crate) struct BucketSource<'a> {
    context: &'a RouterContext,
    bucket: BucketId,
}

impl<'a> BucketSource<'a> {
    pub fn new(context: &'a RouterContext, bucket: BucketId) -> Self {
        Self { context, bucket }
    }

    /// Returns the bucket's record in the router's catalog.
    pub fn bucket(&self) -> Result<Arc<BucketInfo>> {
        let bucket = self.bucket;
        let missing =
            || Error::unavailable(format!("bucket {bucket} is not in the router's catalog"));
        self.context.catalog.load().buckets.get(&bucket).cloned().ok_or_else(missing)
    }

    fn projectors(&self, bucket: &BucketInfo) -> Result<Arc<dyn ProjectorApi>> {
        let catalog = self.context.catalog.load();
        source_of(&*self.context.directory, bucket, |node| catalog.nodes.get(&node).cloned())
    }

    /// Returns true if a bucket may move to another projector without a statement of a user.
    fn may_move(&self, bucket: &BucketInfo) -> bool {
        let catalog = self.context.catalog.load();
        let copies = catalog.copies.get(&bucket.id);
        bucket.source.can_span_projectors()
            || copies.is_some_and(|copies| copies.wanted > 1 || copies.move_to.is_some())
    }

    /// Returns the end of the source's durable history.
    pub async fn end(&self) -> Result<SourcePlace> {
        loop {
            let bucket = self.bucket()?;
            match self.projectors(&bucket)?.place(self.bucket).await {
                // A vbucket may be between two owners, or a bucket between two leaders.
                Err(error) if error.is_retry() && self.may_move(&bucket) => {
                    tokio::time::sleep(self.context.config.retry).await;
                }
                found => return found,
            }
        }
    }
}
