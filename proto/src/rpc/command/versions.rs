//! Data sets and their versions.

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

/// CREATE BUCKET … FROM FILES: a data set without versions.
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
    /// Not an error if there is one of that name.
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

/// ALTER BUCKET … SET (version_idle = …).
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

/// ALTER BUCKET … LOAD VERSION: begins to load a version. Refused (`WrongState`) while another version is loading.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadVersion {
    /// The data set's bucket.
    pub bucket: BucketId,
    /// The version's name, new in the data set.
    pub version: String,
    /// The files of the version.
    pub files: Files,
    /// WITH (allow_empty): the files may have no rows.
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

    /// A version needs room for a bucket, and for a generation of each index that is not deferred.
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

/// ALTER BUCKET … CANCEL VERSION: removes a version that is loading. Refused (`WrongState`) for any other.
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

/// A projector has partitions of a version durably. From that projector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartitionsLoaded {
    /// The version's bucket.
    pub bucket: BucketId,
    /// The projector.
    pub node: NodeId,
    /// The partitions, ascending.
    pub partitions: Vec<(VbucketId, PartitionContent)>,
    /// The summary of all files that the projector has read; `None` if the partitions were whole when its process began, and others have
    /// reported their contents.
    pub read: Option<FilesRead>,
}

impl CommandKind for PartitionsLoaded {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Node(self.node, Some(Role::Projector)))
    }
}

/// A projector does not have these partitions any more. From that projector.
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

/// A projector cannot load a version: it ends. From that projector.
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

/// Makes other holders the owners of partitions, because the present owners are silent. From the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnPartitions {
    /// The version's bucket.
    pub bucket: BucketId,
    /// The partitions and their owners.
    pub owners: Vec<(VbucketId, NodeId)>,
}

impl CommandKind for OwnPartitions {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Leader)
    }
}

/// Begins the generation of an index over a version that is complete. From the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildVersion {
    /// The generation that serves.
    pub from: LocalIndexId,
    /// The version's bucket.
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

/// Makes the version that is loading current, and makes its generations replace the serving ones. From the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SwitchVersion {
    /// The data set's bucket.
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

/// Drops an old version without readers. From the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropVersion {
    /// The data set's bucket.
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
