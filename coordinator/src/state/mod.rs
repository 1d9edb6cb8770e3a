//! The StateContext: all that the cluster has agreed on.
//!
//! [`StateContext::apply`] is synchronous and pure: the log position and the time come with the command,
//! maps are ordered, nothing is drawn or looked up. So every member that applies the same log has the
//! same state, byte by byte, and a snapshot of one is the state of all. Each command that changes
//! something adds one to `cas`. A command that cannot be done is refused: that is an outcome like any
//! other, kept for retries, and changes nothing else.
//!
//! What follows from a change outside of the state comes out as [`Effect`]s, which are values; whoever
//! applies decides what to do with them.
//!
//! | file | commands |
//! |---|---|
//! | [`ddl`] | buckets and indexes |
//! | [`epochs`] | stability timestamps and their history |
//! | [`nodes`] | registration, draining, removal |
//! | [`moves`] | moves of slices |
//! | [`history`] | where the slices have been |
//! | [`requests`] | the answers kept for retries |
//! | [`rollback`] | what follows when a source has lost a piece of its history |
//!
//! An index is `pending` until somebody builds it (CREATE INDEX itself, or BUILD INDEX), `backfill` until
//! the leader has seen every slice readable, then `maintenance`. Only then do its slices move.

pub mod ddl;
pub mod epochs;
pub mod history;
mod homes;
pub mod moves;
pub mod nodes;
pub mod requests;
pub mod rollback;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::cut::EpochMark;
use proto::model::history::FailoverLogs;
use proto::model::ids::{BucketId, IndexId, NodeId};
use proto::model::moves::EndedMove;
use proto::model::node::NodeInfo;
use proto::plant::{self, Plant};
use proto::rpc::command::{Command, CommandRequest, Outcome};
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};

pub use epochs::EpochHistory;
pub use history::{IndexRecord, TopologyRecord};
pub use requests::Requests;

/// The version of the state's encoding, the first byte of a snapshot.
const SNAPSHOT_VERSION: u8 = 5;

/// What counts as passed between two commands, at most.
const STEP_MS_MAX: u64 = 10_000;

/// All that the cluster has agreed on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StateContext {
    /// Counts the changes.
    cas: u64,
    /// What `cas` was after the last change of the catalog; most changes are promotions.
    catalog_cas: u64,
    /// The log position and the time of the last command.
    position: u64,
    unix_ms: u64,
    /// The time of day as the last command told it.
    told_ms: u64,
    /// Time that goes on evenly: a jump of the time of day moves it by [`STEP_MS_MAX`] at most. Rollback points age
    /// by it.
    steady_ms: u64,
    /// Numbers are given once.
    last_bucket: u64,
    last_index: u64,
    last_move: u64,
    buckets: BTreeMap<BucketId, BucketState>,
    indexes: BTreeMap<IndexId, IndexRecord>,
    nodes: BTreeMap<NodeId, Arc<NodeInfo>>,
    /// Indexers that get no more slices.
    draining: BTreeSet<NodeId>,
    /// The newest last.
    ended_moves: Vec<EndedMove>,
    requests: Requests,
}

/// A bucket and its stability timestamps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BucketState {
    /// What the cluster knows of it.
    pub info: Arc<BucketInfo>,
    /// Its epochs.
    pub epochs: EpochHistory,
    /// The branches of its source, as they were told last; empty before.
    pub logs: Arc<FailoverLogs>,
}

/// What follows from an applied command.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The catalog is another one now.
    CatalogChanged,
    /// A stability timestamp was published.
    EpochPublished(EpochMark),
    /// A bucket is gone.
    BucketDropped(BucketId),
    /// A bucket's source goes on with new branches and has lost nothing.
    HistoryChanged(BucketId),
}

/// A change: its outcome and what follows; or a refusal.
type Change = Result<(Outcome, Vec<Effect>)>;

impl StateContext {
    /// Applies a command.
    pub fn apply(
        &mut self,
        position: u64,
        unix_ms: u64,
        request: &CommandRequest,
    ) -> (Outcome, Vec<Effect>) {
        self.position = position;
        let passed_ms = unix_ms.saturating_sub(std::mem::replace(&mut self.told_ms, unix_ms));
        self.steady_ms += passed_ms.min(STEP_MS_MAX);
        // A new leader's clock may be behind the old one's.
        self.unix_ms = self.unix_ms.max(unix_ms);
        if let Some(id) = request.request
            && let Some(answer) = self.requests.answer(id)
            && !plant::is(Plant::DoneTwice)
        {
            return (answer, Vec::new());
        }
        let (outcome, effects) = match self.run(&request.command) {
            Ok((outcome, effects)) => (outcome, effects),
            Err(error) => (Outcome::Refused(error), Vec::new()),
        };
        if !effects.is_empty() {
            self.cas += 1;
        }
        if effects.contains(&Effect::CatalogChanged) {
            self.catalog_cas = self.cas;
        }
        if let Some(id) = request.request {
            self.requests.keep(id, position, outcome.clone());
        }
        (outcome, effects)
    }

