//! The members as operators and other processes see them: `ADD COORDINATOR`, `REMOVE COORDINATOR`, and the questions of a member that hears
//! of no leader.
//!
//! The leader makes the changes. `ADD` waits until the new member votes, as long as [`VOTES_WITHIN`]; the change itself is made at once.
//! `REMOVE` first looks whether a majority of the members that stay is alive, since nobody could add members without one. A leader that is to be
//! removed hands over, and its caller asks again.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use proto::model::ids::NodeId;
use proto::rpc::api::{CoordinatorChange, CoordinatorChanged, CoordinatorMembers};
use proto::{Error, ErrorCode, Result};
use tokio::time::{Instant, sleep, timeout};

use crate::leader::driver::member::Member;
use crate::raft::{MemberChange, Members, not_leader, was_removed};

/// How long ADD COORDINATOR waits for the vote of the new member.
const VOTES_WITHIN: Duration = Duration::from_secs(20);
/// How long REMOVE COORDINATOR waits for the answers of members that a new leader has not heard yet.
const HEARD_WITHIN: Duration = Duration::from_secs(3);
/// A new member that has sent nothing for longer does not answer. The leader hears of the others ten times in a second.
const DEAD_MS_MIN: u64 = 2_000;
/// How long a leader waits for the one that it hands over to.
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(2);
/// The pause before the next look.
const LOOK: Duration = Duration::from_millis(50);

/// The pause of a member that hears of no leader before it asks the others who the members are.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// The time limit of that question.
const ASK_TIMEOUT: Duration = Duration::from_secs(2);

/// The members as this member has them.
pub(super) fn told_members(member: &Member) -> CoordinatorMembers {
    let members = member.members();
    let view = member.replica.view();
    let address = |id: &NodeId| {
        let registered = view.state.node(*id).map(|node| node.address.clone());
        let named = || {
            let named = member.config.members.iter().find(|(named, _)| named == id);
            named.map(|(_, address)| address.clone())
        };
        Some((*id, registered.or_else(named)?))
    };
    let ids = |ids: &[u64]| ids.iter().copied().map(NodeId).collect();
    CoordinatorMembers {
        voters: ids(&members.voters),
        learners: ids(&members.learners),
        removed: ids(&members.removed),
        addresses: members.all().iter().filter_map(address).collect(),
    }
}

/// Changes the members, or lets the leader do it.
pub(super) async fn change_members(
    member: &Member,
    change: CoordinatorChange,
) -> Result<CoordinatorChanged> {
    if let Some(leader) = member.forward_to()? {
        return leader.change_members(change).await;
    }
    wait_trusted(member).await?;
    match change {
        CoordinatorChange::Add { node, address } => add(member, node, address).await,
        CoordinatorChange::Remove { node } => remove(member, node).await,
    }
}

/// An older copy of the coordinator changes nothing that others know.
async fn wait_trusted(member: &Member) -> Result<()> {
    loop {
        let now_ms = member.now_ms();
        let is_held = member.as_leader(|leader| {
            let view = member.replica.view();
            leader.check_newest(&view.state)?;
            Ok(leader.is_held(&view.state, now_ms))
        })?;
        if !is_held {
            return Ok(());
        }
        sleep(LOOK).await;
    }
}

async fn add(member: &Member, node: NodeId, address: String) -> Result<CoordinatorChanged> {
    check_address(&address)?;
    let deadline = Instant::now() + VOTES_WITHIN;
    let known = member.replica.view().state.node(node).map(|node| node.address.clone());
    if !member.members().contains(node) {
        let change = MemberChange::Add { node, address: address.clone() };
        change_until(member, &change, deadline).await?;
    } else if known.is_some_and(|known| known != address) {
        let what = format!("coordinator {node} is a member already, at another address");
        return Err(Error::new(ErrorCode::InvalidParameter, what)
            .with_hint("SHOW NODES lists the coordinators; a new member needs a new number"));
    }
    let mut members = member.raft.members();
    loop {
        let is_voter = members.borrow_and_update().is_voter(node);
        if is_voter {
            return Ok(CoordinatorChanged::default());
        }
        if Instant::now() >= deadline {
            return Ok(CoordinatorChanged { lacks: Some(lacks(member, node, &address)) });
        }
        // The next leader goes on; the caller asks it.
        if member.forward_to()?.is_some() {
            return Err(not_leader(None));
        }
        sleep(LOOK).await;
    }
}

