//! Wrappers of a user's transactions, leases and scans, which check the user's rights at each
//! step. A withdrawn grant therefore ends them.

use std::sync::Arc;

use async_trait::async_trait;
use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, Epoch, TransactionId, TransactionPlace};
use proto::model::users::Privilege;
use proto::rpc::api::{CheckedWrites, Decision, WriteReply};
use proto::rpc::scan::UncommittedView;
use proto::{Error, ErrorCode, Result};
use router::ScanBatch;

use super::open::{BatchSource, BucketTransaction, EpochPin};
use super::rights::{READ_OR_WRITE, Rights};

/// A user's transaction in a bucket, which checks the user's rights at each step.
pub(super) struct AuthorizedTransaction {
    inner: Arc<dyn BucketTransaction>,
    rights: Arc<Rights>,
}

impl AuthorizedTransaction {
    /// Wraps a transaction so that each step checks the user's rights.
    pub(super) fn new(inner: Arc<dyn BucketTransaction>, rights: Arc<Rights>) -> Self {
        Self { inner, rights }
    }

    /// Returns an error if the user may no longer write. The error names the bucket, which the
    /// user knows already. The error must differ from the one for a lost bucket, which would make
    /// the outcome of a commit unknown.
    fn check_may_write(&self) -> Result<()> {
        self.rights.check_on(Privilege::Write, self.inner.bucket().id).map_err(|error| match error
            .code
        {
            ErrorCode::Unknown => {
                let what = "the privileges on a bucket of the transaction were withdrawn";
                Error::new(ErrorCode::NotAllowed, what).with_hint("roll the transaction back")
            }
            _ => error,
        })
    }
}

#[async_trait]
impl BucketTransaction for AuthorizedTransaction {
    fn id(&self) -> TransactionId {
        self.inner.id()
    }

    fn bucket(&self) -> &BucketInfo {
        self.inner.bucket()
    }

    fn own_changes(&self) -> Option<UncommittedView> {
        self.inner.own_changes()
    }

    fn check(&self) -> Result<()> {
        self.inner.check()
    }

    async fn write(&self, snapshot: Option<Epoch>, writes: CheckedWrites) -> Result<u64> {
        self.check_may_write()?;
        self.inner.write(snapshot, writes).await
    }

    async fn rollback_to(&self, place: TransactionPlace) -> Result<()> {
        self.inner.rollback_to(place).await
    }

    async fn commit(
        &self,
        snapshot: Option<Epoch>,
        participants: &[BucketId],
    ) -> Result<WriteReply> {
        self.check_may_write()?;
        self.inner.commit(snapshot, participants).await
    }

    async fn prepare(
        &self,
        snapshot: Option<Epoch>,
        joint: TransactionId,
        participants: &[BucketId],
    ) -> Result<u64> {
        self.check_may_write()?;
        self.inner.prepare(snapshot, joint, participants).await
    }

    /// Forwards the decision without a check of rights: the deciding bucket has already committed
    /// or rolled back, and the other buckets must do the same.
    async fn decide(&self, joint: TransactionId, decision: Decision) -> Result<WriteReply> {
        self.inner.decide(joint, decision).await
    }
}

/// A user's lease on an epoch, which checks the user's rights when it is used.
pub(super) struct AuthorizedPin {
    inner: Box<dyn EpochPin>,
    rights: Arc<Rights>,
    catalog: Arc<Catalog>,
}

impl AuthorizedPin {
    /// Wraps a lease so that each use checks the user's rights.
    pub(super) fn new(inner: Box<dyn EpochPin>, rights: Arc<Rights>) -> Result<Self> {
        let catalog = rights.view()?.visible_part_of(&inner.catalog());
        Ok(Self { inner, rights, catalog })
    }
}

#[async_trait]
impl EpochPin for AuthorizedPin {
    fn epoch(&self) -> Epoch {
        self.inner.epoch()
    }

    fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog)
    }

    async fn pin_at(&self, bucket: BucketId, timeout_ms: u64) -> Result<Box<dyn EpochPin>> {
        self.rights.check_any_on(&READ_OR_WRITE, bucket)?;
        let pin = self.inner.pin_at(bucket, timeout_ms).await?;
        Ok(Box::new(Self::new(pin, Arc::clone(&self.rights))?))
    }
}

/// A user's scan, which checks the user's rights at each batch.
pub(super) struct AuthorizedBatches {
    inner: Box<dyn BatchSource>,
    rights: Arc<Rights>,
    bucket: BucketId,
}

impl AuthorizedBatches {
    /// Wraps a scan of an index of `bucket` so that each batch checks the user's rights.
    pub(super) fn new(inner: Box<dyn BatchSource>, rights: Arc<Rights>, bucket: BucketId) -> Self {
        Self { inner, rights, bucket }
    }
}

#[async_trait]
impl BatchSource for AuthorizedBatches {
    fn epoch(&self) -> Epoch {
        self.inner.epoch()
    }

    async fn next(&mut self) -> Result<Option<ScanBatch>> {
        self.rights.check_on(Privilege::Scan, self.bucket)?;
        self.inner.next().await
    }

    fn park(&mut self) {
        self.inner.park();
    }

    fn end_page_after(&mut self, rows: u64) {
        self.inner.end_page_after(rows);
    }

    fn page_is_full(&self) -> bool {
        self.inner.page_is_full()
    }

    fn token(&self) -> Result<Option<String>> {
        self.inner.token()
    }
}
