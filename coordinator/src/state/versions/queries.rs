//! Queries about the versions of data sets: their epochs, and the builds over them.

use proto::model::cut::Position;
use proto::model::data_set::{Partition, Version, branch_of_partition};
use proto::model::ids::{Seqno, VbucketId};
use proto::model::index::{IndexInfo, IndexState};
use proto::plant::{self, Plant};

use crate::state::context::StateContext;

impl StateContext {
    /// Returns true if a build can never end, because no projector has a partition of its version
    /// any more.
    pub(crate) fn waits_for_lost_partition(&self, info: &IndexInfo) -> bool {
        let version = self.versions.version(info.bucket);
        let is_lost = version.is_some_and(|version| version.lost_partitions().next().is_some());
        info.state == IndexState::Backfill && is_lost
    }

    /// Returns true if the epoch of a version is published, so that all of its partitions are
    /// loaded.
    pub fn is_published(&self, version: &Version) -> bool {
        let Some(known) = self.epochs.get(version.bucket) else { return false };
        let cut = &known.history.last().cut;
        let is_covered =
            |(partition, position): &(VbucketId, Position)| cut.get(*partition) == *position;
        let end = partition_ends(version);
        end.map_or(plant::is(Plant::VersionInPart), |end| end.iter().all(is_covered))
    }
}

/// Returns the end of each partition that has documents; `None` while some partition is not
/// loaded yet.
pub(super) fn partition_ends(version: &Version) -> Option<Vec<(VbucketId, Position)>> {
    let end = |(partition, known): (VbucketId, &Partition)| {
        let vbuuid = branch_of_partition(version.bucket, partition);
        Some((partition, Position { vbuuid, seqno: Seqno(known.content?.rows) }))
    };
    let ends: Option<Vec<_>> = (0..).map(VbucketId).zip(&version.partitions).map(end).collect();
    Some(ends?.into_iter().filter(|(_, position)| position.seqno.0 > 0).collect())
}
