//! Authorization: the one layer between the ports and the cluster that decides what a user may do.
//!
//! A port makes its backend by [`AuthorizedBackends`] for the principal of its connection or request. For a user this is an
//! [`Authorized`], and every call of [`Backend`] begins with a look at the user's rights: at the newest users that this process knows, not
//! at those of the log-in. So a grant that is withdrawn counts from the next call on, also in an open transaction and for the next batch
//! of a scan. A trusted principal gets the cluster itself.
//!
//! Everything is refused unless the user has a privilege for it. A bucket on which it has none does not exist for it, with its indexes:
//! the catalog that it gets lacks them ([`view`]), and a call that names one is answered by the same code in the same way as a call that
//! names nothing. A bucket on which it has some privilege, but not the needed one, is named in the refusal.
//!
//! Names are one space: CREATE tells that a name is taken, also by a bucket or an index that the user may not know.

mod needs;
mod reports;
mod rights;
#[cfg(test)]
mod tests;
mod view;
mod wrapped;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use bytes::Bytes;
use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::cut::{Cut, WritePosition};
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, NodeId, ProducerTransactionId,
    TransactionId, UserId,
};
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::pushed::PushedCommit;
use proto::model::users::{NewSecret, Privilege, UserChange, UserCommand, Users};
use proto::rpc::api::{
    CheckedWrites, CoordinatorChange, CoordinatorChanged, CoordinatorStatus, PushReply,
    PushRequest, TransactionPush, TransactionPushed, TransactionStatus, Write, WriteReply,
};
use proto::rpc::command::{Command, Outcome};
use proto::rpc::scan::{Consistency, ScanRequest};
use proto::{Error, ErrorCode, Result};
use router::Knowledge;

use self::needs::{Named, Need, of_command};
use self::rights::{READ_OR_WRITE, Rights};
use self::view::Views;
use self::wrapped::{AuthorizedBatches, AuthorizedPin, AuthorizedTransaction};
use super::cluster_backend::{ClusterBackend, absent};
use crate::audit::Attempt;
use crate::auth::known::KnownUsers;
use crate::flow::{ClientLimits, Definitions, Flow};
use crate::principal::{Principal, Proof};
use crate::sql::backend::{
    Backend, Backends, BatchSource, BucketTransaction, EpochPin, Seen, TransactionView,
};
use crate::sql::plan::Relation;

/// Makes the backends of sessions and requests.
pub struct AuthorizedBackends {
    cluster: ClusterBackend,
    known: Arc<KnownUsers>,
    views: Views,
    definitions: Definitions,
}

impl AuthorizedBackends {
    /// The backends over a cluster, for the users that it knows.
    pub fn new(cluster: &ClusterBackend) -> Self {
        Self::within(cluster, &Flow::new(ClientLimits::default()))
    }

    /// The same within the limits of a process.
    pub fn within(cluster: &ClusterBackend, flow: &Flow) -> Self {
        let (known, definitions) = (Arc::clone(cluster.known_users()), flow.definitions.clone());
        Self { cluster: cluster.clone(), known, views: Views::default(), definitions }
    }
}

impl Backends for AuthorizedBackends {
    fn for_principal(&self, principal: Principal) -> Arc<dyn Backend> {
        let cluster = self.cluster.with_principal(principal.clone());
        let Principal::User(who) = &principal else { return Arc::new(cluster) };
        let rights = Rights {
            cell: self.views.of(who.id),
            who: Arc::clone(who),
            known: Arc::clone(&self.known),
            cluster: cluster.clone(),
            principal,
        };
        Arc::new(Authorized { cluster, rights, definitions: self.definitions.clone() })
    }
}

/// The outcome of a check of a command that is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Met {
    /// There is nothing to do, since IF EXISTS names nothing.
    Nothing,
    /// It may be sent.
    All,
    /// It may be sent for this bucket only: another bucket may have its name by then.
    On(BucketId),
    /// It may be sent for this user only, the sender: another user may have its name by then.
    Of(UserId),
}

impl Met {
    /// The command as it is sent, if it is.
    fn meant(self, command: Command) -> Option<Command> {
        match self {
            Self::Nothing => None,
            Self::On(bucket) if command.names_bucket().is_some() => {
                Some(Command::On { bucket, command: Box::new(command) })
            }
            Self::Of(user) => Some(Command::Of { user, command: Box::new(command) }),
            Self::All | Self::On(_) => Some(command),
        }
    }
}

