//! Executes `ADD COORDINATOR` and `REMOVE COORDINATOR`.
//!
//! The leader makes the changes. `ADD` adds the member at once, and then waits up to
//! `VOTES_WITHIN` until the new member votes. `REMOVE` first checks that a majority of the
//! remaining members is alive, because without a majority no member could be added later
//! (`raft::change` checks again that a majority follows the leader). Then `REMOVE` waits until
//! the removal is settled (`raft::removal`). A leader that is to be removed hands leadership
//! over, and its caller retries.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use proto::model::ids::NodeId;
use proto::rpc::api::{CoordinatorChange, CoordinatorChanged};
use proto::{Error, ErrorCode, Result};
use tokio::time::{Instant, sleep, timeout};

use crate::leader::driver::member::Member;
use crate::raft::{MemberChange, Members, not_leader};
use crate::state::nodes::state::NAME_BYTES_MAX;

/// The time limit of ADD COORDINATOR for the new member to become a voter.
const VOTES_WITHIN: Duration = Duration::from_secs(20);
/// The time for which a change of the members waits until it is certain that the leader's
/// directory is not an older copy.
const TRUSTED_WITHIN: Duration = Duration::from_secs(20);
/// The time for which REMOVE COORDINATOR waits for messages of members that have sent nothing to
/// a new leader yet.
const HEARD_WITHIN: Duration = Duration::from_secs(3);
/// The silence after which a member counts as dead, in ms. The leader receives messages of each
/// member ten times per second.
const DEAD_MS_MIN: u64 = 2_000;
/// The time limit for a change of leadership, after which the hand-over has failed.
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(2);
/// The interval between two checks of a condition that a statement waits for.
const LOOK: Duration = Duration::from_millis(50);

/// Changes the members, or forwards the change to the leader.
pub(super) async fn change_members(
    member: &Member,
    change: CoordinatorChange,
) -> Result<CoordinatorChanged> {
    if let Some(leader) = member.forward_to()? {
        return leader.change_members(change).await;
    }
    wait_not_older_copy(member).await?;
    match change {
        CoordinatorChange::Add { node, address } => add(member, node, address).await,
        CoordinatorChange::Remove { node } => remove(member, node).await,
    }
}

/// Waits until it is certain that the coordinator is not an older copy of itself. An older copy
/// must not change the members.
async fn wait_not_older_copy(member: &Member) -> Result<()> {
    let deadline = Instant::now() + TRUSTED_WITHIN;
    loop {
        let now_ms = member.now_ms();
        let is_held = member.as_leader(|leader| {
            let view = member.replica.view();
            leader.check_not_older_copy(&view.state)?;
            Ok(leader.waits_for_reports(&view.state, now_ms))
        })?;
        if !is_held {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let what = "the leading coordinator does not know yet whether its directory is the newest: some nodes have not reported";
            return Err(Error::unavailable(what)
                .with_hint("start the nodes that are down, or send the same statement again; SHOW NODES lists them"));
        }
        sleep(LOOK).await;
    }
}

/// Adds a member, and waits until it votes.
async fn add(member: &Member, node: NodeId, address: String) -> Result<CoordinatorChanged> {
    check_address(&address)?;
    let deadline = Instant::now() + VOTES_WITHIN;
    let known = member.replica.view().state.node(node).map(|node| node.address.clone());
    if !member.members().contains(node) {
        let change = MemberChange::Add { node, address: address.clone() };
        change_until(member, &change, deadline).await?;
    } else if known.is_some_and(|known| known != address) {
        let what = format!("coordinator {node} is a member already, at another address");
        return Err(Error::new(ErrorCode::InvalidParameter, what).with_hint(
            "SHOW NODES lists the coordinators; a new member needs a new number, and a member that moves is removed and added under a new one",
        ));
    }
    let mut members = member.raft.members();
    loop {
        let is_voter = members.borrow_and_update().is_voter(node);
        if is_voter {
            return Ok(change_answer(member, None));
        }
        if Instant::now() >= deadline {
            return Ok(change_answer(member, Some(missing_vote_reason(member, node, &address))));
        }
        // The next leader continues; the caller sends the request there.
        if member.forward_to()?.is_some() {
            return Err(not_leader(None));
        }
        sleep(LOOK).await;
    }
}

