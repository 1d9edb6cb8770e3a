//! Creates the snapshots that transactions read.
//!
//! A vbucket that was copied from another projector by its documents lacks the versions before
//! its purge point. So no older snapshot of the vbucket can be read.

use std::sync::Arc;

use proto::model::cut::EpochMark;
use proto::model::ids::{Epoch, VbucketId};
use proto::{Error, ErrorCode, Result};

use super::bucket::Bucket;
use crate::transactions::snapshot::Snapshot;
use documents::document_store::DocumentStore;

impl Bucket {
    /// Returns the snapshot of an epoch; `None` if the stability timestamp of the epoch has not
    /// arrived yet. The error is `SnapshotTooOld` if the timestamp is no longer retained, or
    /// belongs to a lost history.
    pub fn snapshot_at(&self, epoch: Epoch) -> Result<Option<Snapshot>> {
        let Some(mark) = self.newest_epoch_until(epoch).filter(|mark| mark.epoch == epoch) else {
            return match self.newest_epoch().is_some_and(|newest| newest.epoch > epoch) {
                true => Err(self.too_old(epoch)),
                false => Ok(None),
            };
        };
        self.snapshot_of_mark(&mark).map(Some)
    }

    /// Returns the snapshot of a stability timestamp. The error is `SnapshotTooOld` if the
    /// timestamp belongs to a lost history in an owned vbucket. Other vbuckets are not checked,
    /// because other projectors have their history; a reader checks that it has read none of
    /// them.
    pub fn snapshot_of_mark(&self, mark: &EpochMark) -> Result<Snapshot> {
        let EpochMark { epoch, ref cut, .. } = *mark;
        let is_here = {
            let state = self.state();
            let owned = cut.only_vbuckets(&state.ownership.owned);
            state.owned_logs.includes_cut(&owned) && state.durable.reaches(&owned)
        };
        if !is_here {
            return Err(self.too_old(epoch));
        }
        let seqnos: Arc<[_]> = cut.iter().map(|(_, position)| position.seqno).collect();
        Ok(Snapshot { epoch, seqnos })
    }

    /// Returns an error if versions that a snapshot needs were purged from some vbuckets: all
    /// versions at and after it, including deletions. A reader calls this function after its
    /// reads, because a purge may have run meanwhile.
    pub fn check_not_purged(
        &self,
        store: &dyn DocumentStore,
        snapshot: &Snapshot,
        vbuckets: impl IntoIterator<Item = VbucketId>,
    ) -> Result<()> {
        let extents = store.extents(self.info.id)?;
        let is_purged = |vbucket: VbucketId| {
            let extent = extents.get(usize::from(vbucket.0));
            extent.is_some_and(|extent| extent.purged > snapshot.end(vbucket))
        };
        match vbuckets.into_iter().any(is_purged) {
            true => Err(self.too_old(snapshot.epoch)),
            false => Ok(()),
        }
    }

    fn too_old(&self, epoch: Epoch) -> Error {
        let name = &self.info.name;
        let what = format!("bucket {name}: the documents of epoch {epoch} are not known any more");
        Error::new(ErrorCode::SnapshotTooOld, what).with_hint("begin the transaction again")
    }
}
