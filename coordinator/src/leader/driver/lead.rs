//! The leader's loop. It runs on every member and acts only on the leading member.
//!
//! A term begins with an empty [`Leader`] and with the registration of the members, so that they
//! appear among the nodes. Then the loop requests a plan, proposes the plan's commands, and sleeps
//! until a report or the next tick. Only one promotion is in flight; a caller that waits meanwhile
//! gets its epoch by this promotion or by the next one. The loop never ends. Losing leadership
//! drops the memory.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::future;
use proto::Result;
use proto::model::node::{NodeInfo, Role};
use proto::rpc::command::{Command, Outcome, RegisterNode};
use tokio::sync::watch;

use super::checks::start_checks;
use super::member::Member;
use crate::config::Config;
use crate::leader::{Leader, Plan};
use crate::raft::RaftRole;
use crate::state::Decisions;

/// The longest interval between two searches for nodes that have fallen silent, in ms.
const NEWS_EVERY_MS: u64 = 1_000;
/// The delay after a failed proposal, if the member still leads.
const RETRY: Duration = Duration::from_millis(50);

/// Leads whenever this member is the leader. Does nothing more once the member's log has stopped.
pub(crate) async fn run(member: Arc<Member>) -> Infallible {
    let mut role = member.raft.role();
    // A member that has followed a leader has every command that a majority had. Otherwise its log may be an older copy.
    let mut is_complete = false;
    loop {
        let RaftRole { term, leader, leads } = *role.borrow_and_update();
        if leads {
            tracing::info!(node = %member.config.node, term, "this coordinator leads");
            let Config { tick_ms, moves, .. } = &member.config;
            let leader = Leader::new(term, member.now_ms(), *tick_ms, moves.clone());
            *member.leader() = Some(leader.waiting_for_reports(!is_complete));
            lead(&member, &mut role, term).await;
            *member.leader() = None;
        }
        is_complete |= leads || leader.is_some_and(|leader| leader != member.config.node);
        if role.changed().await.is_err() {
            break;
        }
    }
    future::pending().await
}

/// Leads for one term: plans and proposes until this member no longer leads.
async fn lead(member: &Member, role: &mut watch::Receiver<RaftRole>, term: u64) {
    let leads = |role: &RaftRole| role.leads && role.term == term;
    let mut members_known = false;
    while leads(&role.borrow_and_update()) {
        // A registration may change the catalog, which an older copy must not do.
        let registers = !members_known && !member.may_be_older_copy();
        let done = match registers {
            true => register_members(member).await.map(|()| Some(0)),
            false => carry_out_plan(member).await,
        };
        let next_ms = match done {
            Ok(next_ms) => {
                members_known |= registers;
                next_ms
            }
            Err(error) => {
                tracing::debug!(node = %member.config.node, %error, "a proposal of the leader failed");
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
            () = member.wake.notified() => {}
            () = tick => {}
        }
    }
}

/// Proposes the commands of the next plan and starts its checks. Returns the time until the plan
/// after it, in milliseconds.
async fn carry_out_plan(member: &Member) -> Result<Option<u64>> {
    let now_ms = member.now_ms();
    let (Plan { commands, checks, next_ms }, silent, news) = {
        let mut leader = member.leader();
        let view = member.replica.view();
        let news = leader.as_mut().map(|l| l.node_news(&view.state, now_ms)).unwrap_or_default();
        let plan = leader.as_mut().map(|l| l.plan(&view.state, now_ms)).unwrap_or_default();
        let silent_for = |command| {
            leader
                .as_ref()
                .map(|l| l.silent_nodes_for(&view.state, command, now_ms))
                .unwrap_or_default()
        };
        let silent: Vec<_> = plan.commands.iter().map(silent_for).collect();
        if leader.as_ref().is_some_and(Leader::has_suspects) {
            member.suspect_found.notify_one();
        }
        (plan, silent, news)
    };
    news.iter().for_each(|news| tracing::warn!("{news}"));
    start_checks(member, checks);
    if commands.is_empty() {
        let next_ms = next_ms.map_or(NEWS_EVERY_MS, |at_ms| at_ms.saturating_sub(now_ms).max(1));
        return Ok(Some(next_ms.min(NEWS_EVERY_MS)));
    }
    let is_promotion = |command: &Command| matches!(command, Command::PromoteEpochs(_));
    let promotes = commands.iter().any(is_promotion);
    let proposals = commands.iter().zip(silent).map(|(command, silent)| {
        member.propose_here(Decisions { silent, ..Decisions::default() }, command.clone().into())
    });
    let results = future::join_all(proposals).await;
    if promotes && let Some(leader) = member.leader().as_mut() {
        leader.record_promotion_end(now_ms, member.now_ms());
    }
    let mut done = Ok(());
    for (command, result) in commands.iter().zip(results) {
        let result = result.map(|applied| applied.outcome);
        if let Ok(Outcome::Refused(error)) = &result
            && let Some(leader) = member.leader().as_mut()
        {
            leader.record_refusal(command, error);
        }
        done = done.and(result.and_then(refusal_as_error));
    }
    done?;
    Ok(Some(0))
}

/// Returns the refusal of a command as an error.
fn refusal_as_error(outcome: Outcome) -> Result<()> {
    match outcome {
        Outcome::Refused(error) => Err(error),
        _ => Ok(()),
    }
}

/// Registers the first members as nodes, at the addresses in the settings. Members that were
/// added later are registered already, at the address in ADD COORDINATOR. A member stays
/// unregistered if another process holds its node id.
async fn register_members(member: &Member) -> Result<()> {
    let members = member.members();
    for (id, address) in &member.config.members {
        if !members.contains(*id) {
            continue;
        }
        let known = member.replica.view().state.node(*id).cloned();
        let is_founder = members.founders.contains(&id.0);
        if known.as_ref().is_some_and(|node| !is_founder || node.address == *address) {
            continue;
        }
        let node = NodeInfo {
            id: *id,
            role: Role::Coordinator,
            address: address.clone(),
            zone: known.map_or_else(String::new, |node| node.zone.clone()),
        };
        let registers = Command::RegisterNode(RegisterNode { node }).into();
        if let Outcome::Refused(error) =
            member.propose_here(Decisions::default(), registers).await?.outcome
        {
            tracing::warn!(member = %id, %error, "a coordinator member cannot be registered");
        }
    }
    Ok(())
}
