//! Resync: what a follower does when nobody has the history any more that its copies lack.
//!
//! The source has purged it, or there is so much of it up to the next timestamp that it cannot be gathered. The copies
//! are not built anew: most of what they have is right. Instead
//!
//! 1. the follower forgets what it has received, and its next stream begins at the source's *present*;
//! 2. each index is compared, document by document, with a snapshot of the source that was taken since
//!    (`storage/src/build/compare.rs`): what differs becomes *corrections*, key-versions as the stream brings them. Meanwhile
//!    the stream's frames gather, no epoch is applied, and the copies answer for the epochs that they have;
//! 3. the first epoch whose cut covers all snapshots takes in the corrections, and behind them what the stream has
//!    brought up to its cut. It is one epoch for the store, the log and a crash, like any other.
//!
//! Why that is right: of one document the later mutation wins. What the stream has brought of it, from the present
//! on, is later than the snapshot's state of it or the same; where the stream says nothing, nothing has happened since
//! the snapshot. And the stream says of a document what it is in every index that is here. So at the cut the copies
//! have what the history has. The epochs in between were never applied: that the epoch's parent is not what was applied
//! before raises the floor to it, so none of them is answered with older data (I3).
//!
//! Nothing of this is kept on disk: after a crash before the epoch is in the log the follower finds its old place
//! purged and begins again; after that the log has the corrections. A loss of history ([`super::rollback`]) ends a resync
//! whose snapshots it has overtaken. Corrections and frames together are bounded; above the bound, and where the
//! snapshot does not come in the order of ids, the slices are dropped and built from a snapshot after all.

use std::sync::Arc;

use proto::model::cut::Cut;
use proto::{Error, ErrorCode, Result};
use storage::EpochBatch;

use super::comparison::{Compared, Resync, bytes_max, compare_all};
use super::follower::Follower;
use super::policy;

impl Follower {
    /// The past that the copies lack cannot be had. What is being built begins anew with the next stream.
    pub(super) fn begin_resync(&mut self, why: &Error) {
        let applied = self.applied.as_ref().map(|mark| mark.epoch).unwrap_or_default();
        tracing::info!(bucket = %self.bucket, %applied, %why, "the copies are compared with a snapshot");
        self.forget_received();
        self.resync = Some(Resync::Wanted);
    }

    /// The last resort: all slices are dropped, and built anew when a stream brings their indexes.
    pub(super) async fn build_anew(&mut self) -> Result<()> {
        self.forget_received();
        for stored in self.stored() {
            self.context.store.drop_index(stored.info.id).await?;
        }
        self.context.slices_changed();
        Ok(())
    }

    /// Begins to compare what is here, where a resync's stream has begun.
    pub(super) fn compare_copies(&mut self, joined: &Cut) {
        if !matches!(self.resync, Some(Resync::Wanted)) {
            return;
        }
        let whole = self.stored().into_iter().filter(|stored| stored.floor.is_some());
        let fed = whole.filter_map(|stored| Some(Arc::clone(&self.fed.get(&stored.info.id)?.info)));
        let (out, done) = async_channel::bounded(1);
        let work = compare_all(self.context.clone(), fed.collect(), out);
        let _task = self.context.env.spawn("resync", work);
        self.resync = Some(Resync::Comparing { joined: joined.clone(), done, _task });
    }

    /// The copies are compared.
    pub(super) async fn compared(&mut self, compared: Result<Compared>) -> Result<()> {
        let compared = match compared {
            Ok(compared) => compared,
            Err(error) => {
                tracing::warn!(bucket = %self.bucket, %error, "its slices are built anew");
                self.build_anew().await?;
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

    /// Begins anew where a snapshot is of a history that is no more, or ends before the stream began.
    pub(super) fn check_compared(&mut self) -> Result<()> {
        let (Some(Resync::Compared { joined, compared }), Some(logs)) =
            (&self.resync, &self.history)
        else {
            return Ok(());
        };
        if !compared.cuts.iter().any(|cut| policy::is_lost(logs, cut, joined)) {
            return Ok(());
        }
        let error = Error::new(ErrorCode::DropData, "a loss of history overtook a resync");
        self.begin_resync(&error);
        Err(error)
    }

    /// The next epoch that can be applied.
    pub(super) fn next_ready(&mut self) -> Result<Option<EpochBatch>> {
        let queue = self.queue.as_mut();
        let queue = queue.ok_or_else(|| Error::internal("epochs without a stream"))?;
        Ok(match &self.resync {
            None => queue.next_ready(),
            Some(Resync::Compared { compared, .. }) => {
                let history = self.history.as_deref();
                queue.skip_epochs(|mark| compared.is_covered(history, mark));
                queue.next_ready().map(|batch| compared.correct(batch))
            }
            Some(_) => {
                queue.keep_newest_epoch();
                None
            }
        })
    }

    /// A node that was away for long, while the projector began anew and forgot the timestamps in between, would
    /// gather all that it lacks for the first epoch that there is. Beyond a bound it does not, but resyncs; and where
    /// that comes to as much, its slices are built from a snapshot, which takes bounded memory whatever differs.
    pub(super) async fn bound_backlog(&mut self) -> Result<()> {
        let Some(queue) = &self.queue else { return Ok(()) };
        let corrections = match &self.resync {
            Some(Resync::Compared { compared, .. }) => compared.corrections.len(),
            _ => 0,
        };
        let bytes = (queue.staged_bytes() + corrections) as u64;
        if bytes <= bytes_max(&self.context) {
            return Ok(());
        }
        let what = format!("bucket {}: {bytes} bytes wait for one epoch", self.bucket);
        let error = Error::new(ErrorCode::DropData, what);
        self.give_up_gathering(&error).await?;
        Err(error)
    }

    /// What the next epoch brings, or a resync has found to correct, is too much for one epoch.
    pub(super) async fn give_up_gathering(&mut self, why: &Error) -> Result<()> {
        if self.resync.is_none() {
            self.begin_resync(why);
            return Ok(());
        }
        tracing::warn!(bucket = %self.bucket, %why, "too much to gather: its slices are built anew");
        self.build_anew().await
    }
}

#[cfg(test)]
#[path = "resync_tests.rs"]
mod tests;
