//! The outcomes of commands, with which the coordinator answers a proposal.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::model::copies::Copies;
use crate::model::identity::ClusterId;
use crate::model::ids::{BucketId, Epoch, IndexId, LocalIndexId, MoveId, TokenId, UserId};

/// The result of a command that was applied or refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppliedCommand {
    /// The outcome of the command.
    pub outcome: Outcome,
    /// The `cas` of the catalog after the command. A catalog with at least this `cas` includes
    /// the change.
    pub catalog_cas: u64,
}

impl AppliedCommand {
    /// Returns the result of a command that was refused before it was logged.
    pub fn refused(error: Error) -> Self {
        Self { outcome: Outcome::Refused(error), catalog_cas: 0 }
    }
}

/// The outcome of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// The bucket with this number was created, or it existed already under this name.
    Bucket(BucketId),
    /// The index with this number was created, or it existed already under this name. It serves
    /// scans when its state is `maintenance`.
    Index(IndexId),
    /// These indexes are being built.
    Building(Vec<IndexId>),
    /// These moves begin or end.
    Moves(Vec<MoveId>),
    /// The command was applied, or had nothing to do (IF EXISTS).
    Done,
    /// The command was refused, and has changed nothing.
    Refused(Error),
    /// The process is now a node of this cluster.
    Joined(ClusterId),
    /// The projector lacks mutations that the last epoch covers; nothing was changed.
    Lacks {
        /// The last epoch of the bucket.
        epoch: Epoch,
        /// The error for users, which names the lost mutations.
        error: Error,
    },
    /// The projector has all mutations that the last epoch covers, and leads the bucket. Contains
    /// the bucket's copies.
    Opened(Copies),
    /// The present copies of the bucket.
    Copies(Copies),
    /// This generation is being built and will replace the serving generation.
    Generation(LocalIndexId),
    /// The version with this number is being loaded into this data set.
    Version(BucketId, u64),
    /// The users were changed.
    User {
        /// The user's number; `None` if no user has this name (IF EXISTS).
        id: Option<UserId>,
        /// The number of the token that the command made.
        token: Option<TokenId>,
        /// The `cas` of the users after the command. Users with at least this `cas` include the
        /// change.
        cas: u64,
    },
}
