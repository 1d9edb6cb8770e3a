//! Users, their secrets and their privileges ([`proto::model::users`]).
//!
//! The commands contain hashes of secrets, which routers have made, and the state checks their
//! form. Routers verify secrets, with the users that they receive; the state does not.
//!
//! Once the cluster has an administrator, it always keeps one: a command is refused if it would
//! remove the last administrator, or the last one with a password or a token that is valid at the
//! time of the command.
//!
//! A user has a number in addition to its name, and so has each password and each token.
//! `--skip-epochs` raises all of these numbers, so that a withdrawn secret never becomes valid
//! again. Grants end with their bucket, in the same command.

pub mod state;

use proto::model::users::{GrantOn, UserCommand};
use proto::rpc::command::Outcome;

use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, Effect};

impl Apply for Box<UserCommand> {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let bucket = match **self {
            UserCommand::Grant { on: GrantOn::Bucket(id), .. }
            | UserCommand::Revoke { on: GrantOn::Bucket(id), .. } => {
                state.bucket_of_command(id).map(drop)
            }
            _ => Ok(()),
        };
        let now = state.clock.now();
        let ((id, token), is_changed) = state.users.change(self, bucket, now)?;
        let (cas, effects) = match is_changed {
            true => (now.cas, vec![Effect::UsersChanged]),
            false => (state.users.current().cas, Vec::new()),
        };
        Ok((Outcome::User { id, token, cas }, effects))
    }
}
