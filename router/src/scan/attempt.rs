//! The choice of the next attempt of a shard scan. This module does no I/O and reads no clock.
//!
//! A shard scan queries one node at a time for all of its slices: the first node by a call for the
//! first batch, further nodes by streams. Its driver ([`super::shard`]) passes the outcome of the
//! last attempt, and carries out what [`Attempts::next`] returns.
//!
//! Attempts form *rounds*. In a round each node that has the slices is queried once, the slow nodes
//! last. When all have failed, the next round begins after a pause, until the deadline. While there
//! are other nodes to query, a node must send its first batch within a time-out. The router cannot
//! distinguish a hanging node from a slow one, so the time-out is doubled after a round in which it
//! expired: otherwise a slow node that is the only working one would be abandoned in each round.
//!
//! A node that has not answered within a *stage*, a shorter time, is still waited for, in parallel
//! with other copies ([`Wait`], [`crate::hedging`]).

use std::time::Duration;

use proto::model::ids::{NodeId, SliceNo};
use proto::rpc::scan::ShardBatch;
use proto::{Error, ErrorCode, ErrorKind, Result};
use tokio::time::Instant;

use crate::hedging::{Batches, STAGE_MIN};

/// Time-out for the first batch in the first round.
pub(super) const FIRST_BATCH_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum number of causes in the error of a round.
const CAUSES_MAX: usize = 4;

/// The nodes that have each slice of a shard scan, in the order in which they are queried.
pub(super) struct Copies(pub Vec<Vec<NodeId>>);

impl Copies {
    /// Returns the first node that has all slices and is not in `avoided`.
    pub fn node_with_all(&self, avoided: &[NodeId]) -> Option<NodeId> {
        let (first, others) = self.0.split_first()?;
        let has_all = |node: &&NodeId| others.iter().all(|nodes| nodes.contains(node));
        first.iter().filter(|node| !avoided.contains(node)).find(has_all).copied()
    }

    /// Returns true if each slice has a node that is not in `avoided`. The nodes may differ.
    pub fn each_has_node(&self, avoided: &[NodeId]) -> bool {
        self.0.iter().all(|nodes| nodes.iter().any(|node| !avoided.contains(node)))
    }
}

/// Slices that have moved, each with the node that has it now.
pub(super) type Places = Vec<(SliceNo, NodeId)>;

/// The outcome of an attempt that has not ended the scan: an error, or slices that have moved. If
/// slices have moved, no row was read.
pub(super) type Outcome = Result<Places>;

/// The next step of a shard scan.
#[cfg_attr(test, derive(Debug, PartialEq))]
pub(super) enum NextStep {
    /// Query this node by a stream, for all slices. Its first batch must arrive within the
    /// time-out.
    Query(NodeId, Duration),
    /// Report to the reader which slices have moved, and read the remaining slices.
    Report(Places, Vec<SliceNo>),
    /// Read groups of slices separately, because no node has all slices. The first list is the
    /// slices that remain on the queried node, if any. The other slices are grouped by their
    /// nodes, without the nodes in the second list.
    Split(Vec<SliceNo>, Vec<NodeId>),
    /// Wait, then begin the next round.
    Pause,
    Fail(Error),
}

/// The facts from which the next attempt is chosen.
pub(super) struct Facts<'a> {
    pub now: Instant,
    /// The time at which the scan gives up.
    pub deadline: Instant,
    pub index: &'a str,
    pub slices: &'a [SliceNo],
    pub copies: Copies,
    /// Slow nodes, which are queried only when all others have failed.
    pub slow: &'a [NodeId],
    /// An error if a slice has no node that may answer.
    pub reachable: Result<()>,
    pub reports_moved: bool,
    /// True if each node is queried only once, so that there is no further round.
    pub is_once: bool,
}

/// A query that was sent to a node.
struct Query {
    node: NodeId,
    /// True if each slice is also on another node that has not failed.
    has_others: bool,
    /// True for a call that requests only the first batch; false for a stream.
    is_call: bool,
}

/// The attempts of a shard scan in the current round.
pub(super) struct Attempts {
    /// The nodes that are not queried any more in this round.
    pub failed: Vec<NodeId>,
    /// The errors of the nodes that were queried in this round.
    causes: Vec<(NodeId, Error)>,
    /// The most informative error of this round; of the previous round if no node was queried in
    /// this one.
    last_error: Option<Error>,
    last: Option<Query>,
    /// The time at which this round first chose a node.
    began: Option<Instant>,
    first_batch_timeout: Duration,
}

