//! The outcomes of commands.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::model::copies::Copies;
use crate::model::identity::ClusterId;
use crate::model::ids::{BucketId, Epoch, IndexId, LocalIndexId, MoveId, TokenId, UserId};

/// A command that was applied, or refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppliedCommand {
    /// The outcome of the command.
    pub outcome: Outcome,
    /// The `cas` of the catalog after it: a catalog at least as new shows what the command has changed.
    pub catalog_cas: u64,
}

impl AppliedCommand {
    /// The outcome of a command that was refused before it was logged.
    pub fn refused(error: Error) -> Self {
        Self { outcome: Outcome::Refused(error), catalog_cas: 0 }
    }
}

/// The outcomes of commands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// A bucket of that name exists now.
    Bucket(BucketId),
    /// An index of that name exists now; it serves scans when its state is `maintenance`.
    Index(IndexId),
    /// Indexes that are being built now.
    Building(Vec<IndexId>),
    /// Moves that begin, or end, now.
    Moves(Vec<MoveId>),
    /// Done, or nothing to do (IF EXISTS).
    Done,
    /// Refused; the state is as it was.
    Refused(Error),
    /// The process is a node of this cluster now.
    Joined(ClusterId),
    /// The projector lacks something that the last epoch covers; the state is as it was.
    Lacks {
        /// The last epoch.
        epoch: Epoch,
        /// The error for users, which names the lost mutations.
        error: Error,
    },
    /// The projector has what the last epoch covers, and leads its bucket.
    Opened(Copies),
    /// The copies of a bucket as they are now.
    Copies(Copies),
    /// This generation of an index is being built, and will replace the serving one.
    Generation(LocalIndexId),
    /// The version of this data set, with this number, is loading.
    Version(BucketId, u64),
    /// The users were changed as the command requires.
    User {
        /// The user's number; `None` if there is none of that name (IF EXISTS).
        id: Option<UserId>,
        /// The number of the token that the command made.
        token: Option<TokenId>,
        /// The users with this `cas`, and all later ones, show the change.
        cas: u64,
    },
}
