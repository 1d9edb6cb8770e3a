//! The facts that the catalogue shows: Sextant's definitions as one user may see them, in PostgreSQL's terms.
//!
//! **OIDs** are equal on all routers and stay the same while an object lives, since clients put
//! them into later statements: they are computed from the numbers of buckets, indexes and users.
//! A bucket has 16 OIDs from 16384 on, an index 16 from 2^30 on, a user one from 3·2^29 on. Numbers
//! are never reused; beyond 2^26 buckets or 2^25 indexes the definition has no OID and is left out.

use crate::types::oid::Oid;

const FIRST_TABLE: u64 = 16_384;
const FIRST_INDEX: u64 = 1 << 30;
const FIRST_ROLE: u64 = 3 << 29;
const PER_OBJECT: u64 = 16;

/// The OID of the role that owns everything, as PostgreSQL's first user does.
pub const OWNER: Oid = 10;

/// The name of the role that owns everything.
pub const OWNER_NAME: &str = "sextant";

/// The OID of the one database.
pub const DATABASE: Oid = 5;

/// The definitions that a user may see.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The name of the database.
    pub database: String,
    /// The buckets, by number.
    pub tables: Vec<Table>,
    /// The indexes, by number.
    pub indexes: Vec<Index>,
    /// The users, by number.
    pub roles: Vec<Role>,
}

/// The facts of a session besides the definitions, which differ from statement to statement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionFacts {
    /// All settings with the values of the session.
    pub settings: Vec<Setting>,
    /// The sessions that the user may see.
    pub sessions: Vec<Activity>,
}

/// A bucket: a table with the columns `id` (text, the primary key) and `doc` (jsonb).
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The number of the bucket.
    pub number: u64,
    /// The bucket's name.
    pub name: String,
    /// The text of COMMENT ON; `None` without.
    pub comment: Option<String>,
    /// The estimated number of documents; `None` if it is unknown.
    pub rows: Option<u64>,
    /// The privileges that were granted on it: user, and letters of PostgreSQL's access lists.
    pub grants: Vec<(String, String)>,
}

/// An index: an index of its bucket, and a relation that can be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// The number of the index.
    pub number: u64,
    /// The number of its bucket.
    pub table: u64,
    /// The index's name.
    pub name: String,
    /// The text of COMMENT ON; `None` without.
    pub comment: Option<String>,
    /// The key parts.
    pub keys: Vec<IndexColumn>,
    /// The included columns.
    pub include: Vec<IndexColumn>,
    /// The condition, as SQL.
    pub predicate: Option<String>,
    /// True if it can be read.
    pub is_ready: bool,
    /// The estimated number of entries; `None` if it is unknown.
    pub rows: Option<u64>,
}

/// A column of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexColumn {
    /// The name in results.
    pub name: String,
    /// The expression, as SQL.
    pub expression: String,
    /// The type of its values.
    pub ty: Oid,
    /// `DESC`.
    pub descending: bool,
    /// `NULLS FIRST`.
    pub nulls_first: bool,
}

/// A user.
#[derive(Clone, Debug, PartialEq)]
pub struct Role {
    /// The number of the user.
    pub number: u64,
    /// The user's name.
    pub name: String,
    /// True if the user may do everything.
    pub is_admin: bool,
    /// The end of the password, in microseconds since 2000-01-01 UTC.
    pub valid_until_us: Option<i64>,
}

/// A setting, as `pg_settings` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The name in lower case.
    pub name: String,
    /// The session's value, as SHOW prints it.
    pub value: String,
    /// The value after RESET.
    pub default: String,
    /// True if a session can change it.
    pub can_change: bool,
}

/// A session, as `pg_stat_activity` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Activity {
    /// The number of the session.
    pub process: i32,
    /// The name of the user.
    pub user: String,
    /// The setting `application_name`.
    pub application: String,
    /// The address and port of the client.
    pub client: Option<(String, u16)>,
    /// `active`, `idle` or `idle in transaction`.
    pub state: String,
    /// The text of its statement, if the user may see it.
    pub statement: String,
}

/// The OIDs of an object.
fn oid(first: u64, number: u64, part: u64) -> Option<Oid> {
    let end = if first == FIRST_TABLE { FIRST_INDEX } else { FIRST_ROLE };
    let oid = number.checked_mul(PER_OBJECT)?.checked_add(first + part)?;
    Oid::try_from(oid).ok().filter(|oid| u64::from(*oid) < end)
}

/// The OIDs of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TableOids {
    pub table: Oid,
    pub row_type: Oid,
    pub array_type: Oid,
    pub primary_key: Oid,
    pub constraint: Oid,
}

/// The OIDs of an index: of the index of its table, and of the relation that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct IndexOids {
    pub index: Oid,
    pub relation: Oid,
    pub row_type: Oid,
    pub array_type: Oid,
}

impl Table {
    /// Returns the OIDs; `None` if the number is too large for one.
    pub fn oids(&self) -> Option<TableOids> {
        let oid = |part| oid(FIRST_TABLE, self.number, part);
        Some(TableOids {
            table: oid(0)?,
            row_type: oid(1)?,
            array_type: oid(2)?,
            primary_key: oid(3)?,
            constraint: oid(4)?,
        })
    }

    /// Returns the name of the primary key's index and constraint.
    pub fn primary_key(&self) -> String {
        format!("{}_pkey", self.name)
    }
}

impl Index {
    /// Returns the OIDs; `None` if the number is too large for one.
    pub fn oids(&self) -> Option<IndexOids> {
        let oid = |part| oid(FIRST_INDEX, self.number, part);
        Some(IndexOids {
            index: oid(0)?,
            relation: oid(1)?,
            row_type: oid(2)?,
            array_type: oid(3)?,
        })
    }
}

impl Role {
    /// Returns the OID; `None` if the number is too large for one.
    pub fn oid(&self) -> Option<Oid> {
        FIRST_ROLE.checked_add(self.number).and_then(|oid| Oid::try_from(oid).ok())
    }
}

impl Facts {
    /// Returns the OID of a user's role; that of the owner for an unknown one.
    pub fn role(&self, name: &str) -> Oid {
        self.roles.iter().find(|role| role.name == name).and_then(Role::oid).unwrap_or(OWNER)
    }
}
