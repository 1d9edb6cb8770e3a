//! The handle that permits one change of documents.

use std::sync::Arc;

use proto::Result;
use proto::model::bucket::BucketInfo;
use proto::model::cut::Cut;
use proto::model::ids::{ProducerTransactionId, TransactionId};
use proto::model::pushed_commit::PushedCommit;
use proto::model::users::Privilege;
use proto::rpc::api::{
    CheckedWrites, PushReply, PushRequest, TransactionPush, TransactionPushed, WriteReply,
};

use super::calls::Access;
use super::open::BucketTransaction;
use super::wrapped::AuthorizedTransaction;

/// A handle that permits one change of a bucket's documents. It exists only if the principal may
/// make this change now. The next change needs a new handle, and therefore a new check.
pub struct Writer<'a> {
    access: &'a Access,
    bucket: &'a Arc<BucketInfo>,
}

impl Access {
    /// Returns the handle for one change of a bucket's documents. Returns an error unless the
    /// principal may write these documents.
    pub fn writer<'a>(&'a self, bucket: &'a Arc<BucketInfo>) -> Result<Writer<'a>> {
        self.check_privilege(Privilege::Write, bucket.id)?;
        Ok(Writer { access: self, bucket })
    }
}

impl Writer<'_> {
    /// Writes documents atomically. They are durable when this method returns.
    pub async fn write(self, writes: CheckedWrites) -> Result<WriteReply> {
        self.access.cluster.write(self.bucket, writes).await
    }

    /// Begins a transaction that writes documents. `id` is the id that the transaction already has
    /// in other buckets; `None` gives it a new one. Nothing is sent before the first write. `owner`
    /// names the session in status reports.
    pub fn begin(
        self,
        owner: &str,
        id: Option<TransactionId>,
    ) -> Result<Arc<dyn BucketTransaction>> {
        let begun = self.access.cluster.begin(self.bucket, owner, id)?;
        Ok(match &self.access.rights {
            Some(rights) => Arc::new(AuthorizedTransaction::new(begun, Arc::clone(rights))),
            None => begun,
        })
    }

    /// Returns the end of the bucket's durable history, from which a producer continues.
    pub async fn positions(self) -> Result<Cut> {
        self.access.cluster.positions(self.bucket).await
    }

    /// Pushes mutations to the owners of their vbuckets. During the hand-over of a vbucket, the
    /// push waits for the new owner.
    pub async fn push(self, request: PushRequest) -> Result<PushReply> {
        self.access.cluster.push(self.bucket, request).await
    }

    /// Adds mutations to a producer's transaction at the owners of their vbuckets. During the
    /// hand-over of a vbucket, the call waits for the new owner.
    pub async fn push_in(self, request: TransactionPush) -> Result<TransactionPushed> {
        self.access.cluster.push_in(self.bucket, request).await
    }

    /// Commits a producer's transaction at the owners of its vbuckets, even if the owners change
    /// during the call.
    pub async fn commit_pushed(self, commit: PushedCommit) -> Result<PushReply> {
        self.access.cluster.commit_pushed(self.bucket, commit).await
    }

    /// Rolls back a producer's transaction at all owners of vbuckets.
    pub async fn abort_pushed(self, transaction: ProducerTransactionId) -> Result<()> {
        self.access.cluster.abort_pushed(self.bucket, transaction).await
    }
}
