//! The queries by which a member finds the present members and their addresses, while it knows no
//! leader.
//!
//! A member that was down for long may know none of the present members, and it may have been
//! removed. It queries in parallel each member that it knows from its log, the settings and
//! earlier answers. It uses the addresses in all answers. It accepts its own removal only from a
//! leader whose removals are settled (`raft::removal`).

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use proto::model::ids::NodeId;
use proto::rpc::api::CoordinatorMembers;
use tokio::time::{sleep, timeout};

use crate::leader::driver::member::Member;
use crate::raft::removed_error;

/// The pause before the next query.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// The time limit of a query.
const ASK_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the members and their addresses, as far as this member knows them: the answer to such
/// a query.
pub(super) fn known_members(member: &Member) -> CoordinatorMembers {
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
    let removed = if member.raft.has_settled() { ids(&members.removed) } else { Vec::new() };
    CoordinatorMembers {
        voters: ids(&members.voters),
        learners: ids(&members.learners),
        removed,
        addresses: members.all().iter().filter_map(address).collect(),
        founders: ids(&members.founders),
        has_leader: member.raft.role().borrow().leader.is_some(),
    }
}

/// Keeps the addresses of the members in the directory up to date. Queries the other members
/// while this member does not know the leader's address.
pub(super) async fn watch_members(member: Arc<Member>) -> Infallible {
    let mut changes = member.replica.catalog_changes();
    let mut told = BTreeMap::new();
    let mut has_said = false;
    loop {
        update_directory(&member, &told);
        // A member that has just started receives a message of its leader within a second.
        tokio::select! {
            changed = changes.changed() => if changed.is_ok() {
                // A member that catches up has older catalogs first, which lack new members.
                let known = member.replica.view().catalog.coordinators();
                told.retain(|id, _| !known.iter().any(|(registered, _)| registered == id));
                continue;
            },
            () = sleep(ASK_EVERY) => {}
        }
        if knows_leader(&member) {
            continue;
        }
        if member.members().is_unknown() && !has_said {
            has_said = true;
            let node = member.config.node;
            tracing::info!(%node, "this coordinator waits until ADD COORDINATOR adds it");
        }
        ask_others(&member, &mut told).await;
    }
}

/// Returns true if this member knows the leader and its address.
fn knows_leader(member: &Member) -> bool {
    let leader = member.raft.role().borrow().leader;
    leader.is_some_and(|leader| member.directory.coordinator_member(leader).is_ok())
}

/// Adds the addresses of the catalog and of the answers to the directory. The answers are newer and
/// take precedence.
fn update_directory(member: &Member, told: &BTreeMap<NodeId, String>) {
    let mut members: BTreeMap<_, _> =
        member.replica.view().catalog.coordinators().into_iter().collect();
    members.extend(told.clone());
    if !members.is_empty() {
        member.directory.learn_coordinators(members.into_iter().collect());
    }
}

/// Queries all known members. Adds the addresses in their answers to `told`, and records a
/// removal of this member.
async fn ask_others(member: &Member, told: &mut BTreeMap<NodeId, String>) {
    let own = member.config.node;
    let known = member.members().all().into_iter();
    let named = member.config.members.iter().map(|(id, _)| *id);
    let all: BTreeSet<NodeId> = known.chain(named).chain(told.keys().copied()).collect();
    let asked = all.into_iter().filter(|id| *id != own).map(|id| async move {
        let other = member.directory.coordinator_member(id).ok()?;
        timeout(ASK_TIMEOUT, other.members()).await.ok()?.ok()
    });
    let answers: Vec<CoordinatorMembers> = join_all(asked).await.into_iter().flatten().collect();
    if answers.iter().any(|answer| answer.removed.contains(&own)) {
        member.removed.send_replace(Some(removed_error(own)));
        return;
    }
    let founders: Vec<NodeId> = member.members().founders.iter().copied().map(NodeId).collect();
    let is_of_others = |answer: &CoordinatorMembers| {
        !founders.is_empty() && !answer.founders.is_empty() && answer.founders != founders
    };
    if answers.iter().any(is_of_others) {
        tracing::error!(node = %own, "the other coordinators belong to a cluster that others have founded: stop this one, empty its data directory, and let ADD COORDINATOR add it under a new --id");
    }
    let is_stranger = |answer: &CoordinatorMembers| {
        answer.has_leader && !answer.voters.contains(&own) && !answer.learners.contains(&own)
    };
    if !member.members().is_unknown() && answers.iter().any(is_stranger) {
        tracing::warn!(node = %own, "the other coordinators do not know this one; ADD COORDINATOR adds one with an empty directory");
    }
    // Members without a leader may lag as far as this one.
    let (newer, older): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| answer.has_leader);
    let registered = member.replica.view().catalog.coordinators();
    for (id, address) in older.into_iter().flat_map(|answer| answer.addresses) {
        if !registered.iter().any(|(known, _)| *known == id) {
            told.entry(id).or_insert(address);
        }
    }
    told.extend(newer.into_iter().flat_map(|answer| answer.addresses));
}
