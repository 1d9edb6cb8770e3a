//! Users, and the privileges that they have.
//!
//! A user logs in with a password, a token or a certificate. No secret is stored in clear text: a password is stored as a SCRAM verifier
//! (RFC 5802, RFC 7677), a token as its SHA-256. Neither can be used to log in, and neither is printed: [`Secret32`] hides its bytes from
//! `Debug`, so that no log, error or dump of the state shows them.
//!
//! A grant is for one bucket, or for all: every present and future bucket, and the cluster itself. Grants name buckets
//! by number, so a bucket that takes the name of a dropped one inherits nothing. Indexes have the privileges of their bucket, and the
//! versions of a data set those of the data set.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ids::{BucketId, TokenId, UserId};

/// The longest name of a user, in bytes: as long as PostgreSQL's names.
pub const USER_NAME_BYTES_MAX: usize = 63;

/// Something that a user may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Privilege {
    /// Read documents and indexes.
    Scan,
    /// Write and delete documents.
    Write,
    /// Make, change and drop indexes and the bucket; on all: also make buckets.
    Define,
    /// Move slices and vbuckets.
    Rebalance,
    /// All privileges, and the right to grant them.
    Admin,
    /// See states, moves and figures.
    Monitor,
}

impl Privilege {
    /// All privileges, in the order in which statements and listings name them.
    pub const ALL: [Self; 6] =
        [Self::Scan, Self::Write, Self::Define, Self::Rebalance, Self::Admin, Self::Monitor];

    /// The name of the privilege in statements.
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

    /// The privilege with a name.
    pub fn named(name: &str) -> Option<Self> {
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

    /// True if there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True if the set has the privilege, or has [`Privilege::Admin`], which includes all others.
    pub fn allow(self, privilege: Privilege) -> bool {
        self.names(privilege) || self.names(Privilege::Admin)
    }

    /// True if the privilege itself is in the set.
    pub fn names(self, privilege: Privilege) -> bool {
        self.0 & bit(privilege) != 0
    }

    /// The members, in the order of [`Privilege::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Privilege> {
        Privilege::ALL.into_iter().filter(move |privilege| self.names(*privilege))
    }

    /// The members of both sets.
    #[must_use]
    pub fn with(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    /// The members that the other set does not have.
    #[must_use]
    pub fn without(self, fewer: Self) -> Self {
        Self(self.0 & !fewer.0)
    }

    /// True if no bit is set that means nothing, as in bytes from elsewhere.
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
    /// The privileges on all: on every bucket and on the cluster.
    pub all: Privileges,
    /// The privileges on single buckets. None of the sets is empty.
    pub buckets: BTreeMap<BucketId, Privileges>,
}

impl Grants {
    /// The privileges on a bucket: those granted for it and those granted for all.
    pub fn on(&self, bucket: BucketId) -> Privileges {
        self.buckets.get(&bucket).map_or(self.all, |own| self.all.with(*own))
    }
}

/// 32 secret bytes. They are compared in constant time, and never printed.
#[derive(Clone, Serialize, Deserialize)]
pub struct Secret32([u8; 32]);

impl Secret32 {
    /// Wraps the bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes, for a computation that begins with them.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// True if the bytes are equal. All bytes are compared, so that the time reveals nothing about them.
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

/// Verifies a password without containing it (RFC 5802, section 3).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScramVerifier {
    /// Random bytes of this verifier.
    pub salt: [u8; 16],
    /// Rounds of PBKDF2.
    pub iterations: u32,
    /// `StoredKey`.
    pub stored_key: Secret32,
    /// `ServerKey`.
    pub server_key: Secret32,
}

/// The salt is sent to every client that logs in, but a dump does not need it.
impl fmt::Debug for ScramVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScramVerifier({} iterations, …)", self.iterations)
    }
}

/// A token for gRPC and HTTP, as its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HashedToken {
    /// The number of the token; numbers are never reused.
    pub id: TokenId,
    /// The SHA-256 of the token.
    pub sha256: Secret32,
    /// The moment from which on it is not valid, in milliseconds since 1970.
    pub until_unix_ms: u64,
}

