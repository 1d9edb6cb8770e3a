//! The users, their secrets and their privileges, and the changes that commands make.

use std::sync::Arc;

use proto::model::ids::{BucketId, TokenId, UserId};
use proto::model::users::{
    GrantOn, HashedToken, NewSecret, Privilege, Privileges, ScramVerifier, USER_NAME_BYTES_MAX,
    User, UserChange, UserCommand, UserLimits, Users,
};
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};

use crate::state::capacity::limits::TOKENS_EACH_MAX;
use crate::state::capacity::table::{GRANTS, TOKENS, USERS};
use crate::state::clock::CommandNumbers;
use crate::state::consequence::Consequence;
use crate::state::indexes::checks::check_range;

/// The lowest number of iterations of a verifier, from RFC 7677.
const ITERATIONS_MIN: u64 = 4_096;
/// The highest number of iterations of a verifier. Clients derive a key with this many iterations,
/// and some refuse a slow derivation.
const ITERATIONS_MAX: u64 = 100_000;

/// The user that a change concerned, and the token that it created.
pub(super) type ChangeOutcome = (Option<UserId>, Option<TokenId>);

/// The users. They are not in the catalog, because they contain hashes of secrets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::state) struct UsersState(Arc<Users>);

impl UsersState {
    /// Returns the users. The same `Arc` is returned until they change.
    pub(in crate::state) fn current(&self) -> &Arc<Users> {
        &self.0
    }

    #[cfg(test)]
    pub(in crate::state) fn edit(&mut self) -> &mut Users {
        Arc::make_mut(&mut self.0)
    }

    /// Applies a consequence to the users; returns true if it changes any.
    pub(in crate::state) fn on(&mut self, consequence: &Consequence) -> bool {
        match consequence {
            Consequence::BucketDropped(bucket) => self.forget_grants_on(*bucket),
            Consequence::UsersChanged { cas } => {
                Arc::make_mut(&mut self.0).cas = *cas;
                false
            }
            Consequence::NumbersSkipped(above) => {
                let users = Arc::make_mut(&mut self.0);
                (users.last_user, users.last_token) = (UserId(*above), TokenId(*above));
                true
            }
            _ => false,
        }
    }

    /// Changes the users by a command; on an error they stay as they are. `bucket` tells whether
    /// the bucket that the command names exists.
    pub(super) fn change(
        &mut self,
        command: &UserCommand,
        bucket: Result<()>,
        now: CommandNumbers,
    ) -> Result<(ChangeOutcome, bool)> {
        let mut users = Users::clone(&self.0);
        let outcome = change_users(&mut users, command, bucket, now)?;
        if users == *self.0 {
            return Ok((outcome, false));
        }
        self.check_last_admin(&users, now.unix_ms)?;
        self.0 = Arc::new(users);
        Ok((outcome, true))
    }

    /// Removes the privileges on a dropped bucket; returns true if there were any.
    fn forget_grants_on(&mut self, bucket: BucketId) -> bool {
        let has = |user: &Arc<User>| user.grants.buckets.contains_key(&bucket);
        if !self.0.by_name.values().any(has) {
            return false;
        }
        let users = Arc::make_mut(&mut self.0);
        for user in users.by_name.values_mut().filter(|user| has(user)) {
            Arc::make_mut(user).grants.buckets.remove(&bucket);
        }
        true
    }

    /// Refuses a change after which the cluster has no administrator.
    fn check_last_admin(&self, after: &Users, unix_ms: u64) -> Result<()> {
        let count = |users: &Users, counts: &dyn Fn(&User) -> bool| {
            users.by_name.values().filter(|user| counts(user)).count()
        };
        let is_admin = |user: &User| user.grants.all.contains(Privilege::Admin);
        let has_secret = |user: &User| {
            let has_password =
                user.verifier.is_some() && user.until_unix_ms.is_none_or(|until| until > unix_ms);
            has_password || user.tokens.iter().any(|token| token.until_unix_ms > unix_ms)
        };
        let logs_in = |user: &User| is_admin(user) && has_secret(user);
        let goes = |counts: &dyn Fn(&User) -> bool| {
            count(&self.0, counts) > 0 && count(after, counts) == 0
        };
        let what = match (goes(&is_admin), goes(&logs_in)) {
            (true, _) => "no user would be left with admin ON ALL",
            (_, true) => "no user with admin ON ALL would be left with a valid password or token",
            (false, false) => return Ok(()),
        };
        Err(Error::new(ErrorCode::WrongState, what)
            .with_hint("give another user a password and GRANT ALL TO that user first"))
    }

