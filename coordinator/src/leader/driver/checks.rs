//! Compares copies of slices for the leader, by their checksums.

use std::sync::Arc;

use futures::{StreamExt, future};
use proto::model::ids::NodeId;
use proto::rpc::export::checksum_time_limit;
use proto::{Error, Result};

use super::member::Member;
use crate::leader::{Checksum, CopyCheck};

/// The limit of concurrent comparisons. Each comparison reads two slices.
const CHECKS_AT_ONCE: usize = 8;

/// Queues comparisons for the task that carries them out. A comparison that does not fit in the
/// queue counts as failed and is planned again.
pub(super) fn start_checks(member: &Member, checks: Vec<CopyCheck>) {
    for check in checks {
        if let Err(full) = member.checks.0.try_send(check) {
            let check = full.into_inner();
            report_check(member, &check, Err(Error::unavailable("the queue of checks is full")));
        }
    }
}

/// Carries out queued comparisons of copies, several concurrently. Runs as a separate task,
/// because reading a slice takes too long for the leader's loop.
pub(crate) async fn compare_copies(member: Arc<Member>) -> &'static str {
    let checks = member.checks.1.clone();
    checks.for_each_concurrent(CHECKS_AT_ONCE, |check| compare(&member, check)).await;
    "the queue of checks was closed"
}

async fn compare(member: &Member, check: CopyCheck) {
    let sums = future::try_join(
        checksum(member, &check, check.source),
        checksum(member, &check, check.target),
    );
    let result = match tokio::time::timeout(checksum_time_limit(check.bytes), sums).await {
        Ok(result) => result,
        Err(_) => Err(Error::unavailable("no checksum in time")),
    };
    report_check(member, &check, result);
    member.wake.notify_one();
}

async fn checksum(member: &Member, check: &CopyCheck, node: NodeId) -> Result<Checksum> {
    let info = member.replica.view().state.node(node).cloned();
    let info = info.ok_or_else(|| Error::unavailable(format!("node {node} is not registered")))?;
    let sum = member.directory.indexer(&info).checksum(check.slice, check.epoch).await;
    sum.map_err(|error| error.context(format!("checksum on node {node}")))
}

fn report_check(member: &Member, check: &CopyCheck, result: Result<(Checksum, Checksum)>) {
    if let Err(error) = &result {
        tracing::debug!(id = %check.id, slice = %check.slice, %error, "a check of a move failed");
    }
    let now_ms = member.now_ms();
    if let Some(leader) = member.leader().as_mut() {
        leader.finish_check(check, result, now_ms);
    }
}