/// The reason why a learner does not vote yet.
fn lacks(member: &Member, node: NodeId, address: &str) -> String {
    let now_ms = member.now_ms();
    let silent_ms = member.members_silent_ms(now_ms).get(&node).copied();
    match silent_ms.is_none_or(|ms| ms >= DEAD_MS_MIN) {
        true => format!("coordinator {node} is added, and does not answer at {address} yet"),
        false => format!("coordinator {node} is added, and does not have the whole log yet"),
    }
}

/// Other processes cannot call an address without a port, or one that stands for all interfaces.
fn check_address(address: &str) -> Result<()> {
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

/// Proposes a change. Another change may have to end first.
async fn change_until(member: &Member, change: &MemberChange, deadline: Instant) -> Result<()> {
    loop {
        match member.raft.change(change.clone()).await {
            // The same change was under way already: its answer was lost with the member that forwarded it.
            Err(_) if is_made(&member.members(), change) => return Ok(()),
            Err(error) if error.code == ErrorCode::Unavailable && Instant::now() < deadline => {
                sleep(LOOK).await;
            }
            done => return done,
        }
    }
}

fn is_made(members: &Members, change: &MemberChange) -> bool {
    match change {
        MemberChange::Add { node, .. } => members.contains(*node),
        MemberChange::Promote { node } => members.is_voter(*node),
        MemberChange::Remove { node } => members.is_removed(*node),
    }
}

async fn remove(member: &Member, node: NodeId) -> Result<CoordinatorChanged> {
    if member.members().is_removed(node) {
        return Ok(CoordinatorChanged::default());
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
    Ok(CoordinatorChanged::default())
}

/// Waits until a majority of the voters that stay is heard, or refuses. Earlier messages do not count: their sender may have died since.
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

/// The voters that have been silent for longer than this.
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

/// Hands leadership over. Returns the error that sends the caller to the next leader.
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

/// Tells the directory the addresses of the members. While this member hears of no leader it asks the others: they may have removed it, or
/// have members that it does not know.
pub(super) async fn watch_members(member: Arc<Member>) -> Infallible {
    let mut changes = member.replica.catalog_changes();
    let mut has_said = false;
    loop {
        learn(&member, member.replica.view().catalog.coordinators());
        // A member that has just started hears of its leader within a second.
        tokio::select! {
            _ = changes.changed() => continue,
            () = sleep(ASK_EVERY) => {}
        }
        let has_leader = member.raft.role().borrow().leader.is_some();
        let joins = member.members().is_unknown();
        if !has_leader {
            if joins && !has_said {
                has_said = true;
                let node = member.config.node;
                tracing::info!(%node, "this coordinator waits until ADD COORDINATOR adds it");
            }
            ask_others(&member).await;
        }
    }
}

fn learn(member: &Member, members: Vec<(NodeId, String)>) {
    if !members.is_empty() {
        member.directory.learn_coordinators(members);
    }
}

async fn ask_others(member: &Member) {
    let told = timeout(ASK_TIMEOUT, member.directory.coordinator().members()).await;
    let Ok(Ok(told)) = told else { return };
    let own = member.config.node;
    if told.removed.contains(&own) {
        member.removed.send_replace(Some(was_removed(own)));
        return;
    }
    let is_member = told.voters.contains(&own) || told.learners.contains(&own);
    if !is_member && !member.members().is_unknown() {
        tracing::warn!(node = %own, "the other coordinators do not know this one; ADD COORDINATOR adds one with an empty directory");
    }
    learn(member, told.addresses);
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
        for bad in ["", "h", "h:", ":7000", "0.0.0.0:7000", "[::]:7000", "h:70000"] {
            assert!(check_address(bad).is_err(), "{bad}");
        }
    }
}