/// Returns the answer to a change; `lacks` tells why a new member does not vote yet.
fn change_answer(member: &Member, lacks: Option<String>) -> CoordinatorChanged {
    CoordinatorChanged { lacks, catalog_cas: member.replica.view().catalog.cas }
}

/// Returns a text that tells why a learner does not vote yet.
fn missing_vote_reason(member: &Member, node: NodeId, address: &str) -> String {
    let now_ms = member.now_ms();
    let silent_ms = member.members_silent_ms(now_ms).get(&node).copied();
    match silent_ms.is_none_or(|ms| ms >= DEAD_MS_MIN) {
        true => format!("coordinator {node} is added, and does not answer at {address} yet"),
        false => format!("coordinator {node} is added, and does not have the whole log yet"),
    }
}

/// Refuses an address that other processes cannot connect to: one without a port, or a wildcard
/// address.
fn check_address(address: &str) -> Result<()> {
    if address.len() > NAME_BYTES_MAX {
        let what = format!("an address of {} bytes, the limit is {NAME_BYTES_MAX}", address.len());
        return Err(Error::new(ErrorCode::InvalidParameter, what));
    }
    let parts = address.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
    let host = parts.map_or("", |(host, _)| host.trim_start_matches('[').trim_end_matches(']'));
    if host.is_empty() || host.parse().is_ok_and(|ip: IpAddr| ip.is_unspecified()) {
        let what = format!("{address:?} is not an address that other processes can call");
        return Err(Error::new(ErrorCode::InvalidParameter, what).with_hint(
            "give the address of the new coordinator's --peer-listen or --advertise, HOST:PORT",
        ));
    }
    Ok(())
}

/// Proposes a change, again and again until a deadline, because it may have to wait for the end
/// of another change.
async fn change_until(member: &Member, change: &MemberChange, deadline: Instant) -> Result<()> {
    loop {
        match member.raft.change(change.clone()).await {
            // This change was in progress already: its answer was lost with the member that forwarded it.
            Err(_) if is_made(&member.members(), change) => return Ok(()),
            Err(error) if error.code == ErrorCode::Unavailable && Instant::now() < deadline => {
                sleep(LOOK).await;
            }
            done => return done,
        }
    }
}

/// Returns true if a change has been applied.
fn is_made(members: &Members, change: &MemberChange) -> bool {
    match change {
        MemberChange::Add { node, .. } => members.contains(*node),
        MemberChange::Promote { node } => members.is_voter(*node),
        MemberChange::Remove { node } => members.is_removed(*node),
    }
}

/// Removes a member, and waits until the removal is settled.
async fn remove(member: &Member, node: NodeId) -> Result<CoordinatorChanged> {
    if member.members().is_removed(node) {
        return wait_settled(member).await;
    }
    let change = MemberChange::Remove { node };
    let after = member.members().after(&change)?;
    if member.members().is_voter(node) {
        wait_majority(member, node, &after).await?;
    }
    if node == member.config.node {
        return Err(hand_over(member).await?);
    }
    change_until(member, &change, Instant::now() + HEARD_WITHIN).await?;
    wait_settled(member).await
}

/// Waits until a majority of the remaining members has the removal on disk. A caller that
/// retries, after the removal was applied, only waits.
async fn wait_settled(member: &Member) -> Result<CoordinatorChanged> {
    let deadline = Instant::now() + HEARD_WITHIN;
    while !member.raft.has_settled() {
        if member.forward_to()?.is_some() {
            return Err(not_leader(None));
        }
        if Instant::now() >= deadline {
            return Err(Error::unavailable("no majority of the coordinators that stay has the removal on its disks yet")
                .with_hint("start those that are down and send the same statement again; keep the removed one until then"));
        }
        sleep(LOOK).await;
    }
    Ok(change_answer(member, None))
}