    /// Either changes the state and says so with an effect, or leaves it as it is.
    fn run(&mut self, command: &Command) -> Change {
        match command {
            Command::CreateBucket { name, vbuckets, source, projectors, if_not_exists } => {
                self.create_bucket((name, *vbuckets, *source), *projectors, *if_not_exists)
            }
            Command::HandOver { bucket, vbuckets, to } => self.hand_over(bucket, vbuckets, *to),
            Command::HandedOver { bucket, number } => self.handed_over(*bucket, *number),
            Command::CancelHandOver { bucket } => self.cancel_hand_over(bucket),
            Command::DropBucket { name, if_exists } => self.drop_bucket(name, *if_exists),
            Command::CreateIndex { spec, defer_build, if_not_exists } => {
                self.create_index(spec, *defer_build, *if_not_exists)
            }
            Command::BuildIndexes { bucket, names } => self.build_indexes(bucket, names),
            Command::DropIndex { name, if_exists } => self.drop_index(name, *if_exists),
            Command::RegisterNode(node) => self.register_node(node),
            Command::IndexReady { index, generation } => self.index_ready(*index, *generation),
            Command::StartMoves(moves) => self.start_moves(moves),
            Command::AdvanceMove { index, id, stage } => self.advance_move(*index, *id, *stage),
            Command::EndMove { index, id, undone } => self.end_move(*index, *id, undone.as_deref()),
            Command::CancelMoves { index } => self.cancel_moves(index.as_deref()),
            Command::DrainNode { node, drain } => self.drain_node(*node, *drain),
            Command::RemoveNode { node } => self.remove_node(*node),
            Command::SetIncludeApart { index, apart } => self.set_include_apart(index, *apart),
            Command::SetReplicas { index, replicas } => self.set_replicas(index, *replicas),
            Command::PromoteEpochs(promotions) => self.promote_epochs(promotions),
            Command::Rollback { bucket, step } => self.rollback(*bucket, step),
        }
    }

    /// How many changes there have been.
    pub fn cas(&self) -> u64 {
        self.cas
    }

    /// The time of the last command.
    pub fn unix_ms(&self) -> u64 {
        self.unix_ms
    }

    /// A bucket.
    pub fn bucket(&self, id: BucketId) -> Option<&BucketState> {
        self.buckets.get(&id)
    }

    /// All buckets by number.
    pub fn buckets(&self) -> impl Iterator<Item = (BucketId, &BucketState)> {
        self.buckets.iter().map(|(id, bucket)| (*id, bucket))
    }

    /// All indexes by number.
    pub fn indexes(&self) -> impl Iterator<Item = &IndexRecord> {
        self.indexes.values()
    }

    /// A registered process.
    pub fn node(&self, id: NodeId) -> Option<&Arc<NodeInfo>> {
        self.nodes.get(&id)
    }

    /// All registered processes by number.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<NodeInfo>> {
        self.nodes.values()
    }

    /// Is it an indexer that gets no more slices?
    pub fn is_draining(&self, node: NodeId) -> bool {
        self.draining.contains(&node)
    }

    /// What every service may know.
    pub fn catalog(&self) -> Catalog {
        let info = |(id, bucket): (&BucketId, &BucketState)| (*id, bucket.info.clone());
        Catalog {
            cas: self.catalog_cas,
            newest_index: IndexId(self.last_index),
            buckets: self.buckets.iter().map(info).collect(),
            indexes: self.indexes.iter().map(|(id, index)| (*id, index.info.clone())).collect(),
            nodes: self.nodes.clone(),
            draining: self.draining.clone(),
            ended_moves: self.ended_moves.clone(),
        }
    }

    /// The state as bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        postcard::to_extend(self, vec![SNAPSHOT_VERSION])
            .map_err(|error| Error::internal(format!("encode the StateContext: {error}")))
    }

    /// The state from its bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        match bytes.split_first() {
            Some((&SNAPSHOT_VERSION, body)) => postcard::from_bytes(body).map_err(|error| {
                Error::new(ErrorCode::Corrupt, format!("decode the StateContext: {error}"))
            }),
            Some((version, _)) => Err(Error::new(
                ErrorCode::Version,
                format!("StateContext of version {version}, this build reads {SNAPSHOT_VERSION}"),
            )
            .with_hint("run the same version on all coordinators")),
            None => Err(Error::new(ErrorCode::Corrupt, "the StateContext is empty")),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
