//! Names of buckets and indexes in statements become numbers here, by the catalog of this process. A command has numbers only, and the
//! revisions of the indexes that it was made from, so it never reaches another object of the same name.
//!
//! - A name that means nothing is looked up again after this process has caught up with the coordinators.
//! - A command about an index is refused if the index was renamed, defined anew or dropped meanwhile. Its statement then begins again
//!   with the name, three times in all, as long as the name means an index of the same bucket.
//! - A bucket that was dropped meanwhile does not exist for the statement, even if another one has its name by now.
//! - New names, and with them IF NOT EXISTS, are left to the coordinators.

use std::sync::Arc;

use proto::model::bucket::BucketInfo;
use proto::model::ids::BucketId;
use proto::model::index::IndexInfo;
use proto::rpc::command::{Command, Outcome, Proposal};
use proto::{Error, ErrorCode, Result};

use super::backend::{Backend, absent, known};

/// The number of times that a statement makes its command. Indexes are rarely defined anew.
const TRIES_MAX: usize = 3;

/// Finds a bucket or data set.
pub async fn find_bucket(backend: &dyn Backend, name: &str) -> Result<Arc<BucketInfo>> {
    let found = known(backend, |catalog| catalog.bucket(name).cloned()).await?;
    found.ok_or_else(|| match backend.catalog().index(name) {
        Some(_) => Error::new(ErrorCode::Unknown, format!("{name:?} is an index, not a bucket"))
            .with_hint(
                "SHOW BUCKETS lists the buckets; the privileges on one are those on its indexes",
            ),
        None => absent(name),
    })
}

/// The index with a name; an error says if a bucket has it.
pub async fn find_index(backend: &dyn Backend, name: &str) -> Result<Arc<IndexInfo>> {
    let found = known(backend, |catalog| catalog.index(name).cloned()).await?;
    found.ok_or_else(|| match backend.catalog().bucket(name) {
        Some(_) => Error::new(ErrorCode::Unknown, format!("{name:?} is a bucket, not an index"))
            .with_hint("SHOW INDEXES lists the indexes"),
        None => absent(name),
    })
}

/// Runs a command about a bucket.
pub async fn run_on_bucket(
    backend: &dyn Backend,
    name: &str,
    command: impl FnOnce(BucketId) -> Result<Command> + Send,
) -> Result<Outcome> {
    let bucket = find_bucket(backend, name).await?.id;
    let ran = backend.command(command(bucket)?.into()).await;
    ran.map_err(|refused| of_bucket(backend, (bucket, name), refused))
}

/// The refusal of a command about a bucket. A bucket that was dropped is named as the statement names it.
pub fn of_bucket(backend: &dyn Backend, (id, name): (BucketId, &str), refused: Error) -> Error {
    match (refused.code, backend.catalog().buckets.contains_key(&id)) {
        (ErrorCode::Changed, true) => lags(name),
        (ErrorCode::Changed, false) => absent(name),
        _ => refused,
    }
}

/// The error of a statement in a process whose catalog lacks the change of an object for which the coordinators refuse the command.
fn lags(name: &str) -> Error {
    let what = format!("the router lags: it lacks the last change of {name:?}");
    Error::unavailable(what).with_hint("try again in a few seconds")
}

/// Runs a command about an index.
pub async fn run_on_index(
    backend: &dyn Backend,
    name: &str,
    command: impl Fn(&IndexInfo) -> Result<Command> + Send + Sync,
) -> Result<Outcome> {
    let mut tries = Tries::default();
    loop {
        let index = tries.find(backend, name).await?;
        let proposal = Proposal::from(command(&index)?).made_from([&*index]);
        match backend.command(proposal).await {
            Err(refused) => tries.note(backend, &[index], refused)?,
            ran => return ran,
        }
    }
}

/// The tries of a statement about indexes of one bucket.
#[derive(Default)]
pub struct Tries {
    refused: usize,
    bucket: Option<BucketId>,
}

impl Tries {
    /// Finds an index for the next try.
    pub async fn find(&mut self, backend: &dyn Backend, name: &str) -> Result<Arc<IndexInfo>> {
        let index = find_index(backend, name).await?;
        let bucket = find_bucket(backend, &index.spec.bucket).await?.id;
        match *self.bucket.get_or_insert(bucket) == bucket {
            true => Ok(index),
            false => Err(absent(name)),
        }
    }

    /// Counts a refused command that was made from indexes. Returns the error for the user unless another try is worth it.
    pub fn note(
        &mut self,
        backend: &dyn Backend,
        seen: &[Arc<IndexInfo>],
        refused: Error,
    ) -> Result<()> {
        self.refused += 1;
        if refused.code != ErrorCode::Changed || self.refused == TRIES_MAX {
            return Err(refused);
        }
        let catalog = backend.catalog();
        let is_known = |index: &&Arc<IndexInfo>| {
            catalog.indexes.get(&index.id).is_none_or(|now| now.defined != index.defined)
        };
        match seen.iter().any(|index| is_known(&index)) {
            true => Ok(()),
            false => Err(lags(&seen[0].spec.name)),
        }
    }
}
