//! Handles changes of the set of indexes in a stream: indexes that join and leave, slices whose
//! mutations the stream begins or ceases to carry, copies of missing slices from other nodes, and
//! removal of slices without a stream.
//!
//! A copy whose mutations the stream no longer carries is dropped before the next epoch is
//! applied, so that no node answers from a stale copy. An indexer does not accept an
//! `IndexInfo::revision` that is older than its own, and opens the stream again. A build that
//! gets further slices restarts.

use std::sync::Arc;

use proto::model::cut::Cut;
use proto::model::ids::{LocalIndexId, SliceNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::plant::{self, Plant};
use proto::{Error, Result};

use storage::{SliceStore, StoredIndex};

use super::follower::{Follower, StreamedIndex, grouping};
use super::policy;
use crate::context::NodeContext;

impl Follower {
    /// Drops an index whose mutations the stream does not carry, since it would become stale.
    /// Returns an error, and keeps the index, if the projector's catalog is older than this
    /// node's.
    pub(super) async fn drop_left_index(&self, stored: &StoredIndex) -> Result<()> {
        let id = stored.id();
        let catalog = self.context.catalog.load_full();
        let is_older = policy::is_older(&catalog, id, stored.info.revision);
        if is_older
            || !policy::is_placed_elsewhere_or_gone(&catalog, id, self.context.config.node.id)
        {
            return Err(self.behind_error(id));
        }
        self.context.store.drop_index(id).await?;
        self.context.slices_changed();
        Ok(())
    }

    /// Returns the error for a stream whose projector has another catalog than this node.
    fn behind_error(&self, index: LocalIndexId) -> Error {
        Error::unavailable(format!(
            "bucket {}: this node and the projector know different states of index {index}; trying again",
            self.bucket
        ))
    }

    /// Records the slices of an index whose mutations the stream carries from the cut `at` on.
    /// Drops stored slices whose mutations it no longer carries, before the next epoch is
    /// applied.
    async fn record_streamed_slices(&mut self, index: &Arc<IndexInfo>, at: &Cut) -> Result<()> {
        let (node, id) = (self.context.config.node.id, index.local_id());
        let known = self.revisions.get(&id).copied().unwrap_or(0);
        let stored = self.find_stored(index);
        let kept = stored.as_ref().map_or(0, |stored| stored.info.revision);
        if index.revision < known.max(kept) {
            return Err(self.behind_error(id));
        }
        self.revisions.insert(id, index.revision);
        for (slice, _) in stored.iter().flat_map(|stored| &stored.slices) {
            if !index.is_fed(node, *slice) && !plant::is(Plant::StaleOwnerAnswers) {
                self.context.store.drop_slice(id.slice(*slice)).await?;
                self.context.slices_changed();
            }
        }
        let rebuilt = self.context.store.rebuilt_slices(id);
        if rebuilt.iter().any(|slice| !index.is_fed(node, *slice)) {
            // The rebuild starts again for the slices that stay.
            self.builds.remove(&id);
            self.context.store.drop_rebuild(id).await?;
        }
        let before = self.fed.remove(&id).map(|fed| fed.since).unwrap_or_default();
        let since = policy::streamed_since(index, node, before, at);
        self.transactions.join(index, since.keys().copied().collect());
        self.fed.insert(id, StreamedIndex { info: Arc::clone(index), since });
        Ok(())
    }

    /// Installs the slices that were copied from other nodes. A slice is installed if the stream
    /// carries its mutations from the newest applied epoch on.
    pub(super) async fn install_copied_slices(&mut self) {
        let Some(mark) = &self.applied else { return };
        if self.resync.is_some() {
            // A slice installed now would lack the corrections that the other copies are about to receive.
            return;
        }
        for mv in self.incoming.of_bucket(self.bucket) {
            let Some(fed) = self.fed.get(&mv.slice.local_index()) else { continue };
            let Some(since) = fed.since.get(&mv.slice.slice) else { continue };
            // An older copy of the slice is dropped at an earlier place of the stream.
            let is_known = |id| fed.info.moves.iter().any(|known| known.id == id);
            if !mv.id().is_none_or(is_known) {
                continue;
            }
            let covered = mark.cut.reaches(since) || plant::is(Plant::HandOverUncovered);
            if covered && mv.install(&self.context, &fed.info, mark).await && mv.id().is_none() {
                self.incoming.end_restore(mv.slice);
            }
        }
    }

    /// Handles an index whose mutations the stream carries from the cut `at` on. Builds the
    /// slices of a new index. Copies missing slices from other nodes if they may have the index.
    pub(super) async fn join(&mut self, index: Arc<IndexInfo>, at: &Cut) -> Result<()> {
        // This call decides again how the node gets the slices.
        self.derived.remove(&index.local_id());
        self.record_streamed_slices(&index, at).await?;
        let NodeContext { store, config, .. } = &self.context;
        let incoming = &self.incoming;
        // Slices in a move are copied by the move.
        let mut missing = index.topology.slices_on(config.node.id);
        let stored = self.find_stored(&index);
        let id = index.local_id();
        let rebuilt = store.rebuilt_slices(id);
        let whole = self.builds.get(&id).filter(|_| rebuilt.is_empty());
        let is_built = |slice: &SliceNo| {
            whole.is_some_and(|build| build.info.topology.hosts(config.node.id, *slice))
        };
        if missing.iter().all(is_built) {
            return Ok(());
        }
        let begins_anew = whole.is_some();
        if begins_anew {
            // The node has been given further slices meanwhile, and the snapshot is read for those of the beginning.
            self.builds.remove(&id);
            store.drop_index(id).await?;
        }
        let build = self.builds.get(&id);
        let stored = stored.filter(|_| !begins_anew);
        let readable = stored.as_ref().filter(|stored| stored.floor.is_some());
        let had = readable.is_some() || build.is_some() || incoming.is_restoring(id);
        if !had && index.state == IndexState::Backfill {
            if self.derive_later(&index) {
                return Ok(());
            }
            self.context.store.begin_build(Arc::clone(&index), grouping(&index)).await?;
            self.spawn_build(&index, at.clone());
            self.context.slices_changed();
            return Ok(());
        }
        if stored.is_some() && readable.is_none() {
            // The rest of a build that no longer exists.
            store.drop_index(id).await?;
        }
        let is_here = |slice: &SliceNo| readable.iter().any(|stored| stored.has(*slice));
        missing.retain(|slice| !is_here(slice) && !rebuilt.contains(slice));
        incoming.restore(&self.context, &index, &missing);
        Ok(())
    }
}
