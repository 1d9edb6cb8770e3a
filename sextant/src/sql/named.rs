//! Resolves the names of buckets and indexes in statements. Each name is converted to a number
//! with the catalog of this process. A command contains only numbers, and the revisions of the
//! indexes from which it was derived. It therefore never changes a different object that has got
//! the same name.
//!
//! - If a name is unknown, it is looked up again after this process has caught up with the
//!   coordinators.
//! - A command about an index is refused if the index was renamed, redefined or dropped after the
//!   lookup. The statement then looks up the name again, up to three times in total, as long as
//!   the name belongs to an index of the same bucket.
//! - A bucket that was dropped after the lookup counts as missing, even if another bucket has got
//!   its name.
//! - The coordinators check the names of new objects, and so decide about IF NOT EXISTS.

use std::sync::Arc;

use proto::model::bucket::BucketInfo;
use proto::model::ids::BucketId;
use proto::model::index::IndexInfo;
use proto::rpc::command::{Command, Outcome, Proposal};
use proto::{Error, ErrorCode, Result};

use crate::access::{Access, AuditedAccess, unknown_name_error};

/// The maximum number of times that a statement derives its command.
const TRIES_MAX: usize = 3;

/// Returns the bucket or data set with a name; an error if there is none.
pub async fn find_bucket(access: &Access, name: &str) -> Result<Arc<BucketInfo>> {
    let found = access.find(|catalog| catalog.bucket(name).cloned()).await?;
    found.ok_or_else(|| match access.catalog().index(name) {
        Some(_) => Error::new(ErrorCode::Unknown, format!("{name:?} is an index, not a bucket"))
            .with_hint(
                "SHOW BUCKETS lists the buckets; the privileges on one are those on its indexes",
            ),
        None => unknown_name_error(name),
    })
}

/// Returns the index with a name. Returns an error if there is none, or if the name belongs to a
/// bucket.
pub async fn find_index(access: &Access, name: &str) -> Result<Arc<IndexInfo>> {
    let found = access.find(|catalog| catalog.index(name).cloned()).await?;
    found.ok_or_else(|| match access.catalog().bucket(name) {
        Some(_) => Error::new(ErrorCode::Unknown, format!("{name:?} is a bucket, not an index"))
            .with_hint("SHOW INDEXES lists the indexes"),
        None => unknown_name_error(name),
    })
}

/// Executes a command about the bucket with a name.
pub async fn run_on_bucket(
    access: &AuditedAccess,
    name: &str,
    command: impl FnOnce(BucketId) -> Result<Command> + Send,
) -> Result<Outcome> {
    let bucket = find_bucket(access, name).await?.id;
    let ran = access.command(command(bucket)?.into()).await;
    ran.map_err(|refused| bucket_refusal_error(access, (bucket, name), refused))
}

/// Returns the error for a refused command about a bucket. If the bucket was dropped, the error
/// contains the name from the statement.
pub fn bucket_refusal_error(
    access: &Access,
    (id, name): (BucketId, &str),
    refused: Error,
) -> Error {
    match (refused.code, access.catalog().buckets.contains_key(&id)) {
        (ErrorCode::Changed, true) => lagging_error(name),
        (ErrorCode::Changed, false) => unknown_name_error(name),
        _ => refused,
    }
}

/// Returns the error for a refused command if the catalog of this process lags: it does not yet
/// contain the change that is the reason of the refusal.
fn lagging_error(name: &str) -> Error {
    let what = format!("the router lags: it lacks the last change of {name:?}");
    Error::unavailable(what).with_hint("try again in a few seconds")
}

/// Executes a command about the index with a name. Repeats it if the index was changed meanwhile.
pub async fn run_on_index(
    access: &AuditedAccess,
    name: &str,
    command: impl Fn(&IndexInfo) -> Result<Command> + Send + Sync,
) -> Result<Outcome> {
    let mut tries = Tries::default();
    loop {
        let index = tries.find(access, name).await?;
        let proposal = Proposal::from(command(&index)?).expecting_unchanged([&*index]);
        match access.command(proposal).await {
            Err(refused) => tries.count_refusal(access, &[index], refused)?,
            ran => return ran,
        }
    }
}

/// The attempts of one statement to execute a command about indexes of one bucket.
#[derive(Default)]
pub struct Tries {
    refused: usize,
    bucket: Option<BucketId>,
}

impl Tries {
    /// Returns the index with a name, for the next attempt.
    pub async fn find(&mut self, access: &Access, name: &str) -> Result<Arc<IndexInfo>> {
        let index = find_index(access, name).await?;
        let bucket = find_bucket(access, &index.spec.bucket).await?.id;
        match *self.bucket.get_or_insert(bucket) == bucket {
            true => Ok(index),
            false => Err(unknown_name_error(name)),
        }
    }

    /// Counts a refused command that was derived from the indexes in `seen`. Returns an error for
    /// the user if another attempt is useless.
    pub fn count_refusal(
        &mut self,
        access: &Access,
        seen: &[Arc<IndexInfo>],
        refused: Error,
    ) -> Result<()> {
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
            false => Err(lagging_error(&seen[0].spec.name)),
        }
    }
}
