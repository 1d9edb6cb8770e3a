//! The commands that change the replicated StateContext; nothing else changes it. Every member of
//! the coordinator applies them in the order of the log. The outcome of a request is part of the
//! replicated state, so a client that repeats a request receives the first outcome.
//!
//! Commands about one subject are in one file, a *family*. The coordinator applies them in a
//! folder with the same name. A new command is a struct with its [`CommandKind`] in the file of
//! its family, a line in `list`, and its application in the coordinator (`Apply`).
//!
//! | file | commands |
//! |---|---|
//! | `buckets` | buckets |
//! | `indexes`, `generations` | indexes, and builds of new generations while the old ones serve |
//! | `versions` | data sets that are loaded from files |
//! | `moves` | moves of slices, hand-overs of vbuckets |
//! | `nodes` | processes |
//! | `copies` | copies of embedded buckets |
//! | `epochs` | stability timestamps, rollbacks |
//! | `users` | users and privileges |
//! | `kind` | the properties of each kind of command: privilege, size in the state, audit |
//! | `list` | the commands of all families, as one type |
//! | `proposal`, `outcome` | a command with its sender, and the answer |

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
pub use self::kind::{
    AuditClass, CommandKind, PlacedKind, RequiredRights, SendingProcess, StateUsage, encoded_bytes,
};
pub use self::list::Command;
pub use self::moves::{
    AdvanceMove, CancelHandOver, CancelMoves, EndMove, FinishHandOver, HandOver, StartMoves,
};
pub use self::nodes::{DrainNode, Join, RegisterNode, RemoveNode, ReplaceLostSlices};
pub use self::outcome::{AppliedCommand, Outcome};
pub use self::proposal::{Expected, Proposal, RequestId};
pub use self::versions::{
    BuildVersion, CancelVersion, ChangePartitionOwners, CreateDataSet, DropVersion, LoadVersion,
    PartitionsLoaded, PartitionsLost, SetVersionIdle, SwitchVersion, VersionFailed,
};
