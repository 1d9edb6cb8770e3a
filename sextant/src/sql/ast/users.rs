//! Statements about users and privileges.

use std::fmt;

use proto::model::ids::TokenId;
use proto::model::users::{GrantOn, Privileges, UserLimits};

/// A statement about users and privileges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserStatement {
    /// `CREATE USER u …`.
    Create {
        /// The user.
        name: String,
        /// The first secret.
        secret: Option<SecretText>,
        /// The limits that were given.
        limits: UserLimits,
    },
    /// `ALTER USER u …`.
    Alter {
        /// The user.
        name: String,
        /// The change to make.
        change: AlterUser,
    },
    /// `DROP USER u`.
    Drop {
        /// The user.
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
        /// The object.
        on: GrantOn<String>,
    },
    /// `REVOKE … ON … FROM u`.
    Revoke {
        /// The name of the user.
        user: String,
        /// The privileges to revoke.
        privileges: Privileges,
        /// The object.
        on: GrantOn<String>,
    },
}

/// A change by `ALTER USER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlterUser {
    /// `PASSWORD '…'`, `TOKEN`.
    Secret(SecretText),
    /// `PASSWORD NULL`.
    DropPassword,
    /// `DROP TOKEN n`.
    DropToken(TokenId),
    /// `WITH (…)`: the limits that were given.
    Limits(UserLimits),
}

/// A secret as a statement has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretText {
    /// `PASSWORD '…' [VALID UNTIL '…']`.
    Password {
        /// The password, or its verifier in PostgreSQL's form.
        password: HiddenText,
        /// The end, in milliseconds since 1970; `None` for none.
        until_unix_ms: Option<u64>,
    },
    /// `TOKEN [VALID UNTIL '…']`.
    Token {
        /// The end, in milliseconds since 1970; `None` if it was not given.
        until_unix_ms: Option<u64>,
    },
}

/// A text that nothing prints.
#[derive(Clone, PartialEq, Eq)]
pub struct HiddenText(pub String);

impl fmt::Debug for HiddenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("'…'")
    }
}
