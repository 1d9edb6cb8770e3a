//! Commands about data sets and their versions.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::kind::{Audited, CommandKind, Need, PlacedKind, Process, Room};
use crate::error::Error;
use crate::model::catalog::Catalog;
use crate::model::data_set::{Files, FilesRead, PartitionContent};
use crate::model::ids::{BucketId, LocalIndexId, NodeId, VbucketId};
use crate::model::index::{IndexInfo, IndexState};
use crate::model::node::Role;
use crate::model::users::Privilege;

/// CREATE BUCKET … FROM FILES: creates a data set without versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateDataSet {
    /// The name of the data set.
    pub name: String,
    /// See [`DataSet`](crate::model::data_set::DataSet).
    pub partitions: u16,
    /// See [`DataSet`](crate::model::data_set::DataSet).
    pub replication: u16,
    /// See [`DataSet`](crate::model::data_set::DataSet).
    pub idle_ms: u64,
    /// IF NOT EXISTS: true if an existing data set of this name is no error.
    pub if_not_exists: bool,
}

impl CommandKind for CreateDataSet {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::All(Privilege::Define)
    }

    fn creates(&self) -> bool {
        true
    }

    fn room(&self, catalog: &Catalog) -> Room {
        if self.if_not_exists && catalog.bucket(&self.name).is_some() {
            return Room::default();
        }
        Room { data_sets: 1, ..Room::of_name(&self.name) }
    }
}

/// ALTER BUCKET … SET (version_idle = …): sets how long an old version without readers is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetVersionIdle {
    /// The data set's bucket.
    pub bucket: BucketId,
    /// See [`DataSet`](crate::model::data_set::DataSet).
    pub idle_ms: u64,
}

impl CommandKind for SetVersionIdle {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::Bucket(Privilege::Define, self.bucket)
    }
}

/// ALTER BUCKET … LOAD VERSION: begins to load a version. Refused with `WrongState` while another
/// version is being loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadVersion {
    /// The data set's bucket.
    pub bucket: BucketId,
    /// The name of the version; must be new in the data set.
    pub version: String,
    /// The files of the version.
    pub files: Files,
    /// WITH (allow_empty): true if files without rows are no error.
    pub allow_empty: bool,
}

impl CommandKind for LoadVersion {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::Bucket(Privilege::Define, self.bucket)
    }

    fn creates(&self) -> bool {
        true
    }

    fn places(&self) -> Option<PlacedKind> {
        Some(PlacedKind::Partitions)
    }

    /// The room of a bucket, and of one generation of each index that is not deferred.
    fn room(&self, catalog: &Catalog) -> Room {
        let set = catalog.data_sets.get(&self.bucket);
        let name = catalog.buckets.get(&self.bucket).map_or("", |bucket| &bucket.name);
        let current = catalog.current_of(self.bucket);
        let is_built = |index: &&Arc<IndexInfo>| index.state != IndexState::Pending;
        let own = catalog.indexes.values().filter(is_built);
        let own = own.filter(|index| index.bucket == current);
        let bucket = Room {
            vbuckets: set.map_or(0, |set| usize::from(set.partitions)),
            definition_bytes: Room::of_name(name).definition_bytes + self.version.len(),
            ..Room::default()
        };
        own.fold(bucket, |room, index| room.with(Room::of_index(&index.spec)))
    }
}

/// ALTER BUCKET … CANCEL VERSION: removes a version that is being loaded. Refused with `WrongState`
/// for any other version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelVersion {
    /// The data set's bucket.
    pub bucket: BucketId,
    /// The version's name.
    pub version: String,
}

impl CommandKind for CancelVersion {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::Bucket(Privilege::Define, self.bucket)
    }
}

/// States that a projector has stored partitions of a version durably. Sent by this projector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartitionsLoaded {
    /// The version's bucket.
    pub bucket: BucketId,
    /// The projector.
    pub node: NodeId,
    /// The partitions, ascending.
    pub partitions: Vec<(VbucketId, PartitionContent)>,
    /// The summary of all files that the projector has read. `None` if it found the partitions
    /// complete when its process began; others have then reported the files.
    pub read: Option<FilesRead>,
}

impl CommandKind for PartitionsLoaded {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Node(self.node, Some(Role::Projector)))
    }
}

/// States that a projector has lost partitions of a version. Sent by this projector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartitionsLost {
    /// The version's bucket.
    pub bucket: BucketId,
    /// The projector.
    pub node: NodeId,
    /// The partitions that were lost.
    pub partitions: Vec<VbucketId>,
}

impl CommandKind for PartitionsLost {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Node(self.node, Some(Role::Projector)))
    }
}

/// States that a projector cannot load a version, which ends its load. Sent by this projector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VersionFailed {
    /// The version's bucket.
    pub bucket: BucketId,
    /// The projector.
    pub node: NodeId,
    /// The reason, for users.
    pub error: Error,
}

impl CommandKind for VersionFailed {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Node(self.node, Some(Role::Projector)))
    }
}

/// Changes the owners of partitions to other holders, because the present owners are silent. Sent
/// by the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnPartitions {
    /// The version's bucket.
    pub bucket: BucketId,
    /// The partitions and their new owners.
    pub owners: Vec<(VbucketId, NodeId)>,
}

impl CommandKind for OwnPartitions {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Leader)
    }
}

/// Begins to build a generation of an index over a complete version. Sent by the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildVersion {
    /// The serving generation.
    pub from: LocalIndexId,
    /// The bucket of the version.
    pub bucket: BucketId,
}

impl CommandKind for BuildVersion {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Leader)
    }

    fn places(&self) -> Option<PlacedKind> {
        Some(PlacedKind::Slices)
    }
}

/// Makes the version that is being loaded the current one, and lets its generations of the indexes
/// serve. Sent by the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SwitchVersion {
    /// The bucket of the data set.
    pub data_set: BucketId,
    /// The version's number.
    pub version: u64,
}

impl CommandKind for SwitchVersion {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Leader)
    }
}

/// Removes an old version, which has no more readers. Sent by the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropVersion {
    /// The bucket of the data set.
    pub data_set: BucketId,
    /// The version's number.
    pub version: u64,
}

impl CommandKind for DropVersion {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Leader)
    }
}
