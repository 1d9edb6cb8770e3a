//! Commands about users and privileges.

use super::kind::{AuditClass, CommandKind, RequiredRights};
use crate::model::users::{GrantOn, NewSecret, Privilege, UserChange, UserCommand};

/// A command that changes users or privileges.
pub type Users = Box<UserCommand>;

impl CommandKind for Users {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Users);

    fn required_rights(&self) -> RequiredRights {
        match &**self {
            UserCommand::Alter { name, change } => match change {
                UserChange::Secret(NewSecret::Password { .. }) => {
                    RequiredRights::OwnPassword(name.clone())
                }
                UserChange::DropToken(_) => RequiredRights::Oneself(name.clone()),
                // A token may outlive the password of its user.
                UserChange::Secret(NewSecret::Token { .. })
                | UserChange::DropPassword
                | UserChange::Limits(_) => RequiredRights::All(Privilege::Admin),
            },
            UserCommand::Create { .. } | UserCommand::Drop { .. } => {
                RequiredRights::All(Privilege::Admin)
            }
            UserCommand::Grant { on, .. } | UserCommand::Revoke { on, .. } => match on {
                GrantOn::All => RequiredRights::All(Privilege::Admin),
                GrantOn::Bucket(bucket) => RequiredRights::Bucket(Privilege::Admin, *bucket),
            },
        }
    }
}
