//! Commands about users and privileges.

use super::kind::{Audited, CommandKind, Need};
use crate::model::users::{GrantOn, NewSecret, Privilege, UserChange, UserCommand};

/// A command that changes users or privileges.
pub type Users = Box<UserCommand>;

impl CommandKind for Users {
    const AUDITED: Option<Audited> = Some(Audited::Users);

    fn need(&self) -> Need {
        match &**self {
            UserCommand::Alter { name, change } => match change {
                UserChange::Secret(NewSecret::Password { .. }) => Need::OwnPassword(name.clone()),
                UserChange::DropToken(_) => Need::Oneself(name.clone()),
                // A token may outlive the password of its user.
                UserChange::Secret(NewSecret::Token { .. })
                | UserChange::DropPassword
                | UserChange::Limits(_) => Need::All(Privilege::Admin),
            },
            UserCommand::Create { .. } | UserCommand::Drop { .. } => Need::All(Privilege::Admin),
            UserCommand::Grant { on, .. } | UserCommand::Revoke { on, .. } => match on {
                GrantOn::All => Need::All(Privilege::Admin),
                GrantOn::Bucket(bucket) => Need::Bucket(Privilege::Admin, *bucket),
            },
        }
    }
}
