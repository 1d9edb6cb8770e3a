//! The names of buckets and indexes in statements, which are converted to numbers with the catalog
//! of this process. A command contains only numbers, and the revisions of the indexes from which it
//! was derived, so it never changes another object with the name.
//!
//! - An unknown name is looked up again after this process has caught up with the coordinators.
//! - A command about an index is refused if the index was renamed, redefined or dropped after the
//!   lookup. The statement then looks the name up again, up to three times in all, if the name
//!   still means an index of that bucket.
//! - A bucket that was dropped after the lookup does not exist for the statement, even if another
//!   bucket has got its name.
//! - The coordinators check new names, and so decide IF NOT EXISTS.

use std::sync::Arc;

use proto::model::bucket::BucketInfo;
use proto::model::ids::BucketId;
use proto::model::index::IndexInfo;
use proto::rpc::command::{Command, Outcome, Proposal};
use proto::{Error, ErrorCode, Result};

use crate::access::{Access, AuditedAccess, absent};

/// The maximum number of times that a statement derives its command.
const TRIES_MAX: usize = 3;

/// Returns the bucket or data set of a name; an error if there is none.
pub async fn find_bucket(access: &Access, name: &str) -> Result<Arc<BucketInfo>> {
    let found = access.find(|catalog| catalog.bucket(name).cloned()).await?;
    found.ok_or_else(|| match access.catalog().index(name) {
        Some(_) => Error::new(ErrorCode::Unknown, format!("{name:?} is an index, not a bucket"))
            .with_hint(
                "SHOW BUCKETS lists the buckets; the privileges on one are those on its indexes",
            ),
        None => absent(name),
    })
}

/// Returns the index of a name; an error if there is none, or if the name is that of a bucket.
pub async fn find_index(access: &Access, name: &str) -> Result<Arc<IndexInfo>> {
    let found = access.find(|catalog| catalog.index(name).cloned()).await?;
    found.ok_or_else(|| match access.catalog().bucket(name) {
        Some(_) => Error::new(ErrorCode::Unknown, format!("{name:?} is a bucket, not an index"))
            .with_hint("SHOW INDEXES lists the indexes"),
        None => absent(name),
    })
}

/// Executes a command about the bucket of a name.
pub async fn run_on_bucket(
    access: &AuditedAccess,
    name: &str,
    command: impl FnOnce(BucketId) -> Result<Command> + Send,
) -> Result<Outcome> {
    let bucket = find_bucket(access, name).await?.id;
    let ran = access.command(command(bucket)?.into()).await;
    ran.map_err(|refused| of_bucket(access, (bucket, name), refused))
}

/// Returns the error for a refused command about a bucket. For a dropped bucket, the error contains
/// the name in the statement.
pub fn of_bucket(access: &Access, (id, name): (BucketId, &str), refused: Error) -> Error {
    match (refused.code, access.catalog().buckets.contains_key(&id)) {
        (ErrorCode::Changed, true) => lags(name),
        (ErrorCode::Changed, false) => absent(name),
        _ => refused,
    }
}

/// Returns the error of a statement in a process whose catalog lags, so that it does not show the
/// change for which the coordinators refuse the command.
fn lags(name: &str) -> Error {
    let what = format!("the router lags: it lacks the last change of {name:?}");
    Error::unavailable(what).with_hint("try again in a few seconds")
}

/// Executes a command about the index of a name, and repeats it if the index was changed meanwhile.
pub async fn run_on_index(
    access: &AuditedAccess,
    name: &str,
    command: impl Fn(&IndexInfo) -> Result<Command> + Send + Sync,
) -> Result<Outcome> {
    let mut tries = Tries::default();
    loop {
        let index = tries.find(access, name).await?;
        let proposal = Proposal::from(command(&index)?).made_from([&*index]);
        match access.command(proposal).await {
            Err(refused) => tries.note(access, &[index], refused)?,
            ran => return ran,
        }
    }
}

/// The attempts of a statement about indexes of one bucket.
#[derive(Default)]
pub struct Tries {
    refused: usize,
    bucket: Option<BucketId>,
}

impl Tries {
    /// Returns the index of a name for the next attempt.
    pub async fn find(&mut self, access: &Access, name: &str) -> Result<Arc<IndexInfo>> {
        let index = find_index(access, name).await?;
        let bucket = find_bucket(access, &index.spec.bucket).await?.id;
        match *self.bucket.get_or_insert(bucket) == bucket {
            true => Ok(index),
            false => Err(absent(name)),
        }
    }

    /// Counts a refused command that was derived from indexes. Returns an error for the user if
    /// another attempt is useless.
    pub fn note(&mut self, access: &Access, seen: &[Arc<IndexInfo>], refused: Error) -> Result<()> {
        self.refused += 1;
        if refused.code != ErrorCode::Changed || self.refused == TRIES_MAX {
            return Err(refused);
        }
        let catalog = access.catalog();
        let is_known = |index: &&Arc<IndexInfo>| {
            catalog.indexes.get(&index.id).is_none_or(|now| now.defined != index.defined)
        };
        match seen.iter().any(|index| is_known(&index)) {
            true => Ok(()),
            false => Err(lags(&seen[0].spec.name)),
        }
    }
}