    /// Checks the invariants of users. `may_be_granted` returns true for the buckets that
    /// privileges may name.
    pub(in crate::state) fn check(
        &self,
        cas: u64,
        may_be_granted: impl Fn(BucketId) -> bool,
    ) -> std::result::Result<(), String> {
        let users = &*self.0;
        if users.cas > cas {
            return Err("the users are newer than the state".into());
        }
        USERS
            .check(users.by_name.len())
            .and_then(|()| TOKENS.check(tokens_in_all(users)))
            .and_then(|()| GRANTS.check(grants_in_all(users)))
            .map_err(|error| error.message)?;
        for (name, user) in &users.by_name {
            let ids = || user.tokens.iter().map(|token| token.id);
            let is_given = user.id <= users.last_user
                && ids().is_sorted_by(|a, b| a < b)
                && ids().all(|id| id <= users.last_token);
            if *name != user.name || !is_given {
                return Err(format!("the name or the numbers of user {name:?}"));
            }
            let fits =
                |(id, set): (&BucketId, &Privileges)| may_be_granted(*id) && is_valid_set(*set);
            if !user.grants.buckets.iter().all(fits) {
                return Err(format!("the privileges of user {name:?}: {:?}", user.grants));
            }
        }
        Ok(())
    }
}

/// Applies a command to the users. Returns the changed user, and the token that was created.
fn change_users(
    users: &mut Users,
    command: &UserCommand,
    bucket: Result<()>,
    now: CommandNumbers,
) -> Result<ChangeOutcome> {
    match command {
        UserCommand::Create { name, secret, limits, fresh, first } => {
            check_user_name(name)?;
            check_new(users, name, *first)?;
            if users.mock_key.matches(&[0; 32]) {
                users.mock_key = fresh.clone();
            }
            create_user(users, name, (secret.as_ref(), *limits), (*first, now))
        }
        UserCommand::Alter { name, change } => {
            let mut user = User::clone(user_named(users, name)?);
            let token = alter_user(users, &mut user, change, now)?;
            Ok((Some(put(users, user)), token))
        }
        UserCommand::Drop { name, if_exists } => match users.by_name.remove(name) {
            Some(user) => Ok((Some(user.id), None)),
            None if *if_exists => Ok((None, None)),
            None => Err(no_user(name)),
        },
        UserCommand::Grant { user, privileges, on } => {
            check_privileges(*privileges)?;
            let mut user = User::clone(user_named(users, user)?);
            bucket?;
            grant(&mut user, *privileges, on);
            let id = put(users, user);
            GRANTS.check(grants_in_all(users))?;
            Ok((Some(id), None))
        }
        UserCommand::Revoke { user, privileges, on } => {
            check_privileges(*privileges)?;
            let mut user = User::clone(user_named(users, user)?);
            bucket?;
            revoke(&mut user, *privileges, on);
            Ok((Some(put(users, user)), None))
        }
    }
}

fn create_user(
    users: &mut Users,
    name: &str,
    (secret, limits): (Option<&NewSecret>, UserLimits),
    (first, now): (bool, CommandNumbers),
) -> Result<ChangeOutcome> {
    users.last_user = UserId(users.last_user.0 + 1);
    let mut user = User {
        id: users.last_user,
        name: name.into(),
        verifier: None,
        until_unix_ms: None,
        tokens: Vec::new(),
        grants: Default::default(),
        limits: with_limits(UserLimits::default(), limits),
        secret_no: 0,
    };
    if first {
        user.grants.all = [Privilege::Admin].into_iter().collect();
    }
    let token = match secret {
        Some(secret) => add_secret(users, &mut user, secret, now)?,
        None => None,
    };
    Ok((Some(put(users, user)), token))
}

fn alter_user(
    users: &mut Users,
    user: &mut User,
    change: &UserChange,
    now: CommandNumbers,
) -> Result<Option<TokenId>> {
    match change {
        UserChange::Secret(secret) => return add_secret(users, user, secret, now),
        UserChange::DropPassword if user.verifier.is_none() => {}
        UserChange::DropPassword => {
            (user.verifier, user.until_unix_ms) = (None, None);
            user.secret_no = now.cas;
        }
        UserChange::DropToken(id) => {
            let (before, name) = (user.tokens.len(), &user.name);
            user.tokens.retain(|token| token.id != *id);
            if user.tokens.len() == before {
                let what = format!("user \"{name}\" has no token {id}");
                return Err(Error::new(ErrorCode::Unknown, what)
                    .with_hint("SHOW USERS lists the numbers of the tokens"));
            }
        }
        UserChange::Limits(limits) => user.limits = with_limits(user.limits, *limits),
    }
    Ok(None)
}

/// Replaces the password of a user, or adds a token. Returns the id of the new token, if any.
fn add_secret(
    users: &mut Users,
    user: &mut User,
    secret: &NewSecret,
    now: CommandNumbers,
) -> Result<Option<TokenId>> {
    match secret {
        NewSecret::Password { verifier, until_unix_ms } => {
            check_verifier(verifier)?;
            user.verifier = Some(verifier.clone());
            user.until_unix_ms = *until_unix_ms;
            user.secret_no = now.cas;
            Ok(None)
        }
        NewSecret::Token { sha256, until_unix_ms } => {
            check_token_limits(users, user)?;
            users.last_token = TokenId(users.last_token.0 + 1);
            let (id, sha256) = (users.last_token, sha256.clone());
            user.tokens.push(HashedToken { id, sha256, until_unix_ms: *until_unix_ms });
            Ok(Some(id))
        }
    }
}

