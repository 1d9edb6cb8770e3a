//! All kinds of commands as one enumeration.

use serde::{Deserialize, Serialize};

use super::kind::{CommandKind, PlacedKind, RequiredRights, StateUsage};
use super::{buckets, copies, epochs, generations, indexes, moves, nodes, users, versions};
use crate::model::catalog::Catalog;

/// Declares [`Command`] with a variant for each kind of command, and calls [`CommandKind`] for
/// each.
macro_rules! commands {
    ($d:tt $($family:ident { $($name:ident,)* })*) => {
        /// Evaluates an expression for the struct inside a `Command`, of whatever kind. The
        /// expression refers to the struct by the given name.
        #[macro_export]
        macro_rules! of_command {
            ($d command:expr, $d value:ident => $d result:expr) => {
                match $d command {
                    $($(Command::$name($d value) => $d result,)*)*
                }
            };
        }

        /// A command that changes the replicated state.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[allow(missing_docs, reason = "each kind has its own")]
        pub enum Command {
            $($($name($family::$name),)*)*
        }

        $($(impl From<$family::$name> for Command {
            fn from(command: $family::$name) -> Self {
                Self::$name(command)
            }
        })*)*

        impl Command {
            /// Returns the privilege that the sender needs, see [`CommandKind::required_rights`].
            pub fn need(&self) -> RequiredRights {
                of_command!(self, command => command.required_rights())
            }

            /// Returns how much the command adds to the replicated state, see
            /// [`CommandKind::state_usage`].
            pub fn room(&self, catalog: &Catalog) -> StateUsage {
                of_command!(self, command => command.state_usage(catalog))
            }

            /// Returns true if the command creates an object with a random id, see
            /// [`CommandKind::creates`].
            pub fn creates(&self) -> bool {
                of_command!(self, command => command.creates())
            }

            /// Returns the kind of data that the command places on nodes, see
            /// [`CommandKind::placed_kind`].
            pub fn places(&self) -> Option<PlacedKind> {
                of_command!(self, command => command.placed_kind())
            }
        }
    };
}

commands! { $
    buckets {
        CreateBucket,
        DropBucket,
    }
    indexes {
        CreateIndex,
        BuildIndexes,
        DropIndex,
        RenameIndex,
        SetReplicas,
        SetSeparateIncludedColumns,
        SetSliceBytesMax,
    }
    generations {
        BuildGeneration,
        IndexReady,
        CancelBuild,
        DropGeneration,
        GrowIndex,
        SplitSlice,
    }
    versions {
        CreateDataSet,
        SetVersionIdle,
        LoadVersion,
        CancelVersion,
        PartitionsLoaded,
        PartitionsLost,
        VersionFailed,
        ChangePartitionOwners,
        BuildVersion,
        SwitchVersion,
        DropVersion,
    }
    moves {
        StartMoves,
        AdvanceMove,
        EndMove,
        CancelMoves,
        HandOver,
        FinishHandOver,
        CancelHandOver,
    }
    nodes {
        RegisterNode,
        Join,
        DrainNode,
        RemoveNode,
        ReplaceLostSlices,
    }
    copies {
        SetCopies,
        MoveBucket,
        ChangeCopies,
        OpenSource,
    }
    epochs {
        PromoteEpochs,
        Rollback,
        SkipEpochs,
    }
    users {
        Users,
    }
}
