//! Rollback: the reaction of the cluster to a source that has lost a part of its history.
//!
//! An embedded source has the only copies of its mutations. Its rollback begins only when an
//! operator has accepted the loss (`Command::OpenSource`).
//!
//! If a source restarts with fewer mutations than before, or with another history, its failover
//! logs differ ([`crate::model::history`]). The coordinator compares them with the last stability
//! timestamp. If that timestamp is not in the new history, the bucket passes through these
//! stages, each one a command in the replicated log:
//!
//! | stage | meaning | the leader ends the stage |
//! |---|---|---|
//! | `started` | a loss was detected: no epochs are published, new scans wait, moves are undone | with the source's present history |
//! | `prepare` | the *failover timestamp* (the end of the surviving history) is known, and the *rollback point*: the newest retained epoch that lies within the new history in every vbucket | immediately |
//! | `restart` | the *restart timestamp* is known: the cut from which mutations are applied again | immediately |
//! | `rollback` | the epochs above the rollback point are dead, and the next epoch is published | when each live indexer has applied this epoch |
//!
//! The epoch that ends a rollback has the failover timestamp as its cut, the rollback point as
//! its parent, and a number above all numbers ever used. An indexer whose newest epoch is above
//! the rollback point first rolls back to this point, and then applies any other epoch. The
//! catalog lists the dead epochs ([`DeadEpochs`]), so this works even for an indexer that was
//! down during the whole rollback. A slice that cannot roll back that far is dropped, and fetched
//! from a copy that could. Without such a copy the node rebuilds it from the source.
//!
//! After the coordinator was restored from an older copy, an operator's `--skip-epochs` takes all
//! buckets through the same stages. The rollback point is then zero, because nodes may have
//! applied epochs with other contents under the same numbers. All slices are rebuilt, and the
//! next epoch is [`SKIP`] above all known numbers.
//!
//! After a rollback, scans read no epoch below the one that ended it. This epoch contains every
//! surviving mutation, so a rollback hides none. Dead epochs are refused forever, also in tokens.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::cut::{Cut, EpochMark};
use crate::model::history::SourceHistory;
use crate::model::ids::Epoch;

/// Maximum number of ranges of dead epochs that a bucket remembers. If more rollbacks happen
/// while a node is down, the node finds its epoch outside the source's history, and starts
/// without slices.
pub const DEAD_MAX: usize = 16;

/// The stage of a rollback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RollbackStage {
    /// A loss was detected; no epochs are published.
    Started,
    /// The end of the surviving history and the rollback point are known.
    Prepare,
    /// The cut from which mutations are applied again is known.
    Restart,
    /// Indexers roll back to the rollback point.
    Rollback,
}

impl RollbackStage {
    /// Returns the name of the stage in SHOW ROLLBACKS.
    pub fn name(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Prepare => "prepare",
            Self::Restart => "restart",
            Self::Rollback => "rollback",
        }
    }
}

/// The distance between the newest known number and the next epoch, after an operator's
/// `--skip-epochs`. Clients may have tokens of newer epochs that no process reports. A cluster
/// with an epoch every millisecond needs seven weeks for this number of epochs.
pub const SKIP: u64 = 1 << 32;

/// The newest numbers that processes other than the coordinator have received from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewestNumbers {
    /// The newest epoch of any bucket that an indexer has applied or a router has read.
    pub epoch: Epoch,
    /// The newest [`Catalog::cas`](crate::model::catalog::Catalog::cas) of any process.
    pub catalog_cas: u64,
}

/// A rollback of a bucket that is in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollback {
    /// The current stage.
    pub stage: RollbackStage,
    /// The failover timestamp, which is the end of the surviving history. Set from `prepare` on,
    /// and from the beginning if an operator has accepted the loss.
    pub failover: Option<Arc<Cut>>,
    /// The rollback point, an epoch; zero if no retained epoch is suitable, so that all slices
    /// are rebuilt. Set from `prepare` on.
    pub point: Epoch,
    /// The restart timestamp: mutations after it are applied again. Set from `restart` on.
    pub restart: Option<Arc<Cut>>,
    /// The first epoch after the rollback, which contains all surviving mutations. Set in the
    /// stage `rollback`.
    pub resumes: Option<Epoch>,
}

/// A step of a rollback, proposed as a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RollbackStep {
    /// Reports the source's history. If nothing was lost, the coordinator stores its branches,
    /// and no rollback begins.
    Compare(SourceHistory),
    /// Moves from `started` to `prepare`, with the source's present history.
    Prepare(SourceHistory),
    /// Moves from `prepare` to `restart`.
    Restart,
    /// Moves from `restart` to `rollback`.
    Rollback,
    /// Ends the rollback, because each live indexer has applied the first epoch after it.
    End {
        /// The first epoch after the rollback. The step is ignored if another rollback has begun
        /// meanwhile.
        resumed: Epoch,
    },
}

/// A range of epochs that a rollback has undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadEpochs {
    /// The rollback point, below the range; `None` if no retained epoch was suitable.
    pub point: Option<EpochMark>,
    /// The newest epoch of the range.
    pub to: Epoch,
}

impl DeadEpochs {
    /// Returns the number of the rollback point, which is the newest epoch below the range; zero
    /// if there is none.
    pub fn below_range(&self) -> Epoch {
        self.point.as_ref().map(|mark| mark.epoch).unwrap_or_default()
    }

    /// Returns true if the epoch is in the range.
    pub fn contains(&self, epoch: Epoch) -> bool {
        self.below_range() < epoch && epoch <= self.to
    }
}
