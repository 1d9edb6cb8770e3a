//! Users, and the privileges that they have.
//!
//! A user logs in with a password, a token or a certificate. No secret is stored in clear text: a
//! password is stored as a SCRAM verifier (RFC 5802, RFC 7677), a token as its SHA-256. Neither
//! of them can be used to log in, and neither is printed: [`Secret32`] hides its bytes from
//! `Debug`, so no log, error or dump of the state contains them.
//!
//! A grant is for one bucket, or for all: every present and future bucket, and the cluster
//! itself. Grants refer to buckets by number, so a bucket with the name of a dropped one inherits
//! no grants. The privileges on a bucket apply to its indexes too, and those on a data set to its
//! versions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ids::{BucketId, TokenId, UserId};

/// The maximum length of a user's name in bytes, equal to that of PostgreSQL's names.
pub const USER_NAME_BYTES_MAX: usize = 63;

/// A privilege: a kind of actions that a user may be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Privilege {
    /// Read documents and indexes.
    Scan,
    /// Write and delete documents.
    Write,
    /// Create, change and drop indexes, and change and drop the bucket. A grant on all buckets
    /// also allows creating buckets.
    Define,
    /// Move slices and vbuckets.
    Rebalance,
    /// Every action, including grants to other users.
    Admin,
    /// Read the status, the moves and the metrics of the cluster.
    Monitor,
}

impl Privilege {
    /// All privileges, in the order in which statements and listings name them.
    pub const ALL: [Self; 6] =
        [Self::Scan, Self::Write, Self::Define, Self::Rebalance, Self::Admin, Self::Monitor];

    /// Returns the name of the privilege in statements.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scan => "scan",
            Self::Write => "write",
            Self::Define => "define",
            Self::Rebalance => "rebalance",
            Self::Admin => "admin",
            Self::Monitor => "monitor",
        }
    }

    /// Returns the privilege with a name.
    pub fn find_by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|privilege| privilege.name() == name)
    }
}

impl fmt::Display for Privilege {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of privileges.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Privileges(u8);

impl Privileges {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Returns true if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns true if the set allows a privilege: it contains the privilege, or
    /// [`Privilege::Admin`], which includes all others.
    pub fn allow(self, privilege: Privilege) -> bool {
        self.contains(privilege) || self.contains(Privilege::Admin)
    }

    /// Returns true if the set contains the privilege itself; [`Privilege::Admin`] is not enough.
    pub fn contains(self, privilege: Privilege) -> bool {
        self.0 & bit(privilege) != 0
    }

    /// Returns the privileges of the set, in the order of [`Privilege::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Privilege> {
        Privilege::ALL.into_iter().filter(move |privilege| self.contains(*privilege))
    }

    /// Returns the union of both sets.
    #[must_use]
    pub fn with(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    /// Returns the privileges that the other set lacks.
    #[must_use]
    pub fn without(self, fewer: Self) -> Self {
        Self(self.0 & !fewer.0)
    }

    /// Returns true if each set bit stands for a privilege; checks a set that was received.
    pub fn is_valid(self) -> bool {
        self.without(Privilege::ALL.into_iter().collect()).is_empty()
    }
}

fn bit(privilege: Privilege) -> u8 {
    1 << privilege as u8
}

impl FromIterator<Privilege> for Privileges {
    fn from_iter<I: IntoIterator<Item = Privilege>>(privileges: I) -> Self {
        Self(privileges.into_iter().fold(0, |bits, privilege| bits | bit(privilege)))
    }
}

impl fmt::Debug for Privileges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The privileges of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    /// The privileges on all buckets and on the cluster.
    pub all: Privileges,
    /// The privileges on single buckets; a bucket without privileges is missing.
    pub buckets: BTreeMap<BucketId, Privileges>,
}

impl Grants {
    /// Returns the privileges on a bucket: those granted on it and those granted on all buckets.
    pub fn on_bucket(&self, bucket: BucketId) -> Privileges {
        self.buckets.get(&bucket).map_or(self.all, |own| self.all.with(*own))
    }
}

