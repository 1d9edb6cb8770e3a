//! Generations of indexes: builds beside what serves.

use serde::{Deserialize, Serialize};

use super::kind::{Audited, CommandKind, Need, PlacedKind, Process, Room};
use crate::model::catalog::Catalog;
use crate::model::ids::{Generation, IndexId, LocalIndexId, SliceNo};
use crate::model::index::IndexSpec;
use crate::model::users::Privilege;

/// ALTER INDEX, REINDEX: begins a new generation of an index, with another definition or the same one, in addition to the serving one. When
/// it is complete, [`IndexReady`] makes it serve. Refused (`WrongState`) while another one is being built. Its sender expects the
/// definition from which the new one was derived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildGeneration {
    /// The index to build.
    pub index: IndexId,
    /// The new definition, of the same name and bucket.
    pub spec: Box<IndexSpec>,
}

impl CommandKind for BuildGeneration {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::index(Privilege::Define, self.index)
    }

    fn creates(&self) -> bool {
        true
    }

    fn places(&self) -> Option<PlacedKind> {
        Some(PlacedKind::Slices)
    }

    fn room(&self, _catalog: &Catalog) -> Room {
        Room::of_index(&self.spec)
    }
}

/// All slices of an index can be read: `backfill` → `maintenance`. From the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexReady {
    /// The index that was built.
    pub index: IndexId,
    /// The generation that is ready.
    pub generation: Generation,
}

impl CommandKind for IndexReady {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Leader)
    }
}

/// CANCEL BUILD: removes an index that is being built, or the generation that is being built to take its place. Refused (`WrongState`)
/// if there is neither: it never removes the serving generation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelBuild {
    /// The index whose build ends.
    pub index: IndexId,
}

impl CommandKind for CancelBuild {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::index(Privilege::Define, self.index)
    }
}

/// A retired generation is no longer read. From the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropGeneration {
    /// The generation to cancel.
    pub generation: LocalIndexId,
}

impl CommandKind for DropGeneration {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Leader)
    }
}

/// An index has outgrown its slices: begins a generation with more of them. From the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrowIndex {
    /// The generation that must serve; otherwise the command has no effect.
    pub from: LocalIndexId,
    /// The new number of slices.
    pub slices: u16,
}

impl CommandKind for GrowIndex {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Leader)
    }

    fn places(&self) -> Option<PlacedKind> {
        Some(PlacedKind::Slices)
    }
}

/// A slice of an index by ranges has outgrown the limit: begins a generation in which it is split. From the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitSlice {
    /// The generation that must serve; otherwise the command has no effect.
    pub from: LocalIndexId,
    /// The slice to split.
    pub slice: SliceNo,
    /// The split point, as an encoded key part.
    pub at: Vec<u8>,
}

impl CommandKind for SplitSlice {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Leader)
    }

    fn places(&self) -> Option<PlacedKind> {
        Some(PlacedKind::Slices)
    }
}