impl Attempts {
    /// Creates the first round. The nodes in `failed` are not queried in it.
    pub fn avoiding(failed: Vec<NodeId>) -> Self {
        let (causes, first_batch_timeout) = (Vec::new(), FIRST_BATCH_TIMEOUT);
        Self { failed, causes, last_error: None, last: None, began: None, first_batch_timeout }
    }

    /// Records that a call for the first batch is sent to a node. `left` is the time until the
    /// deadline. Returns the time-out of the call.
    pub fn note_call(&mut self, node: NodeId, has_others: bool, left: Duration) -> Duration {
        self.last = Some(Query { node, has_others, is_call: true });
        self.timeout(has_others, left)
    }

    /// Records the outcome of the last attempt, and returns the next one.
    pub fn next(&mut self, outcome: Option<Outcome>, known: &Facts<'_>) -> NextStep {
        let decided = match (self.last.take(), outcome) {
            (Some(last), Some(Err(error))) => self.after_error(&last, error, known),
            // The first stream finds out where the slices are.
            (Some(last), Some(Ok(places))) if !last.is_call => {
                self.after_move(&last, places, known)
            }
            _ => None,
        };
        decided.unwrap_or_else(|| self.choose(known))
    }

    /// Records an error of the last attempt. Returns the next step if no other node can help;
    /// `None` if another node is to be chosen.
    fn after_error(&mut self, last: &Query, error: Error, known: &Facts<'_>) -> Option<NextStep> {
        let &Query { node, has_others, is_call } = last;
        if is_call && known.now < known.deadline {
            // A stream follows, from another node or the same again, and knows what to do about the error.
            self.failed.extend((has_others && error.is_retry()).then_some(node));
        } else if !is_call && may_try_another(&error, has_others) {
            self.fail(node, error);
        } else {
            return Some(NextStep::Fail(error));
        }
        None
    }

    /// Handles the answer that slices have moved: divides the slices into moved ones and others.
    /// Moved slices that were not requested are ignored.
    fn after_move(
        &mut self,
        last: &Query,
        mut places: Places,
        known: &Facts<'_>,
    ) -> Option<NextStep> {
        let node = last.node;
        if places.is_empty() {
            let error = Error::internal(format!("node {node} reports a move of no slice"));
            return self.after_error(last, error, known);
        }
        places.retain(|(slice, _)| known.slices.contains(slice));
        if places.is_empty() {
            let text = format!("node {node} reports moved slices that were not asked for");
            return Some(NextStep::Fail(Error::internal(text)));
        }
        let has_moved = |slice: &SliceNo| places.iter().any(|(moved, _)| moved == slice);
        let stay: Vec<_> = known.slices.iter().copied().filter(|slice| !has_moved(slice)).collect();
        if known.reports_moved {
            return Some(NextStep::Report(places, stay));
        }
        if !stay.is_empty() {
            return Some(NextStep::Split(stay, [&self.failed[..], &[node]].concat()));
        }
        let text = format!("node {node} no longer has slice {}", known.slices[0]);
        self.fail(node, Error::new(ErrorCode::SliceMoved, text));
        None
    }

    /// Chooses a node that has not failed in this round. Slow nodes come last.
    fn choose(&mut self, known: &Facts<'_>) -> NextStep {
        if let Err(error) = &known.reachable {
            return NextStep::Fail(error.clone());
        }
        self.began.get_or_insert(known.now);
        for slow in [known.slow, &[]] {
            let avoided = [&self.failed, slow].concat();
            if let Some(node) = known.copies.node_with_all(&avoided) {
                return self.query(node, known);
            }
            if known.slices.len() > 1 && known.copies.each_has_node(&avoided) {
                return NextStep::Split(Vec::new(), avoided);
            }
        }
        match known.is_once {
            true => NextStep::Fail(Error::unavailable("no other copy has answered")),
            false => self.next_round(known),
        }
    }

    /// Returns the step that queries a node, with its time-out.
    fn query(&mut self, node: NodeId, known: &Facts<'_>) -> NextStep {
        let has_others = known.copies.each_has_node(&[&self.failed[..], &[node]].concat());
        // The others may have failed only for a moment, so a slow node is not waited for as if it were the only one.
        let is_slow = known.slow.contains(&node);
        let has_limit = has_others || is_slow && known.copies.each_has_node(&[node]);
        self.last = Some(Query { node, has_others, is_call: false });
        let left = known.deadline.saturating_duration_since(known.now);
        NextStep::Query(node, self.timeout(has_limit, left))
    }

    /// Returns the time-out for a first batch: `left`, the time until the deadline, and less than
    /// that if `has_limit` is true because other nodes can be queried.
    fn timeout(&self, has_limit: bool, left: Duration) -> Duration {
        if has_limit { left.min(self.first_batch_timeout) } else { left }
    }

