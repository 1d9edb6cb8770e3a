//! The syntax tree of statements about users and privileges.

use std::fmt;

use proto::model::ids::TokenId;
use proto::model::users::{GrantOn, Privileges, UserLimits};

/// A statement about users and privileges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserStatement {
    /// `CREATE USER u …`.
    Create {
        /// The name of the user.
        name: String,
        /// The password or token of the new user, if given.
        secret: Option<SecretText>,
        /// The limits that were given.
        limits: UserLimits,
    },
    /// `ALTER USER u …`.
    Alter {
        /// The name of the user.
        name: String,
        /// The change to make.
        change: AlterUser,
    },
    /// `DROP USER u`.
    Drop {
        /// The name of the user.
        name: String,
        /// True if an absent user is no error.
        if_exists: bool,
    },
    /// `GRANT … ON … TO u`.
    Grant {
        /// The name of the user.
        user: String,
        /// The privileges to grant.
        privileges: Privileges,
        /// The bucket on which the privileges are granted, or all buckets.
        on: GrantOn<String>,
    },
    /// `REVOKE … ON … FROM u`.
    Revoke {
        /// The name of the user.
        user: String,
        /// The privileges to revoke.
        privileges: Privileges,
        /// The bucket on which the privileges are revoked, or all buckets.
        on: GrantOn<String>,
    },
}

/// A change by `ALTER USER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlterUser {
    /// `PASSWORD '…'` or `TOKEN`.
    Secret(SecretText),
    /// `PASSWORD NULL`.
    DropPassword,
    /// `DROP TOKEN n`.
    DropToken(TokenId),
    /// `WITH (…)`: the limits that were given.
    Limits(UserLimits),
}

/// A new secret, as a statement specifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretText {
    /// `PASSWORD '…' [VALID UNTIL '…']`.
    Password {
        /// The password, or its verifier in PostgreSQL's form.
        password: HiddenText,
        /// The expiry time in milliseconds since 1970; `None` for no expiry.
        until_unix_ms: Option<u64>,
    },
    /// `TOKEN [VALID UNTIL '…']`.
    Token {
        /// The expiry time in milliseconds since 1970; `None` if it was not given.
        until_unix_ms: Option<u64>,
    },
}

/// A text that is never printed, not even in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct HiddenText(pub String);

impl fmt::Debug for HiddenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("'…'")
    }
}
