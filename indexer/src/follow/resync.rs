//! Resync: updates the copies of indexes when mutations that they need are not available.
//!
//! Either the source has purged the history, or the mutations before the next stability timestamp
//! (the end of an epoch) exceed the memory. A rebuild would be wasteful, since most of the
//! copies' content is right. Instead:
//!
//! 1. The follower drops all unapplied mutations, and its next stream begins at the source's
//!    *present*.
//! 2. Each index is compared, document by document, with a snapshot of the source that is taken
//!    after that. Differences become *corrections*, key-versions in the format of the stream.
//!    Meanwhile frames gather, no epoch is applied, and the copies stay readable at their old
//!    epochs.
//! 3. The first epoch whose cut covers all snapshots includes the corrections, followed by the
//!    stream's mutations up to its cut. For the engine, the log and recovery it is an ordinary
//!    epoch.
//!
//! Correctness: for each document the later mutation wins. A mutation of the stream is at least
//! as new as the snapshot's state of its document; if the stream has none, the document has not
//! changed since the snapshot. A mutation of the stream gives the document's state in every index
//! of the node. At the cut the copies therefore equal the history. The epochs in between were
//! never applied: since the new epoch's parent is not the applied epoch, the floor (the oldest
//! readable epoch) rises to the new epoch, and no scan of the skipped epochs is answered with
//! older data (I3).
//!
//! Copies whose applied epoch is not known (`resync_unknown_epoch`) are compared in the same way. They
//! cannot be read until then.
//!
//! A resync keeps no state on disk. After a crash before its epoch is in the log, the follower
//! finds its old position purged and begins again; after a later crash the log has the
//! corrections. A loss of history ([`super::rollback`]) ends a resync if it invalidates its
//! snapshots. Corrections and frames together are bounded; above the bound, or if the snapshot is
//! not ordered by id, the slices are dropped and rebuilt from a snapshot.

use std::sync::Arc;

use proto::model::cut::Cut;
use proto::{Error, ErrorCode, Result};
use storage::{EpochBatch, SliceStore};

use super::comparison::{ComparisonResult, Resync, compare_all, epoch_bytes_max};
use super::follower::Follower;
use super::policy;

impl Follower {
    /// Begins a resync, because mutations that the copies need are not available. Drops received
    /// mutations. Builds are restarted with the next stream.
    pub(super) fn begin_resync(&mut self, why: &Error) {
        let applied = self.applied.as_ref().map(|mark| mark.epoch).unwrap_or_default();
        tracing::info!(bucket = %self.bucket, %applied, %why, "the copies are compared with a snapshot");
        self.forget_received();
        self.resync = Some(Resync::Wanted);
    }

    /// Begins a resync if slices are readable but the store has no record of their epoch, because
    /// its files were damaged. Otherwise a stream from the source's present would never deliver
    /// the mutations before it.
    pub(super) fn resync_unknown_epoch(&mut self) {
        let readable: Vec<_> =
            self.stored().into_iter().filter(|stored| stored.floor.is_some()).collect();
        if self.resync.is_some()
            || !policy::has_unknown_epoch(self.applied.is_some(), readable.len())
        {
            return;
        }
        tracing::warn!(
            bucket = %self.bucket, indexes = readable.len(),
            "no applied epoch of these slices is known: the data directory was damaged"
        );
        let why = "the applied epoch is not known";
        self.begin_resync(&Error::new(ErrorCode::HistoryPurged, why));
    }

    /// Drops all slices of the bucket, as the last resort. They are rebuilt when a stream carries
    /// their indexes.
    pub(super) async fn drop_all_slices(&mut self) -> Result<()> {
        self.forget_received();
        for stored in self.stored() {
            self.context.store.drop_index(stored.id()).await?;
        }
        self.context.slices_changed();
        Ok(())
    }

    /// Starts the comparisons of a resync, once its stream has begun at the cut `joined`.
    pub(super) fn compare_copies(&mut self, joined: &Cut) {
        if !matches!(self.resync, Some(Resync::Wanted)) {
            return;
        }
        let whole = self.stored().into_iter().filter(|stored| stored.floor.is_some());
        let fed = whole.filter_map(|stored| Some(Arc::clone(&self.fed.get(&stored.id())?.info)));
        let (out, done) = async_channel::bounded(1);
        let compare = compare_all(self.context.clone(), fed.collect(), out);
        // A panic closes the channel, and the copies are rebuilt.
        let _task = self.context.env.spawn_request("resync", compare);
        self.resync = Some(Resync::Comparing { joined: joined.clone(), done, _task });
    }

