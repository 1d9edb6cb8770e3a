//! Commands about indexes, and changes of indexes that need no build.

use serde::{Deserialize, Serialize};

use super::kind::{Audited, CommandKind, Need, PlacedKind, Room};
use crate::model::catalog::Catalog;
use crate::model::ids::{BucketId, IndexId};
use crate::model::index::IndexSpec;
use crate::model::users::Privilege;

/// CREATE INDEX. Its slices are assigned to registered indexers at once, replicas on different
/// nodes and zones. The error for too few indexers names the available ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateIndex {
    /// The bucket that the definition names.
    pub bucket: BucketId,
    /// The definition.
    pub spec: IndexSpec,
    /// True if the index stays `pending` until BUILD INDEX.
    pub defer_build: bool,
    /// IF NOT EXISTS: true if an existing index of this name is no error.
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

/// BUILD INDEX ON bucket (names): begins to build all of these indexes, or none if one cannot be
/// built.
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

/// ALTER INDEX … RENAME TO: changes an index's name without a build. The proposal expects the
/// definition from which the statement was derived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RenameIndex {
    /// The index to rename.
    pub index: IndexId,
    /// The new name of the index.
    pub to: String,
    /// The CREATE INDEX statement with the new name, for SHOW INDEXES.
    pub sql: String,
}

impl CommandKind for RenameIndex {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::index(Privilege::Define, self.index)
    }
}

/// ALTER INDEX … SET (replicas = n): sets the number of replicas. The leader then makes or removes
/// copies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetReplicas {
    /// The index to change.
    pub index: IndexId,
    /// The number of copies in addition to the first.
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

/// ALTER INDEX … SET (separate_included_columns = …): each node then regroups the index's
/// fragments, without copying them.
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

/// `ALTER INDEX … SET (slice_bytes_max = …)`: sets the size limit of the index's slices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetSliceBytesMax {
    /// The index to change.
    pub index: IndexId,
    /// The size of a slice at which the index gets more slices, in bytes; 0 for no limit.
    pub bytes: u64,
}

impl CommandKind for SetSliceBytesMax {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::index(Privilege::Define, self.index)
    }
}
