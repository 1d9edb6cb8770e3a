//! Checks that run before a command is sent: the user has the required privileges, and does not
//! set values that only an administrator may set.

use proto::model::users::{NewSecret, Privilege, UserChange, UserCommand};
use proto::rpc::command::{Command, RequiredRights};
use proto::{Error, ErrorCode, Result};

use super::rights::{Rights, unknown_object_error};
use crate::principal::Proof;

impl Rights {
    /// Returns an error unless the user has the privileges that a command requires (`need`).
    pub(super) fn check_need(&self, need: &RequiredRights) -> Result<()> {
        match need {
            RequiredRights::Process(_) => {
                let what = "this command comes from processes of the cluster only";
                Err(Error::new(ErrorCode::NotAllowed, what))
            }
            RequiredRights::All(privilege) => self.check_on_all(*privilege),
            RequiredRights::Oneself(name) if self.is_self(name) => self.view().map(drop),
            RequiredRights::OwnPassword(name)
                if self.is_self(name) && matches!(self.who.by, Proof::Password(_)) =>
            {
                self.view().map(drop)
            }
            RequiredRights::Oneself(_) | RequiredRights::OwnPassword(_) => {
                self.check_on_all(Privilege::Admin)
            }
            RequiredRights::Bucket(privilege, bucket) => self.check_on(*privilege, *bucket),
            RequiredRights::Indexes(privilege, indexes) => {
                let catalog = self.cluster.catalog();
                indexes.iter().try_for_each(|index| {
                    let info = catalog.indexes.get(index).ok_or_else(unknown_object_error)?;
                    self.check_on(*privilege, info.bucket)
                })
            }
        }
    }

    /// Returns an error if a user's definition would take the last free capacity of the catalog,
    /// which is reserved for administrators.
    pub(super) fn check_admin_reserve(&self, command: &Command) -> Result<()> {
        match self.check_on_all(Privilege::Admin) {
            Ok(()) => Ok(()),
            Err(_) => coordinator::check_reserve(&self.cluster.catalog(), command),
        }
    }

    /// Changes a command by which a user sets its own password: the password gets the end date of
    /// the previous one, since only an administrator may set that date.
    pub(super) fn with_previous_end_date(&self, mut command: Command) -> Result<Command> {
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

    /// Replaces the advice in an error about a limit of the cluster, unless the user may know all
    /// objects. The original advice names the largest objects.
    pub(super) fn without_object_names(&self, error: Error) -> Error {
        let knows_all = self.view().is_ok_and(|view| !view.user.grants.all.is_empty());
        match error.code {
            ErrorCode::OverLimit if !knows_all => Error::new(error.code, error.message)
                .with_hint("drop what is no longer needed: SHOW INDEXES and SHOW BUCKETS list it"),
            _ => error,
        }
    }
}
