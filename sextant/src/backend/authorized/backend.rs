//! The calls of the cluster, each of which begins with a check of rights.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use bytes::Bytes;
use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::cut::{Cut, WritePosition};
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, NodeId, ProducerTransactionId,
    TransactionId,
};
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::pushed_commit::PushedCommit;
use proto::model::users::{Privilege, UserCommand, Users};
use proto::rpc::api::{
    CheckedWrites, CoordinatorChange, CoordinatorChanged, CoordinatorStatus, PushReply,
    PushRequest, TransactionPush, TransactionPushed, TransactionStatus, WriteReply,
};
use proto::rpc::command::{Command, Expected, Need, Outcome, Proposal};
use proto::rpc::scan::{Consistency, ScanRequest};
use proto::{Error, Result};
use router::Knowledge;

use super::Authorized;
use super::reports;
use super::rights::READ_OR_WRITE;
use super::wrapped::{AuthorizedBatches, AuthorizedTransaction};
use crate::audit::Attempt;
use crate::principal::Principal;
use crate::sql::backend::{
    Backend, BatchSource, BucketTransaction, EpochPin, FigureKind, TransactionView,
};

#[async_trait]
impl Backend for Authorized {
    fn principal(&self) -> &Principal {
        &self.rights.principal
    }

    fn may_read(&self, bucket: BucketId) -> Result<()> {
        self.rights.on(Privilege::Scan, bucket)
    }

    fn catalog(&self) -> Arc<Catalog> {
        self.rights.shown()
    }

    fn catalog_of(&self, seen: FigureKind) -> Result<Arc<Catalog>> {
        match seen {
            FigureKind::Buckets => Ok(Arc::clone(self.rights.view()?.monitored())),
            FigureKind::Cluster => {
                self.rights.on_all(Privilege::Monitor)?;
                Ok(self.rights.shown())
            }
        }
    }

    fn knowledge(&self) -> Option<(NodeId, Knowledge)> {
        self.cluster.knowledge()
    }

    async fn catch_up(&self) -> Result<()> {
        self.rights.view()?;
        self.cluster.catch_up().await
    }

    async fn command(&self, proposal: Proposal) -> Result<Outcome> {
        // The check follows the wait, so that it holds when the command is sent.
        let _place = self.definitions.take(self.rights.who.id).await?;
        self.may_send(&proposal.command)?;
        if self.rights.on_all(Privilege::Admin).is_err() {
            coordinator::check_reserve(&self.cluster.catalog(), &proposal.command)?;
        }
        let proposed = self.cluster.command(proposal).await;
        proposed.map_err(|error| self.without_names(error))
    }

    fn users(&self) -> Arc<Users> {
        let view = self.rights.view();
        view.map(|view| reports::users(&self.rights.known.now(), &view.user)).unwrap_or_default()
    }

    async fn change_users(&self, command: UserCommand) -> Result<Outcome> {
        let command = Command::Users(Box::new(command));
        let need = command.need();
        let is_own = matches!(&need, Need::OwnPassword(name) if self.is_own(name));
        let of_sender = is_own || matches!(&need, Need::Oneself(name) if self.is_own(name));
        let _place = self.definitions.take(self.rights.who.id).await?;
        self.meets(&need)?;
        let expected = if of_sender { Expected::Sender } else { Expected::Anything };
        let proposal = Proposal { expected, ..self.with_own_end(command)?.into() };
        let changed = self.cluster.run_users(proposal).await?;
        if let Outcome::User { cas, .. } = changed
            && is_own
        {
            // All other sessions of the user end.
            self.rights.who.own_change.store(cas, Ordering::Relaxed);
        }
        Ok(changed)
    }

    fn audited(&self, attempt: &Attempt) -> Option<Arc<dyn Backend>> {
        let (cluster, rights) = (self.cluster.with_attempt(attempt), self.rights.clone());
        Some(Arc::new(Self { cluster, rights, definitions: self.definitions.clone() }))
    }

    fn note_error(&self, sqlstate: &'static str) {
        self.cluster.note_error(sqlstate);
    }

    async fn wait_ready(&self, index: IndexId, generation: Option<Generation>) -> Result<()> {
        if let Some(info) = self.cluster.catalog().indexes.get(&index) {
            self.rights.one_of(&Privilege::ALL, info.bucket)?;
        }
        self.cluster.wait_ready(index, generation).await
    }

    async fn wait_version(&self, data_set: BucketId, version: u64) -> Result<()> {
        self.rights.one_of(&Privilege::ALL, data_set)?;
        self.cluster.wait_version(data_set, version).await
    }

    fn may_send(&self, command: &Command) -> Result<()> {
        self.meets(&command.need())
    }

    async fn wait_drained(&self, node: NodeId) -> Result<()> {
        self.rights.on_all(Privilege::Admin)?;
        self.cluster.wait_drained(node).await
    }

    async fn rebalance(&self, request: RebalanceRequest) -> Result<RebalancePlan> {
        let need = match request.index {
            Some(index) => Need::index(Privilege::Rebalance, index),
            None => Need::All(Privilege::Rebalance),
        };
        let _place = match request.dry_run {
            true => None,
            false => Some(self.definitions.take(self.rights.who.id).await?),
        };
        self.meets(&need)?;
        self.cluster.rebalance(request).await
    }

    async fn change_coordinators(&self, change: CoordinatorChange) -> Result<CoordinatorChanged> {
        let _place = self.definitions.take(self.rights.who.id).await?;
        self.rights.on_all(Privilege::Admin)?;
        self.cluster.change_coordinators(change).await
    }

