//! The leader's loop: runs on every member, and does something on the one that leads.
//!
//! A term begins with an empty [`Leader`] and with the registration of the members, so that they show
//! among the nodes. Then the loop asks for a plan, proposes what it says, and sleeps until something
//! was heard or the tick comes. One promotion is on its way at a time: whoever waits meanwhile is served
//! by it or by the next one. The loop never ends; when leadership is lost the memory goes with it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{StreamExt, future};
use proto::client::source::source_of;
use proto::model::history::SourceHistory;
use proto::model::ids::{BucketId, NodeId};
use proto::model::node::{NodeInfo, Role as NodeRole};
use proto::rpc::command::{Command, CommandRequest, Outcome};
use proto::rpc::export::checksum_patience;
use proto::{Error, Result};
use tokio::sync::watch;

use crate::leader::moves::{Check, Checksum};
use crate::leader::{Leader, Plan};
use crate::raft::Role;
use crate::service::{Config, Inner};

/// After a proposal failed, and the member still leads, the next one waits this long.
const RETRY: Duration = Duration::from_millis(50);

/// How often the leader looks for buckets that it has not heard of.
const ENQUIRE_EVERY: Duration = Duration::from_millis(250);
/// A projector that does not answer for this long is asked again later.
const ENQUIRE_TIMEOUT: Duration = Duration::from_secs(2);
/// Checks that run at a time; each reads two slices.
const CHECKS_AT_ONCE: usize = 8;

/// Enquires the sources of which something strange was heard, or nothing, while this member leads; each by itself,
/// so that one that does not answer keeps nobody waiting.
pub(crate) async fn enquire_sources(inner: Arc<Inner>) {
    let mut asked = FuturesUnordered::new();
    let mut busy = BTreeSet::new();
    loop {
        tokio::select! {
            biased;
            Some(bucket) = asked.next(), if !asked.is_empty() => {
                busy.remove(&bucket);
                continue;
            }
            () = inner.strange.notified() => {}
            () = tokio::time::sleep(ENQUIRE_EVERY) => {}
        }
        let now_ms = inner.now_ms();
        let found = {
            let mut leader = inner.leader();
            let view = inner.replica.view();
            leader.as_mut().map(|l| l.to_enquire(&view.state, now_ms)).unwrap_or_default()
        };
        for bucket in found.into_iter().filter(|bucket| busy.insert(*bucket)) {
            let inner = &*inner;
            asked.push(async move {
                if let Err(error) = enquire(inner, bucket).await {
                    tracing::debug!(%bucket, %error, "enquire a source");
                }
                bucket
            });
        }
    }
}

/// Asks a source for its history.
pub(crate) async fn enquire(inner: &Inner, bucket: BucketId) -> Result<SourceHistory> {
    let source = {
        let view = inner.replica.view();
        let gone = || Error::unavailable(format!("bucket {bucket} is gone"));
        let info = &view.state.bucket(bucket).ok_or_else(gone)?.info;
        source_of(&*inner.directory, info, |node| view.state.node(node).cloned())?
    };
    let asked = inner.leader().as_mut().map(Leader::asking);
    let answer = tokio::time::timeout(ENQUIRE_TIMEOUT, source.history(bucket)).await;
    let history = answer.map_err(|_| Error::unavailable("no answer in time"))??;
    {
        let mut leader = inner.leader();
        let view = inner.replica.view();
        if let (Some(leader), Some(asked)) = (leader.as_mut(), asked) {
            leader.enquired(&view.state, bucket, asked, history.clone())?;
        }
    }
    inner.wake.notify_one();
    Ok(history)
}

/// Runs until the member's log has stopped.
pub(crate) async fn run(inner: Arc<Inner>) {
    let mut role = inner.raft.role();
    while let Ok(term) = role.wait_for(|role| role.leads).await.map(|role| role.term) {
        tracing::info!(node = %inner.config.node, term, "this coordinator leads");
        let Config { tick_ms, moves, .. } = &inner.config;
        *inner.leader() = Some(Leader::new(term, inner.now_ms(), *tick_ms, moves.clone()));
        lead(&inner, &mut role, term).await;
        *inner.leader() = None;
    }
}

