//! The checks before a call: whether the user has what a command needs, and for which object it may be sent.

use std::sync::Arc;

use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, TransactionId};
use proto::model::users::{NewSecret, Privilege, UserChange, UserCommand};
use proto::rpc::command::{Command, Expected, Need, ObjectName};
use proto::{Error, ErrorCode, Result};

use super::Authorized;
use super::wrapped::AuthorizedPin;
use crate::backend::cluster_backend::absent;
use crate::principal::Proof;
use crate::sql::backend::{Backend, EpochPin};

/// The outcome of a check of a command that is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckOutcome {
    /// There is nothing to do, since IF EXISTS names nothing.
    Nothing,
    /// The command may be sent, for the objects that its names mean now: the names may mean others by the time it is
    /// applied.
    For(Expected),
}

impl CheckOutcome {
    /// The command may be sent, whatever its names mean.
    const ALL: Self = Self::For(Expected::Anything);
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

    pub(super) async fn known<T>(
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
    pub(super) async fn meets(&self, need: Need) -> Result<CheckOutcome> {
        let rights = &self.rights;
        let of_bucket = match need {
            Need::Process(_) => {
                let what = "this command comes from processes of the cluster only";
                return Err(Error::new(ErrorCode::NotAllowed, what));
            }
            Need::All(privilege) => return rights.on_all(privilege).map(|()| CheckOutcome::ALL),
            Need::Oneself(name) if name == rights.who.name => {
                return rights.view().map(|_| CheckOutcome::For(Expected::Sender));
            }
            Need::OwnPassword(name)
                if name == rights.who.name && matches!(rights.who.by, Proof::Password(_)) =>
            {
                return rights.view().map(|_| CheckOutcome::For(Expected::Sender));
            }
            Need::Oneself(_) | Need::OwnPassword(_) => {
                return rights.on_all(Privilege::Admin).map(|()| CheckOutcome::ALL);
            }
            Need::Generation(privilege, from, bucket) => {
                rights.on_index(privilege, from)?;
                let Some(name) = bucket else { return Ok(CheckOutcome::ALL) };
                let found = self.known_bucket(&name).await?.map(|bucket| bucket.id);
                (privilege, ObjectName { name, may_lack: false }, found)
            }
            Need::Indexes(privilege, indexes) => {
                let catalog = self.cluster.catalog();
                for index in indexes {
                    let info =
                        catalog.indexes.get(&index).ok_or_else(|| absent(&index.to_string()))?;
                    rights.on(privilege, info.bucket)?;
                }
                return Ok(CheckOutcome::ALL);
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
                Ok(CheckOutcome::For(Expected::Bucket(rights.view()?.user_bucket(bucket))))
            }
            (_, ObjectName { may_lack: true, .. }, None) => Ok(CheckOutcome::Nothing),
            (_, ObjectName { name, .. }, None) => Err(absent(&name)),
        }
    }

    /// A user's own new password keeps the end date of the previous one: only an administrator may set that date.
    pub(super) fn with_own_end(&self, command: Command) -> Result<Command> {
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
    pub(super) fn without_names(&self, error: Error) -> Error {
        let knows_all = self.rights.view().is_ok_and(|view| !view.user.grants.all.is_empty());
        match error.code {
            ErrorCode::OverLimit if !knows_all => Error::new(error.code, error.message)
                .with_hint("drop what is no longer needed: SHOW INDEXES and SHOW BUCKETS list it"),
            _ => error,
        }
    }

    /// The open transactions with a number, if the user may end them.
    pub(super) async fn may_cancel(&self, transaction: TransactionId) -> Result<bool> {
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
    pub(super) fn pinned(&self, pin: Box<dyn EpochPin>) -> Result<Box<dyn EpochPin>> {
        Ok(Box::new(AuthorizedPin::new(pin, self.rights.clone())?))
    }
}
