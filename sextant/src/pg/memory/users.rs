//! Users in memory, with just enough checks for the statements of the tests.

use proto::model::ids::{TokenId, UserId};
use proto::model::users::{GrantOn, HashedToken, NewSecret, User, UserChange, UserCommand, Users};
use proto::rpc::command::Outcome;
use proto::{Error, ErrorCode, Result};
use std::sync::Arc;

/// Changes the users by a command.
pub(super) fn change(users: &mut Users, command: UserCommand) -> Result<Outcome> {
    users.cas += 1;
    let cas = users.cas;
    let mut token = None;
    let id = match command {
        UserCommand::Create { name, secret, limits, .. } => {
            if users.find_by_name(&name).is_some() {
                let what = format!("user \"{name}\" exists already");
                return Err(Error::new(ErrorCode::UserExists, what));
            }
            users.last_user = UserId(users.last_user.0 + 1);
            let mut user = User {
                id: users.last_user,
                name,
                verifier: None,
                until_unix_ms: None,
                tokens: Vec::new(),
                grants: Default::default(),
                limits,
                secret_no: 0,
            };
            token = secret.and_then(|secret| add_secret(users, &mut user, secret));
            put(users, user)
        }
        UserCommand::Alter { name, change } => {
            let mut user = named(users, &name)?;
            match change {
                UserChange::Secret(secret) => token = add_secret(users, &mut user, secret),
                UserChange::DropPassword => user.verifier = None,
                UserChange::DropToken(id) => user.tokens.retain(|token| token.id != id),
                UserChange::Limits(limits) => user.limits = limits,
            }
            put(users, user)
        }
        UserCommand::Drop { name, if_exists } => match users.by_name.remove(&name) {
            None if !if_exists => return Err(no_user(&name)),
            dropped => return Ok(Outcome::User { id: dropped.map(|user| user.id), token, cas }),
        },
        UserCommand::Grant { user, privileges, on } => {
            let mut user = named(users, &user)?;
            match on {
                GrantOn::All => user.grants.all = user.grants.all.with(privileges),
                GrantOn::Bucket(bucket) => {
                    let own = user.grants.buckets.entry(bucket).or_default();
                    *own = own.with(privileges);
                }
            }
            put(users, user)
        }
        UserCommand::Revoke { user, privileges, on } => {
            let mut user = named(users, &user)?;
            match on {
                GrantOn::All => user.grants.all = user.grants.all.without(privileges),
                GrantOn::Bucket(bucket) => {
                    let own = user.grants.buckets.entry(bucket).or_default();
                    *own = own.without(privileges);
                }
            }
            user.grants.buckets.retain(|_, own| !own.is_empty());
            put(users, user)
        }
    };
    Ok(Outcome::User { id: Some(id), token, cas })
}

/// Adds a password or a token to a user. Returns the number of the new token; `None` for a
/// password.
fn add_secret(users: &mut Users, user: &mut User, secret: NewSecret) -> Option<TokenId> {
    match secret {
        NewSecret::Password { verifier, until_unix_ms } => {
            (user.verifier, user.until_unix_ms) = (Some(verifier), until_unix_ms);
            None
        }
        NewSecret::Token { sha256, until_unix_ms } => {
            users.last_token = TokenId(users.last_token.0 + 1);
            user.tokens.push(HashedToken { id: users.last_token, sha256, until_unix_ms });
            Some(users.last_token)
        }
    }
}

/// Returns the user with a name.
fn named(users: &Users, name: &str) -> Result<User> {
    users.find_by_name(name).map(|user| User::clone(user)).ok_or_else(|| no_user(name))
}

fn no_user(name: &str) -> Error {
    Error::new(ErrorCode::UnknownUser, format!("user \"{name}\" does not exist"))
}

/// Stores a user and returns its number.
fn put(users: &mut Users, user: User) -> UserId {
    let id = user.id;
    users.by_name.insert(user.name.clone(), Arc::new(user));
    id
}