    async fn status(&self) -> Result<CoordinatorStatus> {
        let view = self.rights.view()?;
        let is_whole = view.user.grants.all.allow(Privilege::Monitor);
        Ok(reports::restricted(self.cluster.status().await?, view.shown(), is_whole))
    }

    async fn write(&self, bucket: &BucketInfo, writes: CheckedWrites) -> Result<WriteReply> {
        self.rights.on(Privilege::Write, bucket.id)?;
        self.cluster.write(bucket, writes).await
    }

    async fn get(&self, bucket: &BucketInfo, ids: Vec<String>) -> Result<Vec<Option<Bytes>>> {
        self.rights.on(Privilege::Scan, bucket.id)?;
        self.cluster.get(bucket, ids).await
    }

    /// The definition of an index reads documents: its split points and remarks reveal some of their values.
    async fn sample(&self, bucket: &BucketInfo) -> Result<Vec<Bytes>> {
        self.rights.one_of(&[Privilege::Define, Privilege::Scan], bucket.id)?;
        self.cluster.sample(bucket).await
    }

    async fn pin(
        &self,
        index: LocalIndexId,
        consistency: &Consistency,
        timeout_ms: u64,
    ) -> Result<Box<dyn EpochPin>> {
        self.rights.on_index(Privilege::Scan, index)?;
        self.pinned(self.cluster.pin(index, consistency, timeout_ms).await?)
    }

    async fn pin_bucket(&self, bucket: BucketId, timeout_ms: u64) -> Result<Box<dyn EpochPin>> {
        self.rights.one_of(&READ_OR_WRITE, bucket)?;
        self.pinned(self.cluster.pin_bucket(bucket, timeout_ms).await?)
    }

    fn begin(
        &self,
        bucket: &Arc<BucketInfo>,
        owner: &str,
        id: Option<TransactionId>,
    ) -> Result<Arc<dyn BucketTransaction>> {
        self.rights.on(Privilege::Write, bucket.id)?;
        let begun = self.cluster.begin(bucket, owner, id)?;
        Ok(Arc::new(AuthorizedTransaction::new(begun, self.rights.clone())))
    }

    async fn transactions(&self) -> Result<Vec<TransactionStatus>> {
        let view = self.rights.view()?;
        let mut open = self.cluster.transactions().await?;
        open.retain(|open| {
            view.on(open.bucket).allow(Privilege::Monitor)
                || !view.on(open.bucket).is_empty() && self.rights.is_own(&open.owner)
        });
        Ok(open)
    }

    async fn committed(&self, transaction: TransactionId) -> Result<Vec<WriteReply>> {
        let view = self.rights.view()?;
        let is_whole = view.user.grants.all.allow(Privilege::Monitor);
        let found = self.cluster.committed(transaction).await.map_err(|error| match is_whole {
            true => error,
            // The reason may name a bucket that the user may not know.
            false => Error::new(error.code, "it is not known yet what became of the transaction")
                .with_hint("try again later"),
        });
        let mut replies = found?;
        replies.retain(|reply| !view.on(reply.position.bucket).is_empty());
        Ok(replies)
    }

    async fn cancel_transaction(&self, transaction: TransactionId) -> Result<bool> {
        match self.may_cancel(transaction).await? {
            true => self.cluster.cancel_transaction(transaction).await,
            false => Ok(false),
        }
    }

    async fn get_in(
        &self,
        bucket: &BucketInfo,
        ids: Vec<String>,
        view: TransactionView,
    ) -> Result<Vec<Option<Bytes>>> {
        self.rights.on(Privilege::Scan, bucket.id)?;
        self.cluster.get_in(bucket, ids, view).await
    }

    async fn epoch_of(&self, write: &WritePosition, timeout_ms: u64) -> Result<Epoch> {
        self.rights.one_of(&READ_OR_WRITE, write.bucket)?;
        self.cluster.epoch_of(write, timeout_ms).await
    }

    async fn scan(
        &self,
        request: ScanRequest,
        token: Option<&str>,
    ) -> Result<Box<dyn BatchSource>> {
        let bucket = self.rights.on_index(Privilege::Scan, request.index)?;
        let scan = self.cluster.scan(request, token).await?;
        Ok(Box::new(AuthorizedBatches::new(scan, self.rights.clone(), bucket)))
    }

    async fn positions(&self, bucket: &BucketInfo) -> Result<Cut> {
        self.rights.on(Privilege::Write, bucket.id)?;
        self.cluster.positions(bucket).await
    }

    async fn push(&self, bucket: &BucketInfo, request: PushRequest) -> Result<PushReply> {
        self.rights.on(Privilege::Write, bucket.id)?;
        self.cluster.push(bucket, request).await
    }

    async fn push_in(
        &self,
        bucket: &BucketInfo,
        request: TransactionPush,
    ) -> Result<TransactionPushed> {
        self.rights.on(Privilege::Write, bucket.id)?;
        self.cluster.push_in(bucket, request).await
    }

    async fn commit_pushed(&self, bucket: &BucketInfo, commit: PushedCommit) -> Result<PushReply> {
        self.rights.on(Privilege::Write, bucket.id)?;
        self.cluster.commit_pushed(bucket, commit).await
    }

    async fn abort_pushed(
        &self,
        bucket: &BucketInfo,
        transaction: ProducerTransactionId,
    ) -> Result<()> {
        self.rights.on(Privilege::Write, bucket.id)?;
        self.cluster.abort_pushed(bucket, transaction).await
    }
}
