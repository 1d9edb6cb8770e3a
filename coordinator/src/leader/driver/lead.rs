//! The leader's loop: runs on every member, and does something on the one that leads.
//!
//! A term begins with an empty [`Leader`] and with the registration of the members, so that they show
//! among the nodes. Then the loop asks for a plan, proposes what it says, and sleeps until something
//! was heard or the tick comes. One promotion is on its way at a time: whoever waits meanwhile is served
//! by it or by the next one. The loop never ends; when leadership is lost the memory goes with it.

use std::sync::Arc;
use std::time::Duration;

use futures::future;
use proto::Result;
use proto::model::node::{NodeInfo, Role as NodeRole};
use proto::rpc::command::{Command, CommandRequest, Outcome};
use tokio::sync::watch;

use super::checks::order_checks;
use super::member::Member;
use crate::config::Config;
use crate::leader::{Leader, Plan};
use crate::raft::Role;

/// After a proposal failed, and the member still leads, the next one waits this long.
const RETRY: Duration = Duration::from_millis(50);

/// Runs until the member's log has stopped.
pub(crate) async fn run(inner: Arc<Member>) {
    let mut role = inner.raft.role();
    while let Ok(term) = role.wait_for(|role| role.leads).await.map(|role| role.term) {
        tracing::info!(node = %inner.config.node, term, "this coordinator leads");
        let Config { tick_ms, moves, .. } = &inner.config;
        *inner.leader() = Some(Leader::new(term, inner.now_ms(), *tick_ms, moves.clone()));
        lead(&inner, &mut role, term).await;
        *inner.leader() = None;
    }
}

async fn lead(inner: &Member, role: &mut watch::Receiver<Role>, term: u64) {
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
async fn act(inner: &Member) -> Result<Option<u64>> {
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

async fn propose(inner: &Member, command: Command) -> Result<()> {
    match inner.propose_here(CommandRequest { request: None, command }).await? {
        Outcome::Refused(error) => Err(error),
        _ => Ok(()),
    }
}

/// The members are nodes like any others. One whose number another process has goes unregistered.
async fn register_members(inner: &Member) -> Result<()> {
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