/// Waits until a majority of the remaining voters has sent a message since the call. Refuses the
/// removal if that takes too long. Earlier messages do not count: their senders may have failed
/// since.
async fn wait_majority(member: &Member, node: NodeId, after: &Members) -> Result<()> {
    let (deadline, began_ms) = (Instant::now() + HEARD_WITHIN, member.now_ms());
    loop {
        let now_ms = member.now_ms();
        let dead = unheard_voters(after, &member.members_silent_ms(now_ms), now_ms - began_ms);
        if 2 * dead.len() < after.voters.len() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(no_majority(node, &dead));
        }
        sleep(LOOK).await;
    }
}

/// Returns the voters that have been silent for longer than `within_ms`.
fn unheard_voters(
    members: &Members,
    silent_ms: &BTreeMap<NodeId, u64>,
    within_ms: u64,
) -> Vec<NodeId> {
    let is_unheard = |id: &NodeId| silent_ms.get(id).is_none_or(|ms| *ms > within_ms);
    members.voters.iter().copied().map(NodeId).filter(is_unheard).collect()
}

fn no_majority(node: NodeId, dead: &[NodeId]) -> Error {
    let dead: Vec<_> = dead.iter().map(NodeId::to_string).collect();
    let what = format!(
        "without coordinator {node} the others have no majority that answers: nothing is heard of {}",
        dead.join(", ")
    );
    Error::new(ErrorCode::InvalidParameter, what).with_hint(
        "remove a coordinator that does not answer first, start it again, or add another one with ADD COORDINATOR",
    )
}

/// Hands leadership over to another member. Returns the error that directs the caller to the new
/// leader.
async fn hand_over(member: &Member) -> Result<Error> {
    let to = member.raft.hand_over().await?;
    let mut role = member.raft.role();
    let own = member.config.node;
    let other = |leader: Option<NodeId>| leader.is_some_and(|leader| leader != own);
    let handed = timeout(HANDED_OVER_WITHIN, role.wait_for(|role| other(role.leader))).await;
    match handed {
        Ok(Ok(role)) => Ok(not_leader(role.leader)),
        _ => {
            let to = to.map_or_else(|| "another one".to_owned(), |to| to.to_string());
            let what = format!("coordinator {own} leads and could not hand over to {to} in time");
            Err(Error::unavailable(what).with_hint("send the same statement again"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_majority_of_those_that_stay_must_answer() {
        let silent = |ms: [u64; 3]| (1..=3).map(NodeId).zip(ms).collect::<BTreeMap<_, _>>();
        let three = Members::new(vec![1, 2, 3]);
        let without = |node| {
            three
                .after(&MemberChange::Remove { node: NodeId(node) })
                .expect("more than one is left")
        };
        let has_majority = |members: &Members, ms| {
            let dead = unheard_voters(members, &silent(ms), 250);
            2 * dead.len() < members.voters.len()
        };
        assert!(has_majority(&without(3), [0, 100, 60_000]), "the dead one goes");
        assert!(!has_majority(&without(2), [0, 100, 60_000]), "the dead one would be half of two");
        assert!(has_majority(&without(1), [0, 100, 200]));
        assert!(!has_majority(&without(2), [0, 100, 300]), "it may have died a moment ago");
        let refusal = no_majority(NodeId(2), &[NodeId(3)]);
        assert!(refusal.hint.is_some_and(|hint| hint.contains("ADD COORDINATOR")));
    }

    #[test]
    fn an_address_must_be_one_that_others_can_call() {
        for good in ["h:1", "10.0.0.1:7000", "[::1]:7000"] {
            assert!(check_address(good).is_ok(), "{good}");
        }
        assert!(check_address(&format!("{}:1", "h".repeat(1000))).is_err());
        for bad in ["", "h", "h:", ":7000", "0.0.0.0:7000", "[::]:7000", "h:70000"] {
            assert!(check_address(bad).is_err(), "{bad}");
        }
    }
}
