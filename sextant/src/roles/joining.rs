//! The list of coordinators with which a coordinator starts.
//!
//! The log of a coordinator contains the members of the group; the settings are then used only
//! for addresses. Without a log, the settings name the members of a new cluster. If they do not
//! name the process itself, it waits until it is added.
//!
//! Settings may also name a coordinator that runs on a new machine and is not yet a member of the
//! running cluster. A process without a log therefore first queries the others, all at the same
//! time. If one of them belongs to a group without this process, the process waits until it is
//! added. It must not begin a second cluster together with other new processes.
//!
//! A voting member of the group that starts without a log has lost its directory and its votes,
//! and must not start.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use coordinator::removed_error;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use proto::env::Env;
use proto::model::ids::NodeId;
use proto::model::node::NodeInfo;
use proto::rpc::api::{CoordinatorMembers, Directory};
use proto::{Error, ErrorCode, Result};
use tokio::time::{Instant, timeout_at};

/// The time limit of the queries, if no member of the group answers. A connection to a stopped
/// process fails at once, but a connection to an unreachable machine does not.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// Returns the members that the settings name. If this process must first be added by the others,
/// the result does not contain it. Returns an error if this process was removed from the group.
pub(super) async fn members_to_begin_with(
    (node, data): (&NodeInfo, &Path),
    named: &[(NodeId, String)],
    env: &Env,
    directory: &dyn Directory,
) -> Result<Vec<(NodeId, String)>> {
    let own = node.id;
    let others = || named.iter().filter(|(id, _)| *id != own).cloned();
    let (its_env, dir) = (env.clone(), data.to_owned());
    let has_log = env
        .blocking(move || Ok::<_, proto::Error>(coordinator::has_log(&*its_env.fs, &dir)))
        .await?;
    if has_log {
        return Ok(named.to_vec());
    }
    let ask = |id| async move { directory.coordinator_member(id).ok()?.members().await.ok() };
    let asked = others().map(|(id, _)| ask(id));
    let told = best_answer(asked).await;
    let joins = must_be_added(own, named, told)?;
    if !joins {
        return Ok(named.to_vec());
    }
    eprintln!(
        "coordinator {own} waits until it is added: ADD COORDINATOR '{own}' AT '{}'",
        node.address
    );
    Ok(others().collect())
}

/// Returns true if a process without a log must be added to the group that other members have
/// reported (`told`). Returns an error if the process was a member and has lost its log.
fn must_be_added(
    own: NodeId,
    named: &[(NodeId, String)],
    told: Option<CoordinatorMembers>,
) -> Result<bool> {
    let founds = named.iter().any(|(id, _)| *id == own);
    let Some(told) = told else { return Ok(!founds) };
    let is_present = told.voters.contains(&own) || told.learners.contains(&own);
    // The number of a removed coordinator is never used again.
    if told.removed.contains(&own) || told.founders.contains(&own) && !is_present {
        return Err(removed_error(own));
    }
    let is_founder = founds && told.founders.contains(&own);
    if is_founder && !is_same(&told.founders, named) {
        let founders: Vec<_> = told.founders.iter().map(NodeId::to_string).collect();
        let what = format!(
            "another coordinator has founded a cluster with {}, and the settings of coordinator {own} name others",
            founders.join(", ")
        );
        return Err(Error::new(ErrorCode::InvalidParameter, what)
            .with_hint("give all founders of a cluster the same --coordinators"));
    }
    if told.voters.contains(&own) && !is_founder {
        let what =
            format!("coordinator {own} is a member that votes, and its data directory has no log");
        return Err(Error::new(ErrorCode::Corrupt, what).with_hint(
            "restore the directory, or REMOVE COORDINATOR and ADD COORDINATOR with a new --id: it may have \
             voted and acknowledged entries that it does not know any more",
        ));
    }
    Ok(!is_founder)
}

/// Returns true if two lists contain the same coordinators.
fn is_same(founders: &[NodeId], named: &[(NodeId, String)]) -> bool {
    let named: BTreeSet<NodeId> = named.iter().map(|(id, _)| *id).collect();
    named == founders.iter().copied().collect()
}

