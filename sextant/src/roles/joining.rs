//! The members with which a coordinator begins.
//!
//! A log has its own members, and the settings are only addresses. Without a log the settings name the members of a new cluster, unless
//! the process itself is not among them: then it waits until it is added. Settings may also name a coordinator before it is
//! added, on a new machine of a cluster that runs. So a process without a log asks the others first: if they belong to a cluster without this
//! one, it waits as well. It must not found a second cluster with other new ones.

use std::path::Path;
use std::time::Duration;

use coordinator::was_removed;
use proto::Result;
use proto::env::Env;
use proto::model::ids::NodeId;
use proto::model::node::NodeInfo;
use proto::rpc::api::{CoordinatorMembers, Directory};
use tokio::time::timeout;

/// The time limit of the question. Members that start at the same time do not answer yet.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);

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
    let told = timeout(ANSWER_WITHIN, asked(directory, others().map(|(id, _)| id))).await;
    let joins = match told.ok().flatten() {
        Some(told) if told.removed.contains(&own) => return Err(was_removed(own)),
        Some(told) => !founds || !told.voters.contains(&own),
        None => !founds,
    };
    if !joins {
        return Ok(named.to_vec());
    }
    eprintln!(
        "coordinator {own} waits until it is added: ADD COORDINATOR '{own}' AT '{}'",
        node.address
    );
    Ok(others().collect())
}

/// The members of the cluster to which one of these belongs, if one answers.
async fn asked(
    directory: &dyn Directory,
    others: impl Iterator<Item = NodeId>,
) -> Option<CoordinatorMembers> {
    let asked =
        others.map(|id| async move { directory.coordinator_member(id).ok()?.members().await.ok() });
    let answers = futures::future::join_all(asked).await;
    answers.into_iter().flatten().next()
}