async fn lead(inner: &Inner, role: &mut watch::Receiver<Role>, term: u64) {
    let leads = |role: &Role| role.leads && role.term == term;
    let mut members_known = false;
    while leads(&role.borrow_and_update()) {
        let done = if members_known {
            act(inner).await
        } else {
            register_members(inner).await.map(|()| None)
        };
        let next_ms = match done {
            Ok(next_ms) => {
                members_known = true;
                next_ms
            }
            Err(error) => {
                tracing::debug!(node = %inner.config.node, %error, "propose as the leader");
                tokio::time::sleep(RETRY).await;
                continue;
            }
        };
        if next_ms == Some(0) {
            continue;
        }
        let tick = async {
            match next_ms {
                Some(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            biased;
            changed = role.changed() => if changed.is_err() { return },
            () = inner.wake.notified() => {}
            () = tick => {}
        }
    }
}

/// Does what the plan says. Answers after how many milliseconds to look again.
async fn act(inner: &Inner) -> Result<Option<u64>> {
    let now_ms = inner.now_ms();
    let Plan { commands, checks, next_ms } = {
        let mut leader = inner.leader();
        let view = inner.replica.view();
        let plan = leader.as_mut().map(|l| l.plan(&view.state, now_ms));
        if leader.as_ref().is_some_and(Leader::is_curious) {
            inner.strange.notify_one();
        }
        plan.unwrap_or_default()
    };
    order_checks(inner, checks);
    if commands.is_empty() {
        return Ok(next_ms.map(|at_ms| at_ms.saturating_sub(now_ms).max(1)));
    }
    let promotes = commands.iter().any(|command| matches!(command, Command::PromoteEpochs(_)));
    let proposals = commands.into_iter().map(|command| propose(inner, command));
    let results = future::join_all(proposals).await;
    if promotes && let Some(leader) = inner.leader().as_mut() {
        leader.promoted(now_ms, inner.now_ms());
    }
    results.into_iter().collect::<Result<()>>()?;
    Ok(Some(0))
}

/// Hands checks to their own task; where there is no room they failed, for now.
fn order_checks(inner: &Inner, checks: Vec<Check>) {
    for check in checks {
        if let Err(full) = inner.checks.0.try_send(check) {
            let check = full.into_inner();
            tell_checked(inner, &check, Err(Error::unavailable("too many checks at once")));
        }
    }
}

/// Compares copies, several at a time, as the leader's loop wants it. Reading a slice takes its time; the
/// loop does not wait for it.
pub(crate) async fn compare_copies(inner: Arc<Inner>) {
    let checks = inner.checks.1.clone();
    checks.for_each_concurrent(CHECKS_AT_ONCE, |check| compare(&inner, check)).await;
}

async fn compare(inner: &Inner, check: Check) {
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

async fn checksum(inner: &Inner, check: &Check, node: NodeId) -> Result<Checksum> {
    let info = inner.replica.view().state.node(node).cloned();
    let info = info.ok_or_else(|| Error::unavailable(format!("node {node} is not registered")))?;
    let sum = inner.directory.indexer(&info).checksum(check.slice, check.epoch).await;
    sum.map_err(|error| error.context(format!("checksum on node {node}")))
}

fn tell_checked(inner: &Inner, check: &Check, result: Result<(Checksum, Checksum)>) {
    if let Err(error) = &result {
        tracing::debug!(id = %check.id, slice = %check.slice, %error, "compare the ends of a move");
    }
    let now_ms = inner.now_ms();
    if let Some(leader) = inner.leader().as_mut() {
        leader.checked(check, result, now_ms);
    }
}

async fn propose(inner: &Inner, command: Command) -> Result<()> {
    match inner.propose_here(CommandRequest { request: None, command }).await? {
        Outcome::Refused(error) => Err(error),
        _ => Ok(()),
    }
}

/// The members are nodes like any others. One whose number another process has goes unregistered.
async fn register_members(inner: &Inner) -> Result<()> {
    for (id, address) in &inner.config.members {
        let known = inner.replica.view().state.node(*id).cloned();
        if known.as_ref().is_some_and(|node| node.address == *address) {
            continue;
        }
        let node = NodeInfo {
            id: *id,
            role: NodeRole::Coordinator,
            address: address.clone(),
            zone: known.map_or_else(String::new, |node| node.zone.clone()),
        };
        let request = CommandRequest { request: None, command: Command::RegisterNode(node) };
        if let Outcome::Refused(error) = inner.propose_here(request).await? {
            tracing::warn!(member = %id, %error, "register a coordinator member");
        }
    }
    Ok(())
}
