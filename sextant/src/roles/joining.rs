//! The members with which a coordinator begins.
//!
//! A log has its own members, and the settings are only addresses. Without a log the settings name the members of a new cluster, unless
//! the process itself is not among them: then it waits until it is added. Settings may also name a coordinator before it is
//! added, on a new machine of a cluster that runs. So a process without a log asks the others first, side by side, and the first one that knows its
//! group decides: if this process is not among the founders it waits. It must not found a second cluster with other new ones.
//!
//! A member that was added, has a vote and comes without a log has lost its directory, and its votes with it: it may not start.

use std::path::Path;
use std::time::Duration;

use coordinator::was_removed;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use proto::env::Env;
use proto::model::ids::NodeId;
use proto::model::node::NodeInfo;
use proto::rpc::api::{CoordinatorMembers, Directory};
use proto::{Error, ErrorCode, Result};
use tokio::time::timeout;

/// The time limit of the question, if nobody answers who knows. A machine that does not run refuses at once; one that cannot be reached does not.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// The members of the settings, without this one if it has to be added first. An error if it was removed.
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
    let founds = others().count() < named.len();
    let ask = |id| async move { directory.coordinator_member(id).ok()?.members().await.ok() };
    let asked = others().map(|(id, _)| ask(id));
    let told = timeout(ANSWER_WITHIN, first_answer(asked)).await;
    let joins = joins(own, founds, told.ok().flatten())?;
    if !joins {
        return Ok(named.to_vec());
    }
    eprintln!(
        "coordinator {own} waits until it is added: ADD COORDINATOR '{own}' AT '{}'",
        node.address
    );
    Ok(others().collect())
}

/// True if a process without a log has to be added. `founds` tells whether the settings name it among the members.
fn joins(own: NodeId, founds: bool, told: Option<CoordinatorMembers>) -> Result<bool> {
    let Some(told) = told else { return Ok(!founds) };
    if told.removed.contains(&own) {
        return Err(was_removed(own));
    }
    let is_founder = founds && told.founders.contains(&own);
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

/// The members of the group to which the others belong, as the first tells that knows; some may not answer at all.
async fn first_answer(
    asked: impl Iterator<Item = impl Future<Output = Option<CoordinatorMembers>>>,
) -> Option<CoordinatorMembers> {
    let mut asked: FuturesUnordered<_> = asked.collect();
    while let Some(answer) = asked.next().await {
        // One that waits until it is added itself knows nothing.
        if let Some(told) = answer.filter(|told| !told.founders.is_empty()) {
            return Some(told);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn told(founders: &[u64], voters: &[u64]) -> CoordinatorMembers {
        let ids = |ids: &[u64]| ids.iter().copied().map(NodeId).collect();
        CoordinatorMembers { founders: ids(founders), voters: ids(voters), ..Default::default() }
    }

    #[test]
    fn a_process_without_a_log_founds_only_the_group_that_its_settings_and_the_others_name() {
        let four = NodeId(4);
        assert!(!joins(four, true, None).unwrap(), "the first one of a new cluster");
        assert!(joins(four, false, None).unwrap());
        let together = told(&[3, 4, 5], &[3, 4, 5]);
        assert!(!joins(four, true, Some(together)).unwrap(), "the others have started before it");
        assert!(joins(four, true, Some(told(&[1, 2, 3], &[1, 2, 3]))).unwrap());
        assert!(joins(four, false, Some(told(&[1, 2, 3], &[1, 2, 3]))).unwrap());
    }

    #[test]
    fn a_member_that_comes_without_its_log_does_not_start() {
        let added = joins(NodeId(4), true, Some(told(&[1, 2, 3], &[1, 2, 4])));
        assert_eq!(added.unwrap_err().code, ErrorCode::Corrupt);
        let unnamed = joins(NodeId(1), false, Some(told(&[1, 2, 3], &[1, 2, 3])));
        assert_eq!(unnamed.unwrap_err().code, ErrorCode::Corrupt);
        let removed = CoordinatorMembers { removed: vec![NodeId(1)], ..told(&[1, 2], &[2]) };
        assert!(joins(NodeId(1), true, Some(removed)).is_err());
    }

    #[tokio::test]
    async fn the_first_answer_that_knows_the_group_counts_beside_machines_that_are_silent() {
        let silent = std::future::pending().boxed();
        let waits_too = async { Some(told(&[], &[])) }.boxed();
        let down = async { None }.boxed();
        let knows = async { Some(told(&[1, 2], &[1, 2])) }.boxed();
        let answer = first_answer([silent, waits_too, down, knows].into_iter()).await;
        assert_eq!(answer, Some(told(&[1, 2], &[1, 2])));
    }
}