/// The cluster as a user may use it.
struct Authorized {
    cluster: ClusterBackend,
    rights: Rights,
    definitions: Definitions,
}

impl Authorized {
    /// Finds a bucket, by name, that the user may know; catches up with the coordinators first if it is not there.
    async fn known_bucket(&self, name: &str) -> Result<Option<Arc<BucketInfo>>> {
        self.known(|catalog| catalog.bucket(name).cloned()).await
    }

    /// Finds the bucket of an index, by the name of the index.
    async fn bucket_of_index(&self, name: &str) -> Result<Option<BucketId>> {
        self.known(|catalog| catalog.index(name).map(|index| index.bucket)).await
    }

    async fn known<T>(
        &self,
        find: impl Fn(&Catalog) -> Option<T> + Send + Sync,
    ) -> Result<Option<T>> {
        if let Some(found) = find(self.rights.view()?.shown()) {
            return Ok(Some(found));
        }
        self.cluster.catch_up().await;
        Ok(find(self.rights.view()?.shown()))
    }

    /// Checks what a command needs.
    async fn meets(&self, need: Need) -> Result<Met> {
        let rights = &self.rights;
        let of_bucket = match need {
            Need::Never => {
                let what = "this command comes from processes of the cluster only";
                return Err(Error::new(ErrorCode::NotAllowed, what));
            }
            Need::All(privilege) => return rights.on_all(privilege).map(|()| Met::All),
            Need::Oneself(name) if name == rights.who.name => {
                return rights.view().map(|_| Met::Of(rights.who.id));
            }
            Need::OwnPassword(name)
                if name == rights.who.name && matches!(rights.who.by, Proof::Password(_)) =>
            {
                return rights.view().map(|_| Met::Of(rights.who.id));
            }
            Need::Oneself(_) | Need::OwnPassword(_) => {
                return rights.on_all(Privilege::Admin).map(|()| Met::All);
            }
            Need::Generation(privilege, from, bucket) => {
                rights.on_index(privilege, from)?;
                let Some(name) = bucket else { return Ok(Met::All) };
                let found = self.known_bucket(&name).await?.map(|bucket| bucket.id);
                (privilege, Named { name, may_lack: false }, found)
            }
            Need::Indexes(privilege, indexes) => {
                let catalog = self.cluster.catalog();
                for index in indexes {
                    let info =
                        catalog.indexes.get(&index).ok_or_else(|| absent(&index.to_string()))?;
                    rights.on(privilege, info.bucket)?;
                }
                return Ok(Met::All);
            }
            Need::Bucket(privilege, named) => {
                let found = self.known_bucket(&named.name).await?.map(|bucket| bucket.id);
                (privilege, named, found)
            }
            Need::Index(privilege, named) => {
                let found = self.bucket_of_index(&named.name).await?;
                (privilege, named, found)
            }
        };
        match of_bucket {
            (privilege, _, Some(bucket)) => {
                rights.on(privilege, bucket)?;
                Ok(Met::On(self.cluster.catalog().user_bucket(bucket)))
            }
            (_, Named { may_lack: true, .. }, None) => Ok(Met::Nothing),
            (_, Named { name, .. }, None) => Err(absent(&name)),
        }
    }

    /// A user's own new password has the end date of the one before: that date is an administrator's to set.
    fn with_own_end(&self, command: Command) -> Result<Command> {
        let view = self.rights.view()?;
        if view.user.grants.all.allow(Privilege::Admin) {
            return Ok(command);
        }
        Ok(match command {
            Command::Users(mut users) => {
                if let UserCommand::Alter { change, .. } = &mut *users
                    && let UserChange::Secret(NewSecret::Password { until_unix_ms, .. }) = change
                {
                    *until_unix_ms = view.user.until_unix_ms;
                }
                Command::Users(users)
            }
            other => other,
        })
    }

    /// The advice at a limit of the cluster names what takes most room, which the user may not know.
    fn without_names(&self, error: Error) -> Error {
        let knows_all = self.rights.view().is_ok_and(|view| !view.user.grants.all.is_empty());
        match error.code {
            ErrorCode::OverLimit if !knows_all => Error::new(error.code, error.message)
                .with_hint("drop what is no longer needed: SHOW INDEXES and SHOW BUCKETS list it"),
            _ => error,
        }
    }