/// 32 secret bytes, which are compared in constant time and never printed.
#[derive(Clone, Serialize, Deserialize)]
pub struct Secret32([u8; 32]);

impl Secret32 {
    /// Wraps secret bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes. Only for computations with them.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns true if the bytes are equal. All bytes are compared, so that the duration reveals
    /// nothing about them.
    pub fn matches(&self, other: &[u8; 32]) -> bool {
        let differing = self.0.iter().zip(other).fold(0, |bits, (a, b)| bits | (a ^ b));
        std::hint::black_box(differing) == 0
    }
}

impl PartialEq for Secret32 {
    fn eq(&self, other: &Self) -> bool {
        self.matches(&other.0)
    }
}

impl Eq for Secret32 {}

impl fmt::Debug for Secret32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A verifier of a password, from which the password cannot be computed (RFC 5802, section 3).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScramVerifier {
    /// Random bytes, drawn for this verifier.
    pub salt: [u8; 16],
    /// The number of PBKDF2 rounds.
    pub iterations: u32,
    /// The `StoredKey` of RFC 5802.
    pub stored_key: Secret32,
    /// The `ServerKey` of RFC 5802.
    pub server_key: Secret32,
}

/// Prints the verifier without its salt and secrets.
impl fmt::Debug for ScramVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScramVerifier({} iterations, …)", self.iterations)
    }
}

/// A token for gRPC and HTTP, stored as its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HashedToken {
    /// The number of the token. Numbers are never reused.
    pub id: TokenId,
    /// The SHA-256 of the token.
    pub sha256: Secret32,
    /// The time at which the token expires, in milliseconds since 1970.
    pub until_unix_ms: u64,
}

/// The limits of one user; `None` means the limit of the settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserLimits {
    /// The maximum number of sessions at one router.
    pub sessions_max: Option<u32>,
    /// The maximum number of concurrent statements and requests at one router.
    pub statements_max: Option<u32>,
}

/// A user of the cluster, with secrets, grants and limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The number of the user. Numbers are never reused, so a user that is dropped and created again has a new one.
    pub id: UserId,
    /// The name of the user.
    pub name: String,
    /// The verifier of the password; `None` if the user has no password.
    pub verifier: Option<ScramVerifier>,
    /// The time at which the password expires, in milliseconds since 1970; `None` for never.
    pub until_unix_ms: Option<u64>,
    /// The tokens, ascending by number.
    pub tokens: Vec<HashedToken>,
    /// The privileges.
    pub grants: Grants,
    /// The limits of the user.
    pub limits: UserLimits,
    /// The number of the password, which grows with each change and is never reused. A session that
    /// logged in with an earlier password ends.
    pub secret_no: u64,
}

impl User {
    /// Returns the token with a number.
    pub fn token(&self, id: TokenId) -> Option<&HashedToken> {
        self.tokens.iter().find(|token| token.id == id)
    }
}

/// All users of a cluster. The coordinators replicate them, and the routers receive them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Users {
    /// The number of the command that made the last change.
    pub cas: u64,
    /// The number of the user that was created last.
    pub last_user: UserId,
    /// The number of the token that was created last.
    pub last_token: TokenId,
    /// The key from which the salt for an unknown name is derived. A name always gets an equal
    /// salt, so that a log-in attempt does not reveal whether the user exists (RFC 5802, section
    /// 9).
    pub mock_key: Secret32,
    /// The users by name.
    pub by_name: BTreeMap<String, Arc<User>>,
}

impl Default for Users {
    fn default() -> Self {
        Self {
            cas: 0,
            last_user: UserId(0),
            last_token: TokenId(0),
            mock_key: Secret32::new([0; 32]),
            by_name: BTreeMap::new(),
        }
    }
}

impl Users {
    /// Returns the user with a name; `None` if there is none.
    pub fn find_by_name(&self, name: &str) -> Option<&Arc<User>> {
        self.by_name.get(name)
    }

    /// Returns the user with a name if its number is `id`; the name may belong to a newer user.
    pub fn find_user(&self, name: &str, id: UserId) -> Option<&Arc<User>> {
        self.find_by_name(name).filter(|user| user.id == id)
    }