/// The limits of one user, where they differ from those of the settings.
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
    /// The verifier of the password, if the user has one.
    pub verifier: Option<ScramVerifier>,
    /// The moment from which on the password is not valid, in milliseconds since 1970.
    pub until_unix_ms: Option<u64>,
    /// The tokens, ascending by number.
    pub tokens: Vec<HashedToken>,
    /// The privileges.
    pub grants: Grants,
    /// The limits of the user.
    pub limits: UserLimits,
    /// The number of the password: it grows with each change, and is never reused. A session that logged in with an earlier one ends.
    pub secret_no: u64,
}

impl User {
    /// The token with a number.
    pub fn token(&self, id: TokenId) -> Option<&HashedToken> {
        self.tokens.iter().find(|token| token.id == id)
    }
}

/// All users, as coordinators replicate them and routers follow them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Users {
    /// Grows with each change; the number of the command that made it.
    pub cas: u64,
    /// The last user's number.
    pub last_user: UserId,
    /// The last token's number.
    pub last_token: TokenId,
    /// Derives the salts that are sent for unknown users. A name always gets the same salt, so that a salt does not reveal whether the user
    /// exists (RFC 5802, section 9).
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
    /// The user with a name.
    pub fn named(&self, name: &str) -> Option<&Arc<User>> {
        self.by_name.get(name)
    }

    /// Returns the user with a name, if it still has this number.
    pub fn same(&self, name: &str, id: UserId) -> Option<&Arc<User>> {
        self.named(name).filter(|user| user.id == id)
    }

    /// Returns the token with a number, and its user.
    pub fn token(&self, id: TokenId) -> Option<(&Arc<User>, &HashedToken)> {
        self.by_name.values().find_map(|user| Some((user, user.token(id)?)))
    }
}

/// The secret by which a user proves its identity, as commands carry it: never in clear.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NewSecret {
    /// A new password.
    Password {
        /// The verifier of the new password.
        verifier: ScramVerifier,
        /// The moment from which on it is not valid, in milliseconds since 1970.
        until_unix_ms: Option<u64>,
    },
    /// One more token.
    Token {
        /// The SHA-256 of the token's random part.
        sha256: Secret32,
        /// The moment from which on it is not valid, in milliseconds since 1970.
        until_unix_ms: u64,
    },
}

/// A change of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UserChange {
    /// Replaces the password, or adds a token.
    Secret(NewSecret),
    /// No password any more.
    DropPassword,
    /// A token is no longer valid.
    DropToken(TokenId),
    /// Changes limits: `None` leaves a limit unchanged, and zero restores that of the settings.
    Limits(UserLimits),
}

/// The object of a grant. A statement has the name of a bucket, a command its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GrantOn<B = BucketId> {
    /// Every bucket, and the cluster.
    All,
    /// A bucket or data set.
    Bucket(B),
}

/// A change of users or of their privileges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UserCommand {
    /// CREATE USER.
    Create {
        /// The name of the user.
        name: String,
        /// The first secret of the user; without one the user logs in with a certificate.
        secret: Option<NewSecret>,
        /// The limits of the user; zero means that of the settings.
        limits: UserLimits,
        /// Random bytes: they become [`Users::mock_key`] of the first user.
        fresh: Secret32,
        /// True for the first user of a cluster, an administrator. Refused (`WrongState`) if a user exists.
        first: bool,
    },
    /// ALTER USER.
    Alter {
        /// The name of the user.
        name: String,
        /// The change to make.
        change: UserChange,
    },
    /// DROP USER. Refused for the last administrator that can log in.
    Drop {
        /// The name of the user.
        name: String,
        /// True if its absence is no error.
        if_exists: bool,
    },
    /// GRANT: adds privileges of a user.
    Grant {
        /// The user's name.
        user: String,
        /// The privileges to add.
        privileges: Privileges,
        /// The object.
        on: GrantOn,
    },
    /// REVOKE. A privilege that the user does not have is no error. One that is revoked on all is revoked on each single bucket as well.
    Revoke {
        /// The user's name.
        user: String,
        /// The privileges to remove.
        privileges: Privileges,
        /// The object.
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
        assert!(grants.on(BucketId(1)).allow(Privilege::Scan));
        assert!(!grants.on(BucketId(1)).allow(Privilege::Write));
        assert!(Privilege::ALL.into_iter().all(|each| grants.on(BucketId(7)).allow(each)));
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
