//! Rollback: what the cluster does when a source has lost a piece of its history (seed 003, "kv-rollback").
//!
//! A source that comes back with less than it had, or with another history, says so by its failover logs
//! ([`crate::model::history`]). The coordinator compares them with the last stability timestamp. If that is no
//! place in the new history, the bucket goes through these stages, each a command of the log:
//!
//! | stage | what it means | who moves it on |
//! |---|---|---|
//! | `started` | a loss was seen: no epochs are published, new scans wait, moves are undone | the leader, with the source's history as it is now |
//! | `prepare` | the *failover timestamp* is known (what has survived), and the rollback point: the newest kept epoch that lies within the new history in every vbucket | the leader |
//! | `restart` | the *restart timestamp* is known: the cut from which mutations are applied again | the leader |
//! | `rollback` | the epochs above the point are dead, the next one is published | the leader, when each living indexer has applied it |
//!
//! The epoch that is then published ends at the failover timestamp, has the rollback point as its parent and
//! a number above all ever used. An indexer that stands above the point goes back to it before it applies
//! anything else, whenever it hears of the rollback: what it knows is in the catalog ([`DeadEpochs`]), so
//! it may have been down all the while. A slice that cannot go back so far is dropped there and fetched from a copy
//! that could; where there is none, the node builds it from the source.
//!
//! Scans read nothing below that epoch any more: all that survived is in it, so a rollback never un-shows
//! what survived. The dead epochs are refused for ever, in tokens and elsewhere.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::cut::{Cut, EpochMark};
use crate::model::history::SourceHistory;
use crate::model::ids::Epoch;

/// Ranges of dead epochs that a bucket remembers. A node that was away for longer than that many rollbacks
/// finds that its epoch is no place in the history, and begins without slices.
pub const DEAD_MAX: usize = 16;

/// The stages of a rollback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RollbackStage {
    /// A loss was seen.
    Started,
    /// What survived and the rollback point are known.
    Prepare,
    /// Where mutations are applied again is known.
    Restart,
    /// Indexers go back.
    Rollback,
}

impl RollbackStage {
    /// Its name in SHOW ROLLBACKS.
    pub fn name(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Prepare => "prepare",
            Self::Restart => "restart",
            Self::Rollback => "rollback",
        }
    }
}

/// A rollback of a bucket that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollback {
    /// Where it is.
    pub stage: RollbackStage,
    /// The failover timestamp: what has survived. From `prepare` on.
    pub failover: Option<Arc<Cut>>,
    /// The epoch to go back to; zero where no kept epoch fits, and everything is built anew. From `prepare`
    /// on.
    pub point: Epoch,
    /// The restart timestamp: mutations behind it are applied again. From `restart` on.
    pub restart: Option<Arc<Cut>>,
    /// The first epoch after the rollback, which shows all that has survived. In `rollback`.
    pub resumes: Option<Epoch>,
}

/// A step of a rollback, as a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RollbackStep {
    /// The source says that its history is this. Where nothing was lost its branches are taken over, and no
    /// rollback begins.
    Compare(SourceHistory),
    /// `started` → `prepare`, with the history as it is now.
    Prepare(SourceHistory),
    /// `prepare` → `restart`.
    Restart,
    /// `restart` → `rollback`.
    Rollback,
    /// Each living indexer has applied the first epoch after the rollback.
    End {
        /// That epoch: another rollback may have begun meanwhile.
        resumed: Epoch,
    },
}

/// Epochs of a bucket that a rollback has taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadEpochs {
    /// The epoch that it went back to; `None` where no kept epoch fitted.
    pub point: Option<EpochMark>,
    /// The newest epoch that was taken back.
    pub to: Epoch,
}

impl DeadEpochs {
    /// The newest epoch that is not dead: zero where all are.
    pub fn above(&self) -> Epoch {
        self.point.as_ref().map(|mark| mark.epoch).unwrap_or_default()
    }

    /// Was an epoch taken back?
    pub fn contains(&self, epoch: Epoch) -> bool {
        self.above() < epoch && epoch <= self.to
    }
}