/// Returns the members from the first answer of a coordinator that knows a leader. Otherwise
/// returns any other answer, which may be outdated; `None` if there is no answer.
async fn best_answer(
    asked: impl Iterator<Item = impl Future<Output = Option<CoordinatorMembers>>>,
) -> Option<CoordinatorMembers> {
    let (mut asked, until) = (FuturesUnordered::from_iter(asked), Instant::now() + ANSWER_WITHIN);
    let mut older = None;
    while let Ok(Some(answer)) = timeout_at(until, asked.next()).await {
        // A member that waits until it is added has no list.
        match answer.filter(|told| !told.founders.is_empty()) {
            Some(told) if told.has_leader => return Some(told),
            Some(told) => older = Some(told),
            None => {}
        }
    }
    older
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn told(founders: &[u64], voters: &[u64]) -> CoordinatorMembers {
        let ids = |ids: &[u64]| ids.iter().copied().map(NodeId).collect();
        let (founders, voters) = (ids(founders), ids(voters));
        CoordinatorMembers { founders, voters, has_leader: true, ..Default::default() }
    }

    fn named(ids: &[u64]) -> Vec<(NodeId, String)> {
        ids.iter().map(|id| (NodeId(*id), format!("h{id}:1"))).collect()
    }

    #[test]
    fn only_named_founders_begin_a_group() {
        let four = NodeId(4);
        let (with, without) = (named(&[3, 4, 5]), named(&[1, 2, 3]));
        assert!(!must_be_added(four, &with, None).unwrap(), "the first one of a new cluster");
        assert!(must_be_added(four, &without, None).unwrap());
        let together = told(&[3, 4, 5], &[3, 4, 5]);
        assert!(
            !must_be_added(four, &with, Some(together)).unwrap(),
            "the others have started before it"
        );
        assert!(must_be_added(four, &with, Some(told(&[1, 2, 3], &[1, 2, 3]))).unwrap());
        assert!(must_be_added(four, &without, Some(told(&[1, 2, 3], &[1, 2, 3]))).unwrap());
        let others = must_be_added(four, &with, Some(told(&[4, 5, 6], &[4, 5, 6])));
        assert_eq!(others.unwrap_err().code, ErrorCode::InvalidParameter, "other founders");
    }

    #[test]
    fn a_member_that_comes_without_its_log_does_not_start() {
        let added = must_be_added(NodeId(4), &named(&[1, 4]), Some(told(&[1, 2, 3], &[1, 2, 4])));
        assert_eq!(added.unwrap_err().code, ErrorCode::Corrupt);
        let unnamed = must_be_added(NodeId(1), &named(&[2, 3]), Some(told(&[1, 2, 3], &[1, 2, 3])));
        assert_eq!(unnamed.unwrap_err().code, ErrorCode::Corrupt);
    }

    #[test]
    fn a_removed_coordinator_does_not_start() {
        let one = NodeId(1);
        let by_leader = CoordinatorMembers { removed: vec![one], ..told(&[2, 3], &[2, 3]) };
        assert!(must_be_added(one, &named(&[2, 3]), Some(by_leader)).is_err());
        let by_follower = told(&[1, 2, 3], &[2, 3]);
        assert!(must_be_added(one, &named(&[1, 2, 3]), Some(by_follower)).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_answer_with_a_leader_counts() {
        let silent = || std::future::pending().boxed();
        let waits_too = async { Some(told(&[], &[])) }.boxed();
        let down = async { None }.boxed();
        let old = || CoordinatorMembers { has_leader: false, ..told(&[1, 2], &[1, 2]) };
        let behind = || async move { Some(old()) }.boxed();
        let knows = async { Some(told(&[1, 2], &[1, 3])) }.boxed();
        let began = Instant::now();
        let all = [silent(), waits_too, behind(), down, knows];
        assert_eq!(best_answer(all.into_iter()).await, Some(told(&[1, 2], &[1, 3])));
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(best_answer([behind(), silent()].into_iter()).await, Some(old()));
        assert_eq!(began.elapsed(), ANSWER_WITHIN);
    }
}
