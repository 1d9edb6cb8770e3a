//! All kinds of commands as one enumeration.

use serde::{Deserialize, Serialize};

use super::kind::{CommandKind, Need, PlacedKind, Room};
use super::{buckets, copies, epochs, generations, indexes, moves, nodes, users, versions};
use crate::model::catalog::Catalog;

/// Declares [`Command`] with a variant for each kind, and its delegations to [`CommandKind`].
macro_rules! commands {
    ($d:tt $($family:ident { $($name:ident,)* })*) => {
        /// Evaluates an expression for the value of a `Command`, bound to the given name, whatever
        /// the kind of the command is.
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
            /// See [`CommandKind::need`].
            pub fn need(&self) -> Need {
                of_command!(self, command => command.need())
            }

            /// See [`CommandKind::room`].
            pub fn room(&self, catalog: &Catalog) -> Room {
                of_command!(self, command => command.room(catalog))
            }

            /// See [`CommandKind::creates`].
            pub fn creates(&self) -> bool {
                of_command!(self, command => command.creates())
            }

            /// See [`CommandKind::places`].
            pub fn places(&self) -> Option<PlacedKind> {
                of_command!(self, command => command.places())
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
        OwnPartitions,
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
        HandedOver,
        CancelHandOver,
    }
    nodes {
        RegisterNode,
        Join,
        DrainNode,
        RemoveNode,
        PlaceLost,
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