    /// The open transactions with a number, if the user may end them.
    async fn may_cancel(&self, transaction: TransactionId) -> Result<bool> {
        let open = self.cluster.transactions().await?;
        let mut is_found = false;
        for open in open.iter().filter(|open| open.transaction == transaction) {
            if self.rights.view()?.on(open.bucket).is_empty() {
                return Ok(false);
            }
            if !self.rights.is_own(&open.owner) {
                self.rights.on(Privilege::Admin, open.bucket)?;
            }
            is_found = true;
        }
        Ok(is_found)
    }

    /// Wraps a lease on an epoch.
    fn pinned(&self, pin: Box<dyn EpochPin>) -> Result<Box<dyn EpochPin>> {
        Ok(Box::new(AuthorizedPin::new(pin, self.rights.clone())?))
    }
}

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

    fn catalog_of(&self, seen: Seen) -> Result<Arc<Catalog>> {
        match seen {
            Seen::Buckets => Ok(Arc::clone(self.rights.view()?.monitored())),
            Seen::Cluster => {
                self.rights.on_all(Privilege::Monitor)?;
                Ok(self.rights.shown())
            }
        }
    }

    fn knowledge(&self) -> Option<(NodeId, Knowledge)> {
        self.cluster.knowledge()
    }

    async fn relation(&self, name: &str) -> Result<Relation> {
        let found = self.known(|catalog| ClusterBackend::find(catalog, name)).await?;
        found.ok_or_else(|| absent(name))
    }

    async fn command(&self, command: Command) -> Result<Outcome> {
        // The check comes behind the wait, so that it holds when the command is sent.
        let _place = self.definitions.take(self.rights.who.id).await?;
        let met = self.meets(of_command(&command)).await?;
        if self.rights.on_all(Privilege::Admin).is_err() {
            coordinator::check_reserve(&self.cluster.catalog(), &command)?;
        }
        let Some(command) = met.meant(self.with_own_end(command)?) else {
            return Ok(Outcome::Done);
        };
        self.cluster.command(command).await.map_err(|error| self.without_names(error))
    }

    fn users(&self) -> Arc<Users> {
        let view = self.rights.view();
        view.map(|view| reports::users(&self.rights.known.now(), &view.user)).unwrap_or_default()
    }

    async fn change_users(&self, command: UserCommand) -> Result<Outcome> {
        let command = Command::Users(Box::new(command));
        let need = of_command(&command);
        let is_own = matches!(&need, Need::OwnPassword(name) if *name == self.rights.who.name);
        let _place = self.definitions.take(self.rights.who.id).await?;
        let met = self.meets(need).await?;
        let Some(command) = met.meant(self.with_own_end(command)?) else {
            return Ok(Outcome::Done);
        };
        let changed = self.cluster.run_users(command).await?;
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

    async fn rebalance(&self, request: RebalanceRequest) -> Result<RebalancePlan> {
        let need = match &request.index {
            Some(name) => {
                Need::Index(Privilege::Rebalance, Named { name: name.clone(), may_lack: false })
            }
            None => Need::All(Privilege::Rebalance),
        };
        let _place = match request.dry_run {
            true => None,
            false => Some(self.definitions.take(self.rights.who.id).await?),
        };
        self.meets(need).await?;
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

    async fn write(&self, bucket: &BucketInfo, writes: Vec<Write>) -> Result<WriteReply> {
        self.rights.on(Privilege::Write, bucket.id)?;
        self.cluster.write(bucket, writes).await
    }

    async fn write_checked(
        &self,
        bucket: &BucketInfo,
        writes: CheckedWrites,
    ) -> Result<WriteReply> {
        self.rights.on(Privilege::Write, bucket.id)?;
        self.cluster.write_checked(bucket, writes).await
    }

    async fn get(&self, bucket: &BucketInfo, ids: Vec<String>) -> Result<Vec<Option<Bytes>>> {
        self.rights.on(Privilege::Scan, bucket.id)?;
        self.cluster.get(bucket, ids).await
    }

    /// Whoever defines indexes looks at documents for it: split points and remarks tell of some of their values.
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
