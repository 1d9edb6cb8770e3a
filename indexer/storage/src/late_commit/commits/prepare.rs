//! Writing of a large commit ahead of its epoch (`commit_rows::prepared` explains why, and when
//! the written rows can be used).
//!
//! One commit of a node at a time is written ahead. A failure is harmless: the commit is then
//! written when its epoch is applied.

use std::sync::Arc;

use proto::lock::lock;
use proto::model::ids::{BucketId, TransactionId, TransactionPlace};
use proto::{Error, Result};

use crate::files::data_files::DataFiles;
use crate::index::load_state::{Answer, LoadRequest};
use crate::index::local_index::LocalIndex;
use crate::late_commit::changes::part::TransactionChanges;
use crate::late_commit::commit_rows::prepared::{Preparation, PreparedCommit, PreparedIndex};
use crate::late_commit::commit_rows::writer::{CommitWriter, Target};
use crate::late_commit::commits::enter::GATHERED_SHARE;
use crate::late_commit::store::LateCommitStore;
use crate::late_commit::transactions::open::OpenTransaction;
use crate::maintain::flush::flush;
use crate::node::context::EngineContext;

/// Writes the rows of a transaction whose commit begins, if the store has all of its changes;
/// `place` is the number of the last change. Blocks the thread.
pub fn prepare(
    context: &EngineContext,
    late: &LateCommitStore,
    (bucket, id, place): (BucketId, TransactionId, TransactionPlace),
) {
    let _one_at_a_time = lock(&late.preparing);
    let Some(transaction) = late.buckets.get(bucket, id) else { return };
    let written = transaction
        .preparation()
        .write(|| write_in_indexes((context, late), &transaction, bucket, place));
    match written {
        Ok(()) => tracing::debug!(transaction = %id, "wrote a commit ahead of its epoch"),
        Err(error) => {
            tracing::debug!(transaction = %id, %error, "a commit is written at its epoch");
        }
    }
}

/// Writes the rows of a transaction in all indexes of its bucket that it has changed.
fn write_in_indexes(
    (context, late): (&EngineContext, &LateCommitStore),
    transaction: &OpenTransaction,
    bucket: BucketId,
    place: TransactionPlace,
) -> Result<PreparedCommit> {
    let parts = transaction.parts_at(place)?;
    let bytes_max = (context.options.memory_bytes / GATHERED_SHARE) as usize;
    let mut prepared = PreparedCommit::with_counter(&late.usage);
    for index in context.state.indexes_of_bucket(bucket) {
        let id = index.info.local_id();
        let is_dropped = index.load_state().answer(LoadRequest::Write) == Answer::Refuse;
        let Some(part) = parts.get(&id).filter(|_| !is_dropped && !index.writer().is_building)
        else {
            continue;
        };
        let into = (&*index, &context.files, bytes_max);
        prepared.add(id, write_in_index(into, part, transaction.preparation())?);
    }
    Ok(prepared)
}

/// Writes the rows of a transaction in one index.
fn write_in_index(
    (index, files, bytes_max): (&LocalIndex, &Arc<DataFiles>, usize),
    part: &TransactionChanges,
    preparation: &Preparation,
) -> Result<PreparedIndex> {
    // The look-ups do not read the memory. Documents that enter it from now on are noted.
    flush(index, files)?;
    let version = index.version.load_full();
    let grouping = lock(&index.fragment_lists).manifest.grouping();
    let target = Target {
        info: &index.info,
        version: &version,
        files,
        grouping,
        is_building: false,
        bytes_max,
    };
    let sources = part.sources()?;
    let _held = index.count_temporary(sources.memory_bytes() + bytes_max as u64);
    let mut out = CommitWriter::new(&target);
    out.write_transaction(&sources, &|_| match preparation.is_invalid() {
        true => Err(Error::unavailable("what is written does not count any more")),
        false => Ok(false),
    })?;
    Ok(PreparedIndex::new(&target, out.finish()?))
}