    /// Stores the result of the comparisons. After an error, drops all slices, which are then
    /// rebuilt.
    pub(super) async fn store_comparison(
        &mut self,
        compared: Result<ComparisonResult>,
    ) -> Result<()> {
        let compared = match compared {
            Ok(compared) => compared,
            Err(error) => {
                tracing::warn!(bucket = %self.bucket, %error, "its slices are built anew");
                self.drop_all_slices().await?;
                return Err(Error::new(ErrorCode::DropData, error.message));
            }
        };
        if let Some(Resync::Comparing { joined, .. }) = self.resync.take() {
            let (bytes, snapshots) = (compared.corrections.len(), compared.cuts.len());
            tracing::info!(bucket = %self.bucket, snapshots, bytes, "the copies are compared");
            self.resync = Some(Resync::Compared { joined, compared });
        }
        self.check_compared()
    }

    /// Restarts the resync, and returns an error, if a snapshot of it cannot be used: it belongs
    /// to a lost history, or ends before the stream began.
    pub(super) fn check_compared(&mut self) -> Result<()> {
        let (Some(Resync::Compared { joined, compared }), Some(logs)) =
            (&self.resync, &self.history)
        else {
            return Ok(());
        };
        if !compared.cuts.iter().any(|cut| policy::is_snapshot_unusable(logs, cut, joined)) {
            return Ok(());
        }
        let error = Error::new(ErrorCode::DropData, "a loss of history overtook a resync");
        self.begin_resync(&error);
        Err(error)
    }

    /// Removes and returns the next epoch that can be applied; `None` if there is none. During a
    /// resync, this is the first epoch that covers the snapshots, with the corrections.
    pub(super) fn next_ready_epoch(&mut self) -> Result<Option<EpochBatch>> {
        let queue = self.queue.as_mut();
        let queue = queue.ok_or_else(|| Error::internal("epochs without a stream"))?;
        Ok(match &self.resync {
            None => queue.next_ready_epoch(),
            Some(Resync::Compared { compared, .. }) => {
                let history = self.history.as_deref();
                queue.skip_epochs(|mark| compared.is_covered(history, mark));
                queue.next_ready_epoch().map(|batch| compared.with_corrections(batch))
            }
            Some(_) => {
                queue.keep_newest_epoch();
                None
            }
        })
    }

    /// Limits the memory that waits for one epoch. The first epoch may need all mutations that a
    /// node lacks, if the node was away for long and the projector has restarted and forgotten
    /// the epochs in between. Beyond the limit a resync begins. If a resync exceeds the limit
    /// too, the slices are rebuilt from a snapshot, which takes bounded memory.
    pub(super) async fn bound_backlog(&mut self) -> Result<()> {
        let Some(queue) = &self.queue else { return Ok(()) };
        let corrections = match &self.resync {
            Some(Resync::Compared { compared, .. }) => compared.corrections.len(),
            _ => 0,
        };
        let bytes = (queue.staged_bytes() + corrections) as u64;
        if bytes <= epoch_bytes_max(&self.context) {
            return Ok(());
        }
        let what = format!("bucket {}: {bytes} bytes wait for one epoch", self.bucket);
        let error = Error::new(ErrorCode::DropData, what);
        self.handle_oversized_epoch(&error).await?;
        Err(error)
    }

    /// Handles an epoch that exceeds the size limit. Begins a resync, or, during a resync, drops
    /// all slices, which are then rebuilt.
    pub(super) async fn handle_oversized_epoch(&mut self, why: &Error) -> Result<()> {
        if self.resync.is_none() {
            self.begin_resync(why);
            return Ok(());
        }
        tracing::warn!(bucket = %self.bucket, %why, "too much to gather: its slices are built anew");
        self.drop_all_slices().await
    }
}

#[cfg(test)]
#[path = "resync_tests.rs"]
mod tests;
