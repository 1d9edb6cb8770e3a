//! Commands about generations of indexes: builds of a new generation while the old one serves.

use serde::{Deserialize, Serialize};

use super::kind::{Audited, CommandKind, Need, PlacedKind, Process, Room};
use crate::model::catalog::Catalog;
use crate::model::ids::{Generation, IndexId, LocalIndexId, SliceNo};
use crate::model::index::IndexSpec;
use crate::model::users::Privilege;

/// ALTER INDEX or REINDEX: begins to build a new generation of an index, with a new or the present
/// definition, while the present generation serves. The new one serves after [`IndexReady`].
/// Refused with `WrongState` while another generation is being built. The proposal expects the
/// definition from which the new one was derived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildGeneration {
    /// The index to build.
    pub index: IndexId,
    /// The definition to build, of the same name and bucket as the present one.
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

/// States that all slices of an index are built: its state changes from `backfill` to
/// `maintenance`. Sent by the leader.
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

/// CANCEL BUILD: removes an index, or the new generation of an index, that is being built; never
/// the serving generation. Refused with `WrongState` if nothing is being built.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelBuild {
    /// The index whose build is cancelled.
    pub index: IndexId,
}

impl CommandKind for CancelBuild {
    const AUDITED: Option<Audited> = Some(Audited::Definition);

    fn need(&self) -> Need {
        Need::index(Privilege::Define, self.index)
    }
}

/// Removes a retired generation, which has no more readers. Sent by the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropGeneration {
    /// The generation to remove.
    pub generation: LocalIndexId,
}

impl CommandKind for DropGeneration {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Leader)
    }
}

/// Begins to build a generation with more slices, because the slices of an index have reached their
/// size limit. Sent by the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrowIndex {
    /// The serving generation; if another one serves, the command has no effect.
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

/// Begins to build a generation in which one slice of a range-partitioned index is split, because
/// the slice has reached its size limit. Sent by the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitSlice {
    /// The serving generation; if another one serves, the command has no effect.
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
