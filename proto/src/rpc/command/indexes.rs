//! Indexes, and what can be changed of them without a build.

use serde::{Deserialize, Serialize};

use super::kind::{Audited, CommandKind, Need, PlacedKind, Room};
use crate::model::catalog::Catalog;
use crate::model::ids::{BucketId, IndexId};
use crate::model::index::IndexSpec;
use crate::model::users::Privilege;

/// CREATE INDEX. Slices are placed at once, by a pure planner over the registered indexers
/// (replicas on different nodes and zones); if there are too few, the error names the available ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateIndex {
    /// The bucket that the definition names.
    pub bucket: BucketId,
    /// The definition.
    pub spec: IndexSpec,
    /// True to leave the index `pending`.
    pub defer_build: bool,
    /// Not an error if there is one of that name.
    pub if_not_exists: bool,
}

impl CommandKind for CreateIndex {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::Bucket(Privilege::Define, self.bucket)
    }

    fn creates(&self) -> bool {
        true
    }

    fn places(&self) -> Option<PlacedKind> {
        Some(PlacedKind::Slices)
    }

    fn room(&self, catalog: &Catalog) -> Room {
        match self.if_not_exists && catalog.index(&self.spec.name).is_some() {
            true => Room::default(),
            false => Room::of_index(&self.spec),
        }
    }
}

/// BUILD INDEX ON bucket (names): all or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildIndexes {
    /// The indexes to build.
    pub indexes: Vec<IndexId>,
}

impl CommandKind for BuildIndexes {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::Indexes(Privilege::Define, self.indexes.clone())
    }

    fn places(&self) -> Option<PlacedKind> {
        Some(PlacedKind::Slices)
    }
}

/// DROP INDEX: removes all generations of an index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropIndex {
    /// The index to drop.
    pub index: IndexId,
}

impl CommandKind for DropIndex {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::index(Privilege::Define, self.index)
    }
}

/// ALTER INDEX … RENAME TO: nothing is built. Its sender expects the definition from which the statement was derived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RenameIndex {
    /// The index to rename.
    pub index: IndexId,
    /// The new name of the index.
    pub to: String,
    /// The statement that declares it under its new name, for SHOW INDEXES.
    pub sql: String,
}

impl CommandKind for RenameIndex {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::index(Privilege::Define, self.index)
    }
}

/// ALTER INDEX … SET (replicas = n): the leader makes more copies, or gives some up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetReplicas {
    /// The index to change.
    pub index: IndexId,
    /// Copies besides the first.
    pub replicas: u8,
}

impl CommandKind for SetReplicas {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::index(Privilege::Define, self.index)
    }

    fn room(&self, catalog: &Catalog) -> Room {
        let Some(index) = catalog.indexes.get(&self.index) else { return Room::default() };
        let more = self.replicas.saturating_sub(index.spec.replicas);
        Room { places: usize::from(more) * usize::from(index.spec.slices), ..Room::default() }
    }
}

/// ALTER INDEX … SET (separate_included_columns = …): each node regroups its fragments, without copying.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetSeparateIncludedColumns {
    /// The index to change.
    pub index: IndexId,
    /// See `IndexSpec::separate_included_columns`.
    pub separate: bool,
}

impl CommandKind for SetSeparateIncludedColumns {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::index(Privilege::Define, self.index)
    }
}

/// `ALTER INDEX … SET (slice_bytes_max = …)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetSliceBytesMax {
    /// The index to change.
    pub index: IndexId,
    /// The size of a slice from which on the index gets more slices, in bytes; 0 means never.
    pub bytes: u64,
}

impl CommandKind for SetSliceBytesMax {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::index(Privilege::Define, self.index)
    }
}
