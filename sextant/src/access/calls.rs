//! The access of a session or a request to the cluster, with the calls that change nothing.

use std::sync::Arc;

use bytes::Bytes;
use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::cut::WritePosition;
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, NodeId, TransactionId,
};
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::users::{Privilege, Users};
use proto::rpc::api::{CoordinatorStatus, TransactionStatus, WriteReply};
use proto::rpc::command::{Command, RequiredRights};
use proto::rpc::scan::{Consistency, ScanRequest};
use proto::{Error, ErrorCode, Result};
use router::Knowledge;

use super::cluster::Cluster;
use super::open::{BatchSource, EpochPin, FigureKind, Relation, TransactionView};
use super::reports;
use super::rights::{READ_OR_WRITE, Rights};
use super::view::View;
use super::wrapped::{AuthorizedBatches, AuthorizedPin};
use crate::audit::Attempt;
use crate::principal::Principal;

/// The access of a principal to the cluster. A clone is cheap. Each call checks the principal's
/// newest rights.
#[derive(Clone)]
pub struct Access {
    pub(super) cluster: Arc<dyn Cluster>,
    principal: Principal,
    /// The rights of a user; `None` for a trusted principal, which may do everything.
    pub(super) rights: Option<Arc<Rights>>,
}

impl Access {
    /// Creates the access of a trusted principal.
    pub(crate) fn trusted(cluster: Arc<dyn Cluster>) -> Self {
        Self { cluster, principal: Principal::Trusted, rights: None }
    }

    /// Creates the access of a user.
    pub(super) fn of_user(rights: Rights) -> Self {
        let principal = Principal::User(Arc::clone(&rights.who));
        Self { cluster: Arc::clone(&rights.cluster), principal, rights: Some(Arc::new(rights)) }
    }

    /// Returns the sender of the requests.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Runs a check on the rights of a user. A trusted principal always passes.
    pub(super) fn check(&self, check: impl FnOnce(&Rights) -> Result<()>) -> Result<()> {
        self.rights.as_deref().map_or(Ok(()), check)
    }

    /// Returns the part of the cluster that the user may see at present; `None` for a trusted
    /// principal, which sees everything. Returns an error if the user was dropped.
    fn view(&self) -> Result<Option<Arc<View>>> {
        self.rights.as_ref().map(|rights| rights.view()).transpose()
    }

    /// Returns an error unless the principal has a privilege on a bucket and its indexes.
    pub fn check_privilege(&self, privilege: Privilege, bucket: BucketId) -> Result<()> {
        self.check(|rights| rights.check_on(privilege, bucket))
    }

    /// Returns an error unless the principal may send a command. Statements whose errors reveal
    /// which nodes exist call this method first.
    pub fn check_command(&self, command: &Command) -> Result<()> {
        self.check(|rights| rights.check_need(&command.need()))
    }

