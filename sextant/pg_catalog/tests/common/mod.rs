//! A session and the relations of an empty cluster, for tests.

use std::sync::Arc;

use pg_catalog::error::Result;
use pg_catalog::facts::{Facts, SessionFacts};
use pg_catalog::relations::{Definitions, Snapshot};
use pg_catalog::session::{Right, Session};

/// The session of a user who may do everything.
pub struct User;

impl Session for User {
    fn user(&self) -> &str {
        "admin"
    }
    fn database(&self) -> &str {
        "app"
    }
    fn search_path(&self) -> &[String] {
        &[]
    }
    fn setting(&self, _: &str) -> Option<String> {
        None
    }
    fn change_setting(&self, _: &str, value: &str, _: bool) -> Result<String> {
        Ok(value.to_owned())
    }
    fn version(&self) -> String {
        String::new()
    }
    fn process(&self) -> i32 {
        1
    }
    fn transaction_start_us(&self) -> i64 {
        0
    }
    fn statement_start_us(&self) -> i64 {
        0
    }
    fn now_us(&self) -> i64 {
        0
    }
    fn random(&self) -> u64 {
        1
    }
    fn client(&self) -> Option<(String, u16)> {
        None
    }
    fn server(&self) -> Option<(String, u16)> {
        None
    }
    fn process_start_us(&self) -> i64 {
        0
    }
    fn has_right(&self, _: &Right<'_>) -> Result<bool> {
        Ok(true)
    }
    fn relation_size(&self, _: u32) -> Option<i64> {
        None
    }
}

/// Returns the relations of a cluster without buckets.
pub fn snapshot() -> Snapshot {
    let facts = Facts { database: "app".to_owned(), ..Facts::default() };
    Snapshot::new(Arc::new(Definitions::new(facts)), SessionFacts::default())
}