    /// Returns the token with a number, and its user.
    pub fn token(&self, id: TokenId) -> Option<(&Arc<User>, &HashedToken)> {
        self.by_name.values().find_map(|user| Some((user, user.token(id)?)))
    }
}

/// A new secret of a user in the form of commands, which is never clear text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NewSecret {
    /// A new password.
    Password {
        /// The verifier of the new password.
        verifier: ScramVerifier,
        /// The time at which the password expires, in milliseconds since 1970; `None` for never.
        until_unix_ms: Option<u64>,
    },
    /// A new token, in addition to the present ones.
    Token {
        /// The SHA-256 of the token's random part.
        sha256: Secret32,
        /// The time at which the token expires, in milliseconds since 1970.
        until_unix_ms: u64,
    },
}

/// A change of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UserChange {
    /// Replaces the password, or adds a token.
    Secret(NewSecret),
    /// Removes the password.
    DropPassword,
    /// Removes a token.
    DropToken(TokenId),
    /// Changes limits. `None` leaves a limit unchanged, and zero returns to the limit of the
    /// settings.
    Limits(UserLimits),
}

/// The object of a grant: all buckets or one. A statement refers to the bucket by name, a command
/// by number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GrantOn<B = BucketId> {
    /// Every bucket, and the cluster.
    All,
    /// A single bucket or data set.
    Bucket(B),
}

/// A change of users or of their privileges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UserCommand {
    /// CREATE USER: creates a user.
    Create {
        /// The name of the user.
        name: String,
        /// The first secret of the user; a user without a secret logs in with a certificate.
        secret: Option<NewSecret>,
        /// The limits of the user; zero means the limit of the settings.
        limits: UserLimits,
        /// Random bytes, which become [`Users::mock_key`] with the first user.
        fresh: Secret32,
        /// True for the first user of a cluster, which is an administrator. Refused with
        /// `WrongState` if a user exists already.
        first: bool,
    },
    /// ALTER USER: changes a user.
    Alter {
        /// The name of the user.
        name: String,
        /// The change to make.
        change: UserChange,
    },
    /// DROP USER: removes a user. Refused for the last administrator that can log in.
    Drop {
        /// The name of the user.
        name: String,
        /// True if a missing user is no error.
        if_exists: bool,
    },
    /// GRANT: adds privileges of a user.
    Grant {
        /// The user's name.
        user: String,
        /// The privileges to add.
        privileges: Privileges,
        /// The object of the privileges.
        on: GrantOn,
    },
    /// REVOKE: removes privileges of a user. A privilege that the user does not have is ignored.
    /// A privilege that is revoked on all buckets is revoked on each single bucket too.
    Revoke {
        /// The user's name.
        user: String,
        /// The privileges to remove.
        privileges: Privileges,
        /// The object of the privileges.
        on: GrantOn,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admin_allows_everything_and_a_grant_on_all_counts_for_each_bucket() {
        let scan: Privileges = [Privilege::Scan].into_iter().collect();
        let admin: Privileges = [Privilege::Admin].into_iter().collect();
        let grants = Grants { all: scan, buckets: [(BucketId(7), admin)].into_iter().collect() };
        assert!(grants.on_bucket(BucketId(1)).allow(Privilege::Scan));
        assert!(!grants.on_bucket(BucketId(1)).allow(Privilege::Write));
        assert!(Privilege::ALL.into_iter().all(|each| grants.on_bucket(BucketId(7)).allow(each)));
    }

    #[test]
    fn secrets_are_not_printed() {
        let secret = Secret32::new([0xAB; 32]);
        let verifier = ScramVerifier {
            salt: [1; 16],
            iterations: 4096,
            stored_key: secret.clone(),
            server_key: secret,
        };
        let printed = format!("{verifier:?} {verifier:#?}").to_lowercase();
        assert!(!printed.contains("171") && !printed.contains("ab, ab"), "{printed}");
        assert!(!printed.contains("1, 1"), "the salt: {printed}");
    }
}
