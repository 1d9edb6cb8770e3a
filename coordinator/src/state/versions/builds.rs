//! The generations of indexes over the versions of data sets: their builds, and the switch to a version ([`crate::state::generations`]).

use std::sync::Arc;

use proto::model::ids::{BucketId, LocalIndexId, NodeId};
use proto::model::index::{IndexInfo, IndexState};

use crate::state::context::StateContext;
use crate::state::effect::{Change, nothing};

impl StateContext {
    /// Begins the generation of an index over a version that is complete. The switch to the version makes it serve. It takes the place of a
    /// generation that waits for a partition which its own version has lost.
    pub(in crate::state) fn build_version(
        &mut self,
        from: LocalIndexId,
        bucket: BucketId,
        silent: &[NodeId],
    ) -> Change {
        // The version may have been dropped, or the index changed, since the leader looked.
        let (Some(record), Some(_)) = (self.indexes.get(&from.index), self.version_of(bucket))
        else {
            return nothing();
        };
        let info = Arc::clone(&record.info);
        let is_begun = matches!(info.state, IndexState::Maintenance | IndexState::Backfill);
        let next = self.next_generation(from.index).map(|next| &self.generations[&next].info);
        let is_kept = |next: &Arc<IndexInfo>| next.bucket == bucket || !self.is_stuck(next);
        if info.local_id() != from || !is_begun || next.is_some_and(is_kept) {
            return nothing();
        }
        let stuck = next.map(|next| next.local_id());
        let spec = Arc::clone(&next.unwrap_or(&info).spec);
        let unique = self.unique_id(bucket);
        let begun = self.begin_generation(&info, (&spec, bucket), unique, silent)?;
        if let Some(stuck) = stuck {
            self.generations.remove(&stuck);
        }
        Ok(begun)
    }

    /// True if a build waits for a partition of its version that no projector has any more.
    pub(crate) fn is_stuck(&self, info: &IndexInfo) -> bool {
        let version = self.version_of(info.bucket);
        let is_lost =
            |(set, number)| self.data_sets[&set].versions[&number].lost().next().is_some();
        info.state == IndexState::Backfill && version.is_some_and(is_lost)
    }

    /// Puts the generations over one bucket in the place of those over another: all of them, or none if one is missing.
    pub(in crate::state) fn switch_generations(&mut self, from: BucketId, to: BucketId) -> bool {
        let of_bucket = self.indexes.values().filter(|record| record.info.bucket == from);
        let indexes: Vec<_> = of_bucket.map(|record| Arc::clone(&record.info)).collect();
        let next = |index| {
            let next = self.next_generation(index)?;
            (self.generations[&next].info.bucket == to).then_some(next)
        };
        let is_there = |info: &Arc<IndexInfo>| match info.state {
            IndexState::Pending => true,
            _ => next(info.id).is_some(),
        };
        if !indexes.iter().all(is_there) {
            return false;
        }
        for info in indexes {
            match self.next_generation(info.id) {
                Some(id) => self.serve_next(id),
                // This generation has no entries yet.
                None => self.change_index(info.local_id(), |info| info.bucket = to),
            }
        }
        true
    }

    /// Removes the generations over a bucket that serve no index.
    pub(in crate::state) fn remove_generations_over(&mut self, bucket: BucketId) {
        let over = self.generations.iter().filter(|(_, record)| record.info.bucket == bucket);
        let gone: Vec<LocalIndexId> = over.map(|(id, _)| *id).collect();
        for id in gone {
            self.generations.remove(&id);
            self.note_generations(id.index);
        }
    }
}
