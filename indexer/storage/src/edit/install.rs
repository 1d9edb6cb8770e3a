//! Target of a move: adds a slice to an index from received files. This description covers both
//! ends of a move.
//!
//! The source ([`crate::edit::export`]) flushes, so that all epochs up to the newest applied one
//! are in fragments. It sends the slice's lists and, of each file that they name, the slice's
//! blocks with all versions ([`crate::fragment::part`]); the rows of other slices in the file
//! stay. The target can request further rounds: its complete files are not sent twice, and the
//! source does not compact the index during a move, so a later round sends only what was flushed
//! since. File numbers are valid only as long as the source has its store open. So each opening of
//! a store has a random number, and the target discards everything received before when that
//! number changes.
//!
//! The target ([`crate::edit::receive`]) checks every piece and every block as it arrives, and
//! writes the blocks of each file into a fragment with a new number. Slice numbers of rows and
//! restrictions are those of the source, so that the source's lists are valid on the target. The
//! files are synced together at the end of a round. The target *installs* the slice at an epoch
//! that it has applied, between two epochs. The lists, restricted to that epoch, become the
//! slice's lists ([`crate::edit::arrival`]), and from the next epoch on the target's stream feeds
//! the slice. So nothing is applied twice and nothing is missed: everything up to the epoch comes
//! from the source, everything above it from the stream.
//!
//! If the oldest epoch that the source can read is above the target's epoch, the source has
//! dropped versions that this epoch needs, and the target waits for a later epoch. Received files
//! that are in no manifest are deleted at the next start.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::Error;
use proto::lock::lock;
use proto::model::cut::EpochMark;
use proto::model::ids::SliceId;
use proto::model::index::IndexInfo;

use crate::edit::arrival::{
    ArrivingSlice, ArrivingSlices, EntryCount, EpochBoundary, InstallError, add_arriving_slices,
    boundary_after,
};
use crate::edit::receive::ReceivedFiles;
use crate::file_id::FileId;
use crate::node::context::EngineContext;
use crate::node::name_bucket::ensure_bucket_mark;
use crate::retention::RetainedEpochs;

/// A refused installation of a slice, with the received files for a later attempt.
pub struct InstallRefusal {
    /// Cause.
    pub error: Error,
    /// The received files.
    pub received: ReceivedFiles,
}

/// Adds a received slice to its index at the epoch of `mark`. The epoch must be the newest one
/// applied to the bucket, and no epoch may be applied during the call. `Unavailable` if the
/// received files lack the epoch and more must be requested from the source.
pub async fn install_slice(
    context: &Arc<EngineContext>,
    received: ReceivedFiles,
    slice: SliceId,
    info: Arc<IndexInfo>,
    mark: &EpochMark,
) -> std::result::Result<(), Box<InstallRefusal>> {
    if let Err(error) = received.check_readable_at(mark) {
        return Err(Box::new(InstallRefusal { error, received }));
    }
    // After a crash, the stream must not deliver epochs again that the received files have.
    if let Err(error) = context.log.sync().await {
        return Err(Box::new(InstallRefusal { error, received }));
    }
    if let Err(error) = ensure_bucket_mark(context, mark).await {
        return Err(Box::new(InstallRefusal { error, received }));
    }
    let task = Arc::clone(context);
    let at = boundary_after(context, mark.bucket, mark.epoch).await;
    let work = move || {
        let bucket_lock = task.state.bucket_lock(info.bucket);
        let _alone = lock(&bucket_lock);
        let mut received = received;
        match install_received(&task, &received, slice, info, at) {
            Ok(()) => {
                received.files.clear();
                Ok(())
            }
            Err(InstallError::Unchanged(error)) => {
                Err(Box::new(InstallRefusal { error, received }))
            }
            Err(InstallError::Uncertain(error)) => {
                // The manifest on disk may name the files. So they stay, and the next start finds
                // out.
                received.files.clear();
                Err(Box::new(InstallRefusal { error, received }))
            }
        }
    };
    context.env.blocking(work).await
}

/// Adds the received slice to its index, and deletes received files that no list names.
fn install_received(
    context: &EngineContext,
    received: &ReceivedFiles,
    slice: SliceId,
    info: Arc<IndexInfo>,
    at: EpochBoundary,
) -> std::result::Result<(), InstallError> {
    let head = received.head.as_ref().ok_or_else(|| Error::internal("nothing was received"))?;
    let lists = received.local_lists_at(head, at.epoch)?;
    let named: BTreeSet<FileId> = lists.files().collect();
    let tables = received.files.values().filter(|(file, _)| named.contains(file));
    let arrived = ArrivingSlice {
        lists,
        reach: RetainedEpochs { horizon: head.floor, points: head.points.clone() },
        entries: EntryCount::Reported(head.entries),
    };
    let slices = BTreeMap::from([(slice.slice, arrived)]);
    context.files.sync_names()?;
    add_arriving_slices(
        context,
        ArrivingSlices { slices, tables: tables.cloned().collect(), info },
        at,
    )?;
    // Fragments without rows at or below the epoch are in no list.
    let unnamed = received.files.values().filter(|(file, _)| !named.contains(file)).cloned();
    context.files.retire(unnamed.collect());
    Ok(())
}

#[cfg(test)]
#[path = "install_tests.rs"]
pub(crate) mod tests;
