//! The replicated commands, the only changes of the StateContext. Every member applies them in the order of the
//! coordinators' log. The outcome of a request is part of the replicated state, so that a client that repeats a request
//! receives the first outcome.
//!
//! The commands are in files by *family*; the coordinator has a folder of the same name that applies them. A new command is a struct
//! with its [`CommandKind`] in the file of its family, a line in `list`, and its application in the coordinator (`Apply`).
//!
//! | file | commands |
//! |---|---|
//! | `buckets` | buckets |
//! | `indexes`, `generations` | indexes, and builds of new definitions beside the serving ones |
//! | `versions` | data sets that are loaded from files |
//! | `moves` | moves of slices, hand-overs of vbuckets |
//! | `nodes` | processes |
//! | `copies` | copies of embedded buckets |
//! | `epochs` | stability timestamps, rollbacks |
//! | `users` | users and privileges |
//! | `kind` | the properties of a command apart from its fields: privilege, room, audit |
//! | `list` | the commands of all families, as one type |
//! | `proposal`, `outcome` | the envelope of a command, and its answer |

mod buckets;
mod copies;
mod epochs;
mod generations;
mod indexes;
mod kind;
mod list;
mod moves;
mod nodes;
mod outcome;
mod proposal;
mod users;
mod versions;

pub use self::buckets::{CreateBucket, DropBucket};
pub use self::copies::{ChangeCopies, MoveBucket, OpenSource, SetCopies};
pub use self::epochs::{PromoteEpochs, Promotion, Rollback, SkipEpochs};
pub use self::generations::{
    BuildGeneration, CancelBuild, DropGeneration, GrowIndex, IndexReady, SplitSlice,
};
pub use self::indexes::{
    BuildIndexes, CreateIndex, DropIndex, RenameIndex, SetReplicas, SetSeparateIncludedColumns,
    SetSliceBytesMax,
};
pub use self::kind::{Audited, CommandKind, Need, PlacedKind, Process, Room, encoded_bytes};
pub use self::list::Command;
pub use self::moves::{
    AdvanceMove, CancelHandOver, CancelMoves, EndMove, HandOver, HandedOver, StartMoves,
};
pub use self::nodes::{DrainNode, Join, PlaceLost, RegisterNode, RemoveNode};
pub use self::outcome::{AppliedCommand, Outcome};
pub use self::proposal::{Expected, Proposal, RequestId};
pub use self::versions::{
    BuildVersion, CancelVersion, CreateDataSet, DropVersion, LoadVersion, OwnPartitions,
    PartitionsLoaded, PartitionsLost, SetVersionIdle, SwitchVersion, VersionFailed,
};