/// Adds privileges to a user.
fn grant(user: &mut User, privileges: Privileges, on: &GrantOn) {
    let granted = match on {
        GrantOn::All => &mut user.grants.all,
        GrantOn::Bucket(id) => user.grants.buckets.entry(*id).or_default(),
    };
    *granted = granted.with(privileges);
}

/// Removes privileges from a user.
fn revoke(user: &mut User, privileges: Privileges, on: &GrantOn) {
    let buckets = &mut user.grants.buckets;
    match on {
        GrantOn::All => {
            user.grants.all = user.grants.all.without(privileges);
            buckets.values_mut().for_each(|own| *own = own.without(privileges));
        }
        GrantOn::Bucket(id) => {
            let own = buckets.get_mut(id);
            own.into_iter().for_each(|own| *own = own.without(privileges));
        }
    }
    buckets.retain(|_, own| !own.is_empty());
}

/// Stores a changed user; returns its id.
fn put(users: &mut Users, user: User) -> UserId {
    let id = user.id;
    users.by_name.insert(user.name.clone(), Arc::new(user));
    id
}

fn user_named<'a>(users: &'a Users, name: &str) -> Result<&'a Arc<User>> {
    users.find_by_name(name).ok_or_else(|| no_user(name))
}

fn no_user(name: &str) -> Error {
    // A name from elsewhere may be long.
    let name = crate::state::capacity::limits::longest_prefix(name, USER_NAME_BYTES_MAX);
    Error::new(ErrorCode::UnknownUser, format!("user \"{name}\" does not exist"))
        .with_hint("SHOW USERS lists the users")
}

/// Returns the limits `own`, with each limit that is `given` replaced. A given zero removes the
/// limit.
fn with_limits(own: UserLimits, given: UserLimits) -> UserLimits {
    let with = |own: Option<u32>, given: Option<u32>| match given {
        None => own,
        Some(0) => None,
        some => some,
    };
    UserLimits {
        sessions_max: with(own.sessions_max, given.sessions_max),
        statements_max: with(own.statements_max, given.statements_max),
    }
}

fn check_user_name(name: &str) -> Result<()> {
    let what = match name.len() {
        1..=USER_NAME_BYTES_MAX if !name.chars().any(char::is_control) => return Ok(()),
        1..=USER_NAME_BYTES_MAX => "a control character".into(),
        bytes => format!("{bytes} bytes"),
    };
    Err(Error::new(
        ErrorCode::InvalidParameter,
        format!(
            "the name of a user has 1 to {USER_NAME_BYTES_MAX} bytes without control characters, this one has {what}"
        ),
    ))
}

/// Checks that a new user may be created. With `first`, it must be the only one.
fn check_new(users: &Users, name: &str, first: bool) -> Result<()> {
    if first && !users.by_name.is_empty() {
        return Err(Error::new(ErrorCode::WrongState, "there are users already")
            .with_hint("a user with admin ON ALL makes further ones"));
    }
    if users.find_by_name(name).is_some() {
        return Err(Error::new(ErrorCode::UserExists, format!("user \"{name}\" exists already"))
            .with_hint("ALTER USER changes it"));
    }
    USERS.check(users.by_name.len() + 1)
}

fn check_verifier(verifier: &ScramVerifier) -> Result<()> {
    let iterations = u64::from(verifier.iterations);
    check_range("the iterations of a SCRAM verifier", iterations, ITERATIONS_MIN, ITERATIONS_MAX)
}

fn check_token_limits(users: &Users, user: &User) -> Result<()> {
    if user.tokens.len() >= TOKENS_EACH_MAX {
        let what = format!(
            "user \"{}\" has {TOKENS_EACH_MAX} tokens, the most that are possible",
            user.name
        );
        return Err(Error::new(ErrorCode::OverLimit, what)
            .with_hint("ALTER USER … DROP TOKEN those that are no longer needed"));
    }
    TOKENS.check(tokens_in_all(users) + 1)
}

/// Returns true if a set of privileges is not empty and contains only known ones.
fn is_valid_set(privileges: Privileges) -> bool {
    privileges.is_valid() && !privileges.is_empty()
}

fn check_privileges(privileges: Privileges) -> Result<()> {
    if is_valid_set(privileges) {
        return Ok(());
    }
    Err(Error::new(ErrorCode::InvalidParameter, "a set without a known privilege, or with others"))
}

fn tokens_in_all(users: &Users) -> usize {
    users.by_name.values().map(|user| user.tokens.len()).sum()
}

fn grants_in_all(users: &Users) -> usize {
    users.by_name.values().map(|user| user.grants.buckets.len()).sum()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
