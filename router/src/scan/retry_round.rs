//! A round of tries of a shard scan: each node that has the slices is asked in turn, until one serves them. When all
//! have failed, the next round begins after a pause.
//!
//! While there are other nodes to ask, a node must send its first batch within a time-out. The router cannot tell a node
//! that hangs from a slow one. So a round in which the time-out passed doubles it for the next round: otherwise a slow
//! node that is the only one to answer would be abandoned again and again.

use std::time::Duration;

use proto::model::ids::NodeId;
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

/// Time-out for the first batch in the first round.
pub(super) const FIRST_BATCH_TIMEOUT: Duration = Duration::from_secs(1);

/// Causes that the error of a round names.
const CAUSES_MAX: usize = 4;

/// The nodes that failed in this round, and why.
pub(super) struct RetryRound {
    failed: Vec<NodeId>,
    /// The errors of the nodes that were asked in this round.
    causes: Vec<(NodeId, Error)>,
    /// The error that tells the client most, of the round before if nobody was asked in this one.
    last_error: Option<Error>,
    began: Instant,
    first_batch_timeout: Duration,
}

impl RetryRound {
    /// The first round. `failed` are nodes that have just failed the scan that this one is a part of.
    pub fn first(failed: Vec<NodeId>) -> Self {
        Self {
            failed,
            causes: Vec::new(),
            last_error: None,
            began: Instant::now(),
            first_batch_timeout: FIRST_BATCH_TIMEOUT,
        }
    }

    /// The nodes that are not asked again in this round.
    pub fn failed(&self) -> &[NodeId] {
        &self.failed
    }

    /// The failed nodes and one more.
    pub fn failed_and(&self, node: NodeId) -> Vec<NodeId> {
        [&self.failed[..], &[node]].concat()
    }

    /// Time-out for the first batch of a node while there are others to ask.
    pub fn first_batch_timeout(&self) -> Duration {
        self.first_batch_timeout
    }

    /// Records that a node failed.
    pub fn fail(&mut self, node: NodeId, error: Error) {
        self.failed.push(node);
        self.causes.push((node, error.clone()));
        // The error that tells the client most is kept: an epoch that is gone, then a busy node, then all others.
        let rank = |error: &Error| match error.code {
            ErrorCode::SnapshotTooOld => 2,
            ErrorCode::TooBusy => 1,
            _ => 0,
        };
        if self.last_error.as_ref().is_none_or(|last| rank(last) <= rank(&error)) {
            self.last_error = Some(error);
        }
    }

    /// Begins the next round after a pause, or gives up with the most telling error of this one.
    pub async fn next_round(
        &mut self,
        deadline: Instant,
        pause: Duration,
        no_node: impl FnOnce() -> Error,
    ) -> Result<()> {
        let error = self.last_error.take().unwrap_or_else(no_node);
        let error = with_causes(error, std::mem::take(&mut self.causes));
        let gone = error.code == ErrorCode::SnapshotTooOld;
        if gone || Instant::now() >= deadline || !error.is_retry() {
            return Err(error);
        }
        // A busy node answers a little before its time-out has passed, so half of it counts as waiting.
        if self.began.elapsed() >= self.first_batch_timeout / 2 {
            self.first_batch_timeout = self.first_batch_timeout.saturating_mul(2);
        }
        tokio::time::sleep(pause).await;
        *self = Self {
            failed: Vec::new(),
            causes: Vec::new(),
            last_error: Some(error),
            began: Instant::now(),
            first_batch_timeout: self.first_batch_timeout,
        };
        Ok(())
    }
}

/// The error of a round in which several nodes have failed: each with its cause.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_round_fails_with_the_error_that_tells_most_whichever_came_last() {
        use ErrorCode::{SnapshotTooOld, TooBusy, Unavailable};
        for (codes, expected) in [
            ([Unavailable, TooBusy, Unavailable], TooBusy),
            ([TooBusy, SnapshotTooOld, TooBusy], SnapshotTooOld),
            ([SnapshotTooOld, Unavailable, Unavailable], SnapshotTooOld),
        ] {
            let mut round = RetryRound::first(Vec::new());
            for (node, code) in (1..).zip(codes) {
                round.fail(NodeId(node), Error::new(code, "refused"));
            }
            let none = || Error::unavailable("no node has the slice");
            let ended = round.next_round(Instant::now(), Duration::ZERO, none).await;
            assert_eq!(ended.expect_err("it gives up").code, expected, "{codes:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_error_of_a_round_names_each_node_and_its_cause() {
        let mut round = RetryRound::first(Vec::new());
        for node in [3, 1] {
            round.fail(NodeId(node), Error::unavailable("connection refused"));
        }
        round.fail(NodeId(2), Error::unavailable("node 2 did not answer in time"));
        let none = || Error::unavailable("no node has the slice");
        let passed = Instant::now();
        let error = round.next_round(passed, Duration::ZERO, none).await.expect_err("it gives up");
        assert_eq!(
            error.message,
            "no node answers; node 1: connection refused; node 2 did not answer in time; \
             node 3: connection refused"
        );
    }
}
