//! The checks before a command is sent: the user has the required privileges, and does not set
//! values that only an administrator may set.

use proto::model::users::{NewSecret, Privilege, UserChange, UserCommand};
use proto::rpc::command::{Command, Need};
use proto::{Error, ErrorCode, Result};

use super::rights::{Rights, gone};
use crate::principal::Proof;

impl Rights {
    /// Checks what a command needs.
    pub(super) fn meets(&self, need: &Need) -> Result<()> {
        match need {
            Need::Process(_) => {
                let what = "this command comes from processes of the cluster only";
                Err(Error::new(ErrorCode::NotAllowed, what))
            }
            Need::All(privilege) => self.on_all(*privilege),
            Need::Oneself(name) if self.is_self(name) => self.view().map(drop),
            Need::OwnPassword(name)
                if self.is_self(name) && matches!(self.who.by, Proof::Password(_)) =>
            {
                self.view().map(drop)
            }
            Need::Oneself(_) | Need::OwnPassword(_) => self.on_all(Privilege::Admin),
            Need::Bucket(privilege, bucket) => self.on(*privilege, *bucket),
            Need::Indexes(privilege, indexes) => {
                let catalog = self.cluster.catalog();
                indexes.iter().try_for_each(|index| {
                    let info = catalog.indexes.get(index).ok_or_else(gone)?;
                    self.on(*privilege, info.bucket)
                })
            }
        }
    }

    /// Checks that a definition leaves the room that is reserved for administrators.
    pub(super) fn leaves_reserve(&self, command: &Command) -> Result<()> {
        match self.on_all(Privilege::Admin) {
            Ok(()) => Ok(()),
            Err(_) => coordinator::check_reserve(&self.cluster.catalog(), command),
        }
    }

    /// Keeps the end date of the previous password when a user sets a new one for itself: only an
    /// administrator may set that date.
    pub(super) fn with_own_end(&self, mut command: Command) -> Result<Command> {
        let user = &self.view()?.user;
        if !user.grants.all.allow(Privilege::Admin)
            && let Command::Users(users) = &mut command
            && let UserCommand::Alter { change, .. } = &mut **users
            && let UserChange::Secret(NewSecret::Password { until_unix_ms, .. }) = change
        {
            *until_unix_ms = user.until_unix_ms;
        }
        Ok(command)
    }

    /// Removes the advice of an error at a limit of the cluster, because it names the largest
    /// objects, which the user may not know.
    pub(super) fn without_names(&self, error: Error) -> Error {
        let knows_all = self.view().is_ok_and(|view| !view.user.grants.all.is_empty());
        match error.code {
            ErrorCode::OverLimit if !knows_all => Error::new(error.code, error.message)
                .with_hint("drop what is no longer needed: SHOW INDEXES and SHOW BUCKETS list it"),
            _ => error,
        }
    }
}
