//! Compares the copies that the leader wants compared.

use std::sync::Arc;

use futures::{StreamExt, future};
use proto::model::ids::NodeId;
use proto::rpc::export::checksum_patience;
use proto::{Error, Result};

use super::member::Member;
use crate::leader::{Check, Checksum};

/// Checks that run at a time; each reads two slices.
const CHECKS_AT_ONCE: usize = 8;

/// Hands checks to their own task; where there is no room they failed, for now.
pub(super) fn order_checks(inner: &Member, checks: Vec<Check>) {
    for check in checks {
        if let Err(full) = inner.checks.0.try_send(check) {
            let check = full.into_inner();
            tell_checked(inner, &check, Err(Error::unavailable("too many checks at once")));
        }
    }
}

/// Compares copies, several at a time, as the leader's loop wants it. Reading a slice takes its time; the
/// loop does not wait for it.
pub(crate) async fn compare_copies(inner: Arc<Member>) {
    let checks = inner.checks.1.clone();
    checks.for_each_concurrent(CHECKS_AT_ONCE, |check| compare(&inner, check)).await;
}

async fn compare(inner: &Member, check: Check) {
    let sums = future::try_join(
        checksum(inner, &check, check.source),
        checksum(inner, &check, check.target),
    );
    let result = match tokio::time::timeout(checksum_patience(check.bytes), sums).await {
        Ok(result) => result,
        Err(_) => Err(Error::unavailable("no answer in time")),
    };
    tell_checked(inner, &check, result);
    inner.wake.notify_one();
}

async fn checksum(inner: &Member, check: &Check, node: NodeId) -> Result<Checksum> {
    let info = inner.replica.view().state.node(node).cloned();
    let info = info.ok_or_else(|| Error::unavailable(format!("node {node} is not registered")))?;
    let sum = inner.directory.indexer(&info).checksum(check.slice, check.epoch).await;
    sum.map_err(|error| error.context(format!("checksum on node {node}")))
}

fn tell_checked(inner: &Member, check: &Check, result: Result<(Checksum, Checksum)>) {
    if let Err(error) = &result {
        tracing::debug!(id = %check.id, slice = %check.slice, %error, "compare the ends of a move");
    }
    let now_ms = inner.now_ms();
    if let Some(leader) = inner.leader().as_mut() {
        leader.checked(check, result, now_ms);
    }
}
