//! The execution of statements about users as replicated commands, for the SQL and the gRPC port.
//!
//! This process replaces a password by a verifier, and a token by its hash. Therefore no command,
//! no log and no replicated data contains a secret in clear text.
//!
//! A statement that changes users waits until the router of its session has received the change.
//! Other routers receive the change later, like a new catalog.

use proto::env::{Env, Random};
use proto::model::ids::BucketId;
use proto::model::users::{GrantOn, NewSecret, Secret32, UserChange, UserCommand};
use proto::rpc::command::Outcome;
use proto::{Error, ErrorCode, Result};

use super::ast::{AlterUser, HiddenText, SecretText, UserStatement};
use super::error::unsupported;
use super::named::{bucket_refusal_error, find_bucket};
use crate::access::AuditedAccess;
use crate::auth::tokens::FreshToken;
use crate::auth::verifier;

/// The time for which a token is valid if no expiry time is given, in milliseconds: 90 days.
pub const TOKEN_MS: u64 = 90 * 86_400_000;

/// The result of a statement about users.
#[derive(Debug)]
pub enum UserResult {
    /// The command tag of a statement without a token.
    Tag(&'static str),
    /// The command tag and the text of a new token. No other function returns this text.
    Token(&'static str, HiddenText),
}

/// Executes a statement. Returns after the command is committed and this process has received the
/// change.
pub async fn run(
    access: &AuditedAccess,
    env: &Env,
    statement: &UserStatement,
) -> Result<UserResult> {
    let tag = tag(statement);
    let bucket = match statement {
        UserStatement::Grant { on: GrantOn::Bucket(name), .. }
        | UserStatement::Revoke { on: GrantOn::Bucket(name), .. } => {
            Some((find_bucket(access, name).await?.id, &**name))
        }
        _ => None,
    };
    let (command, token) = command(env, statement, bucket.map(|(id, _)| id)).await?;
    let named = |refused| match bucket {
        Some(bucket) => bucket_refusal_error(access, bucket, refused),
        None => refused,
    };
    let outcome = access.change_users(command).await.map_err(named)?;
    let Some(token) = token else { return Ok(UserResult::Tag(tag)) };
    match outcome {
        Outcome::User { token: Some(id), .. } => {
            Ok(UserResult::Token(tag, HiddenText(token.text(id))))
        }
        _ => Err(Error::internal("a token was made without a number")),
    }
}

/// Returns true if a statement creates a token. The text of the token is in the answer.
pub fn makes_token(statement: &UserStatement) -> bool {
    let (UserStatement::Create { secret: Some(secret), .. }
    | UserStatement::Alter { change: AlterUser::Secret(secret), .. }) = statement
    else {
        return false;
    };
    matches!(secret, SecretText::Token { .. })
}

/// Returns the command tag, which is PostgreSQL's.
fn tag(statement: &UserStatement) -> &'static str {
    match statement {
        UserStatement::Create { .. } => "CREATE ROLE",
        UserStatement::Alter { .. } => "ALTER ROLE",
        UserStatement::Drop { .. } => "DROP ROLE",
        UserStatement::Grant { .. } => "GRANT",
        UserStatement::Revoke { .. } => "REVOKE",
    }
}

/// Returns the command of a statement, and the new token if the statement creates one.
async fn command(
    env: &Env,
    statement: &UserStatement,
    bucket: Option<BucketId>,
) -> Result<(UserCommand, Option<FreshToken>)> {
    let mut token = None;
    let command = match statement {
        UserStatement::Create { name, secret, limits } => {
            let secret = match secret {
                Some(secret) => Some(hashed(env, secret, &mut token).await?),
                None => None,
            };
            let (name, limits) = (name.clone(), *limits);
            let fresh = Secret32::new(drawn(&*env.random));
            UserCommand::Create { name, secret, limits, fresh, first: false }
        }
        UserStatement::Alter { name, change } => {
            let change = match change {
                AlterUser::Secret(secret) => {
                    UserChange::Secret(hashed(env, secret, &mut token).await?)
                }
                AlterUser::DropPassword => UserChange::DropPassword,
                AlterUser::DropToken(id) => UserChange::DropToken(*id),
                AlterUser::Limits(limits) => UserChange::Limits(*limits),
            };
            UserCommand::Alter { name: name.clone(), change }
        }
        UserStatement::Drop { name, if_exists } => {
            UserCommand::Drop { name: name.clone(), if_exists: *if_exists }
        }
        UserStatement::Grant { user, privileges, .. } => {
            let (user, privileges) = (user.clone(), *privileges);
            UserCommand::Grant { user, privileges, on: object(bucket) }
        }
        UserStatement::Revoke { user, privileges, .. } => {
            let (user, privileges) = (user.clone(), *privileges);
            UserCommand::Revoke { user, privileges, on: object(bucket) }
        }
    };
    Ok((command, token))
}

/// Returns the object of a grant: one bucket, or all buckets for `None`.
fn object(bucket: Option<BucketId>) -> GrantOn {
    bucket.map_or(GrantOn::All, GrantOn::Bucket)
}

/// Returns a secret in the form that commands contain: hashed. For a token, draws a random one
/// and stores it in `token`.
async fn hashed(
    env: &Env,
    secret: &SecretText,
    token: &mut Option<FreshToken>,
) -> Result<NewSecret> {
    match secret {
        SecretText::Password { password, until_unix_ms } => {
            let verifier = match verifier::parse(&password.0) {
                Some(verifier) => verifier,
                None => derive_verifier(env, password).await?,
            };
            Ok(NewSecret::Password { verifier, until_unix_ms: *until_unix_ms })
        }
        SecretText::Token { until_unix_ms } => {
            let now = env.clock.unix_ms();
            let until_unix_ms = until_unix_ms.unwrap_or(now.saturating_add(TOKEN_MS));
            if until_unix_ms <= now {
                let what = "the token would have ended already: VALID UNTIL is in the past";
                return Err(Error::new(ErrorCode::InvalidParameter, what));
            }
            let sha256 = token.insert(FreshToken::draw(&*env.random)).sha256();
            Ok(NewSecret::Token { sha256, until_unix_ms })
        }
    }
}

/// Returns the verifier of a password, with a new random salt.
async fn derive_verifier(
    env: &Env,
    password: &HiddenText,
) -> Result<proto::model::users::ScramVerifier> {
    if is_md5(&password.0) {
        let hint =
            "SET password_encryption = 'scram-sha-256' in the client, or send the password itself";
        return Err(unsupported("MD5 passwords are not supported", hint));
    }
    let salt = drawn(&*env.random);
    let password = password.clone();
    let derive = move || verifier::derive(&password.0, salt, verifier::ITERATIONS);
    Ok(env.blocking(derive).await)
}

/// Returns true for PostgreSQL's older form of a hashed password (MD5), with which no user can
/// log in.
fn is_md5(password: &str) -> bool {
    let hash = password.strip_prefix("md5");
    hash.is_some_and(|hash| hash.len() == 32 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Returns `N` random bytes. `N` must be a multiple of eight.
fn drawn<const N: usize>(random: &dyn Random) -> [u8; N] {
    let mut bytes = [0; N];
    for word in bytes.chunks_exact_mut(8) {
        word.copy_from_slice(&random.next_u64().to_le_bytes());
    }
    bytes
}
