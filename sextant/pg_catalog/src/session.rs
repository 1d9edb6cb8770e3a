//! The session of a statement, with the facts about it and its cluster that functions return.

use crate::error::Result;

/// The session of a statement. Settings have PostgreSQL's names in lower case.
pub trait Session {
    /// Returns the name of the user who has logged in.
    fn user(&self) -> &str;
    /// Returns the name of the database.
    fn database(&self) -> &str;
    /// Returns the schemas in which unqualified names are looked up, those of the setting that exist,
    /// without the implicit `pg_catalog`.
    fn search_path(&self) -> &[String];
    /// Returns a setting as SHOW prints it; `None` if there is none with this name.
    fn setting(&self, name: &str) -> Option<String>;
    /// Changes a setting, for the transaction only if `local`, and returns its new value.
    fn change_setting(&self, name: &str, value: &str, local: bool) -> Result<String>;
    /// Returns the text of `version()`.
    fn version(&self) -> String;
    /// Returns the number of the session, as `pg_backend_pid()`.
    fn process(&self) -> i32;
    /// Returns the start of the transaction, in microseconds since 2000-01-01 UTC.
    fn transaction_start_us(&self) -> i64;
    /// Returns the start of the statement, in microseconds since 2000-01-01 UTC.
    fn statement_start_us(&self) -> i64;
    /// Returns the present time, in microseconds since 2000-01-01 UTC.
    fn now_us(&self) -> i64;
    /// Returns a random number, for `random()` and `gen_random_uuid()`.
    fn random(&self) -> u64;
    /// Returns the address and port of the client; `None` for a local one.
    fn client(&self) -> Option<(String, u16)>;
    /// Returns the address and port of the server; `None` for a local one.
    fn server(&self) -> Option<(String, u16)>;
    /// Returns the start of the process, in microseconds since 2000-01-01 UTC.
    fn process_start_us(&self) -> i64;
    /// Returns true if the user has a right on an object.
    fn has_right(&self, right: &Right<'_>) -> Result<bool>;
    /// Returns the size of a relation in bytes; `None` if it is unknown or there is none with this OID.
    fn relation_size(&self, oid: u32) -> Option<i64>;
}

/// A privilege on an object, as `has_table_privilege` tests it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right<'a> {
    /// The user; `None` for the session's.
    pub user: Option<&'a str>,
    /// The kind of object: `table`, `schema`, `database`, `function`, `column` and so on.
    pub kind: &'a str,
    /// The OID of the object; 0 if the kind has no objects here.
    pub object: u32,
    /// The name of the privilege in upper case, such as `SELECT`, with ` WITH GRANT OPTION` if it was asked for.
    pub privilege: &'a str,
}