    /// Returns the newest catalog of this process without the buckets and indexes on which the
    /// principal has no privilege.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.rights
            .as_ref()
            .map_or_else(|| self.cluster.catalog(), |rights| rights.visible_catalog())
    }

    /// Returns the newest catalog, restricted to the buckets and indexes whose figures of the
    /// kind `seen` the principal may see. With `None`, the result contains everything that the
    /// principal may see.
    pub fn catalog_of(&self, seen: Option<FigureKind>) -> Result<Arc<Catalog>> {
        match (seen, &self.rights) {
            (Some(FigureKind::Buckets), Some(rights)) => {
                return Ok(Arc::clone(rights.view()?.monitored_catalog()));
            }
            (Some(FigureKind::Cluster), Some(rights)) => rights.check_on_all(Privilege::Monitor)?,
            _ => {}
        }
        Ok(self.catalog())
    }

    /// Returns the node number of this process's router and the state of the router's connection
    /// to the coordinators; `None` if the process has no router.
    pub fn knowledge(&self) -> Option<(NodeId, Knowledge)> {
        self.cluster.knowledge()
    }

    /// Finds an object in the catalog. If it is absent, this process first catches up with the
    /// coordinators, because another process may have just created it.
    pub async fn find<T>(&self, find: impl Fn(&Catalog) -> Option<T>) -> Result<Option<T>> {
        if let Some(found) = find(&self.catalog()) {
            return Ok(Some(found));
        }
        self.view()?;
        self.cluster.catch_up().await?;
        Ok(find(&self.catalog()))
    }

    /// Returns the index with a name, or else the bucket with that name. For the name of a data
    /// set, this is the bucket of its current version. While no coordinator answers, the present
    /// catalog is used.
    pub async fn relation(&self, name: &str) -> Result<Relation> {
        let index = |catalog: &Catalog| catalog.index(name).cloned().map(Relation::Index);
        let bucket = |catalog: &Catalog| catalog.read_bucket(name).cloned().map(Relation::Bucket);
        match self.find(|catalog| index(catalog).or_else(|| bucket(catalog))).await {
            Err(error) if !error.is_retry() => Err(error),
            found => found.ok().flatten().ok_or_else(|| unknown_name_error(name)),
        }
    }

    /// Returns the bucket with a name.
    pub async fn bucket(&self, name: &str) -> Result<Arc<BucketInfo>> {
        match self.relation(name).await? {
            Relation::Bucket(bucket) => Ok(bucket),
            Relation::Index(_) => {
                Err(Error::new(ErrorCode::Unknown, format!("{name:?} is an index, not a bucket")))
            }
        }
    }

    /// Returns the users that the principal may know. The result contains the hashes of their
    /// secrets and must never be shown.
    pub fn users(&self) -> Arc<Users> {
        let users = self.cluster.users();
        match self.view() {
            Ok(Some(view)) => reports::users(&users, &view.user),
            Ok(None) => users,
            Err(_) => Arc::default(),
        }
    }

    /// Returns the coordinator's status with its knowledge of the nodes, restricted to what the principal may see.
    pub async fn status(&self) -> Result<CoordinatorStatus> {
        let view = self.view()?;
        let status = self.cluster.status().await?;
        Ok(match view {
            Some(view) => reports::visible_status(status, &view),
            None => status,
        })
    }

    /// Returns the open transactions of all buckets that have changes and that the principal has
    /// opened or may monitor. The transactions of a projector that does not answer are missing.
    pub async fn transactions(&self) -> Result<Vec<TransactionStatus>> {
        let view = self.view()?;
        let mut open = self.cluster.transactions().await?;
        if let (Some(view), Some(rights)) = (view, &self.rights) {
            open.retain(|open| {
                view.privileges_on(open.bucket).allow(Privilege::Monitor)
                    || !view.privileges_on(open.bucket).is_empty()
                        && rights.is_own_transaction(&open.owner)
            });
        }
        Ok(open)
    }

    /// Returns the results of a transaction's commit, one per bucket, as far as projectors still
    /// remember them and the principal may know them.
    pub async fn committed(&self, transaction: TransactionId) -> Result<Vec<WriteReply>> {
        let view = self.view()?;
        let found = self.cluster.committed(transaction).await;
        match view {
            Some(view) => reports::visible_results(found, &view),
            None => found,
        }
    }

    /// Counts an error that is returned to a client.
    pub fn note_error(&self, sqlstate: &'static str) {
        self.cluster.note_error(sqlstate);
    }

    /// Waits until an index, or one generation of it, serves scans. Returns an error if it was
    /// dropped.
    pub async fn wait_ready(&self, index: IndexId, generation: Option<Generation>) -> Result<()> {
        self.check(|rights| match self.cluster.catalog().indexes.get(&index) {
            Some(info) => rights.check_any_on(&Privilege::ALL, info.bucket),
            None => Ok(()),
        })?;
        self.cluster.wait_ready(index, generation).await
    }

    /// Waits until a version of a data set is current, or has been current before. Returns an
    /// error if the version ends without ever being current.
    pub async fn wait_version(&self, data_set: BucketId, version: u64) -> Result<()> {
        self.check(|rights| rights.check_any_on(&Privilege::ALL, data_set))?;
        self.cluster.wait_version(data_set, version).await
    }

    /// Waits until no slice is left on a draining node.
    pub async fn wait_drained(&self, node: NodeId) -> Result<()> {
        self.check(|rights| rights.check_on_all(Privilege::Admin))?;
        self.cluster.wait_drained(node).await
    }

    /// Plans a rebalance of an index or of all.
    pub async fn plan_rebalance(&self, index: Option<IndexId>) -> Result<RebalancePlan> {
        self.may_rebalance(index)?;
        let request = RebalanceRequest { index, dry_run: true };
        self.cluster.rebalance(request, &Attempt::default()).await
    }

    /// Returns an error unless the principal may rebalance one index, or all indexes for `None`.
    pub(super) fn may_rebalance(&self, index: Option<IndexId>) -> Result<()> {
        let need = match index {
            Some(index) => RequiredRights::index(Privilege::Rebalance, index),
            None => RequiredRights::All(Privilege::Rebalance),
        };
        self.check(|rights| rights.check_need(&need))
    }
}

