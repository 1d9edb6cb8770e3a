//! The checks before a call: whether the user has what a command needs.

use proto::model::ids::TransactionId;
use proto::model::users::{NewSecret, Privilege, UserChange, UserCommand};
use proto::rpc::command::{Command, Need};
use proto::{Error, ErrorCode, Result};

use super::Authorized;
use super::rights::gone;
use super::wrapped::AuthorizedPin;
use crate::principal::Proof;
use crate::sql::backend::{Backend, EpochPin};

impl Authorized {
    /// Checks what a command needs.
    pub(super) fn meets(&self, need: &Need) -> Result<()> {
        let rights = &self.rights;
        match need {
            Need::Process(_) => {
                let what = "this command comes from processes of the cluster only";
                Err(Error::new(ErrorCode::NotAllowed, what))
            }
            Need::All(privilege) => rights.on_all(*privilege),
            Need::Oneself(name) if self.is_own(name) => rights.view().map(drop),
            Need::OwnPassword(name)
                if self.is_own(name) && matches!(rights.who.by, Proof::Password(_)) =>
            {
                rights.view().map(drop)
            }
            Need::Oneself(_) | Need::OwnPassword(_) => rights.on_all(Privilege::Admin),
            Need::Bucket(privilege, bucket) => rights.on(*privilege, *bucket),
            Need::Indexes(privilege, indexes) => {
                let catalog = self.cluster.catalog();
                indexes.iter().try_for_each(|index| {
                    let info = catalog.indexes.get(index).ok_or_else(gone)?;
                    rights.on(*privilege, info.bucket)
                })
            }
        }
    }

    /// True for the name of the user itself.
    pub(super) fn is_own(&self, user: &str) -> bool {
        user == self.rights.who.name
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