    /// Begins the next round, or fails with the most informative error of this one.
    fn next_round(&mut self, known: &Facts<'_>) -> NextStep {
        let no_node = || Error::unavailable("no node has the slice");
        let error = self.last_error.take().unwrap_or_else(no_node);
        let error = with_causes(error, std::mem::take(&mut self.causes));
        let gone = error.code == ErrorCode::SnapshotTooOld;
        if gone || known.now >= known.deadline || !error.is_retry() {
            return NextStep::Fail(with_names(known.index, known.slices, error));
        }
        // A busy node answers a little before its time-out has passed, so half of it counts as waiting.
        let took = self.began.map_or(Duration::ZERO, |began| known.now - began);
        let factor = if took >= self.first_batch_timeout / 2 { 2 } else { 1 };
        let first_batch_timeout = self.first_batch_timeout.saturating_mul(factor);
        let last_error = Some(error);
        *self = Self { last_error, first_batch_timeout, ..Self::avoiding(Vec::new()) };
        NextStep::Pause
    }

    /// Records that a node failed.
    fn fail(&mut self, node: NodeId, error: Error) {
        self.failed.push(node);
        self.causes.push((node, error.clone()));
        // The error that tells the client most is retained: an epoch that is gone, then a busy node, then all others.
        let rank = |error: &Error| match error.code {
            ErrorCode::SnapshotTooOld => 2,
            ErrorCode::TooBusy => 1,
            _ => 0,
        };
        if self.last_error.as_ref().is_none_or(|last| rank(last) <= rank(&error)) {
            self.last_error = Some(error);
        }
    }
}

/// Returns true if another node may succeed after this error of a node. If other nodes have the
/// slices (`others`), that includes an epoch that is too old on this node, and a damaged copy.
fn may_try_another(error: &Error, others: bool) -> bool {
    let is_too_old = error.code == ErrorCode::SnapshotTooOld;
    let is_other_chance = is_too_old || error.code.kind() == ErrorKind::Operator;
    (error.is_retry() && !is_too_old) || (others && is_other_chance)
}

/// Adds the names of the index and the slices to an error.
pub(super) fn with_names(index: &str, slices: &[SliceNo], error: Error) -> Error {
    if !matches!(error.code, ErrorCode::Unavailable | ErrorCode::OtherCluster) {
        return error;
    }
    let more = match slices.len() {
        0 | 1 => String::new(),
        slices => format!(" and {} more", slices - 1),
    };
    let slice = slices.first().copied().unwrap_or_default();
    error.context(format_args!("index \"{index}\": slice {slice}{more}"))
}

/// Returns the error of a round in which several nodes have failed, with the error of each.
fn with_causes(error: Error, mut causes: Vec<(NodeId, Error)>) -> Error {
    if causes.len() < 2 || error.code != ErrorCode::Unavailable {
        return error;
    }
    causes.sort_by_key(|(node, _)| *node);
    let cause = |(node, cause): &(NodeId, Error)| {
        let name = format!("node {node}");
        match cause.message.starts_with(&name) {
            true => cause.message.clone(),
            false => format!("{name}: {}", cause.message),
        }
    };
    let mut what: Vec<String> = causes.iter().take(CAUSES_MAX).map(cause).collect();
    if causes.len() > CAUSES_MAX {
        what.push(format!("and {} more", causes.len() - CAUSES_MAX));
    }
    Error { message: format!("no node answers; {}", what.join("; ")), ..error }
}

/// A wait for a batch of a node. After the stage (the usual maximum time), other copies may be
/// queried.
#[derive(Clone, Copy)]
pub(super) struct BatchWait {
    pub node: NodeId,
    pub of: Batches,
    pub began: Instant,
    pub stage: Duration,
}

impl BatchWait {
    /// Returns true if the wait is for a call for the first batch.
    pub fn is_call(&self) -> bool {
        self.of != Batches::Rest
    }

    /// Returns true if the duration of the wait is meaningful and may be recorded. A waiting
    /// reader is woken at the end of the stage. If it is woken later, it was reading another
    /// shard, and the duration is meaningless. A task that streams reads only this shard.
    pub fn is_meaningful(&self, now: Instant) -> bool {
        !self.is_call() || now <= self.began + self.stage + STAGE_MIN
    }

    /// Returns true if a batch of another copy ends the wait. After the first batch, an empty
    /// batch, which is only a sign of life, does not.
    pub fn is_won_by(&self, batch: &ShardBatch) -> bool {
        self.is_call() || !matches!(batch, ShardBatch::Rows(block) if block.rows == 0)
    }
}

#[cfg(test)]
#[path = "attempt_tests.rs"]
mod tests;