/// Reads of documents and indexes.
impl Access {
    /// Reads documents by id, either the newest ones or those that a transaction sees. The result
    /// has `None` for each missing document.
    pub async fn get(
        &self,
        bucket: &BucketInfo,
        ids: Vec<String>,
        view: TransactionView,
    ) -> Result<Vec<Option<Bytes>>> {
        self.check_privilege(Privilege::Scan, bucket.id)?;
        self.cluster.get(bucket, ids, view).await
    }

    /// Returns a sample of a bucket's documents from its projectors, for the definition of an
    /// index: the split points and notices of the definition reveal some of the values.
    pub async fn sample(&self, bucket: &BucketInfo) -> Result<Vec<Bytes>> {
        self.check(|rights| rights.check_any_on(&[Privilege::Define, Privilege::Scan], bucket.id))?;
        self.cluster.sample(bucket).await
    }

    /// Begins a scan, or continues an interrupted one by its token.
    pub async fn scan(
        &self,
        request: ScanRequest,
        token: Option<&str>,
    ) -> Result<Box<dyn BatchSource>> {
        let Some(rights) = &self.rights else { return self.cluster.scan(request, token).await };
        let bucket = rights.check_on_index(Privilege::Scan, request.index)?;
        let scan = self.cluster.scan(request, token).await?;
        Ok(Box::new(AuthorizedBatches::new(scan, Arc::clone(rights), bucket)))
    }

    /// Chooses the epoch, and the moment, that a transaction reads in the bucket of an index, and
    /// leases them. Used for the first read of a transaction that accepts slightly old data.
    pub async fn pin(
        &self,
        index: LocalIndexId,
        consistency: &Consistency,
        timeout_ms: u64,
    ) -> Result<Box<dyn EpochPin>> {
        self.check(|rights| rights.check_on_index(Privilege::Scan, index).map(drop))?;
        self.pinned(self.cluster.pin(index, consistency, timeout_ms).await?)
    }

    /// Fixes a moment that covers everything that was acknowledged before in all buckets, and
    /// leases the epoch of one bucket at that moment. Used for the first read of a transaction that
    /// may write.
    pub async fn pin_bucket(&self, bucket: BucketId, timeout_ms: u64) -> Result<Box<dyn EpochPin>> {
        self.check(|rights| rights.check_any_on(&READ_OR_WRITE, bucket))?;
        self.pinned(self.cluster.pin_bucket(bucket, timeout_ms).await?)
    }

    /// Returns the oldest epoch that contains a write; the error `InvalidParameter` if the
    /// projector of the write's bucket has lost it.
    pub async fn epoch_of(&self, write: &WritePosition, timeout_ms: u64) -> Result<Epoch> {
        self.check(|rights| rights.check_any_on(&READ_OR_WRITE, write.bucket))?;
        self.cluster.epoch_of(write, timeout_ms).await
    }

    /// Wraps a lease so that it checks the user's rights; leaves the lease of a trusted principal
    /// unchanged.
    fn pinned(&self, pin: Box<dyn EpochPin>) -> Result<Box<dyn EpochPin>> {
        match &self.rights {
            Some(rights) => Ok(Box::new(AuthorizedPin::new(pin, Arc::clone(rights))?)),
            None => Ok(pin),
        }
    }
}

/// Returns the error for a name that no index or bucket has.
pub fn unknown_name_error(name: &str) -> Error {
    Error::new(ErrorCode::Unknown, format!("there is no index or bucket {name:?}"))
        .with_hint("SHOW INDEXES and SHOW BUCKETS list the names")
}
