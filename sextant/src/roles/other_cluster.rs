//! Ends a router whose coordinators have begun another cluster.
//!
//! The cluster of a router is the cluster of the first catalog that the router applies, or of the
//! catalog on its disk. If the coordinators begin a new cluster (`--force-new-cluster`), they
//! refuse the router's calls, and the router would serve the old catalog for ever. The router
//! therefore ends and removes the stored catalog, so that it follows the new cluster after a
//! restart. Since an address may be wrong for a short time, the router ends only after a majority
//! of the coordinators has refused it for [`REFUSED_FOR`] and no coordinator of its cluster has
//! answered.

use std::time::Duration;

use proto::model::ids::NodeId;
use proto::rpc::api::Directory;
use proto::{Error, ErrorCode};
use tokio::time::{Instant, sleep, timeout};

/// The pause between two rounds of calls, and the time limit of each call.
const PAUSE: Duration = Duration::from_secs(1);
/// The time for which all answers must be refusals until the router ends.
const REFUSED_FOR: Duration = Duration::from_secs(5);

/// Waits until a majority of the coordinators permanently belongs to another cluster. Returns the
/// error with which the router ends.
pub(super) async fn wait_other_cluster(
    directory: &dyn Directory,
    members: impl Fn() -> Vec<NodeId>,
) -> Error {
    let mut since = None;
    loop {
        sleep(PAUSE).await;
        let Some(refusal) = refusal_of_most(directory, &members()).await else {
            since = None;
            continue;
        };
        let since = *since.get_or_insert_with(Instant::now);
        if since.elapsed() >= REFUSED_FOR {
            let what = format!(
                "the coordinators belong to another cluster than before: {}",
                refusal.message
            );
            return Error::new(ErrorCode::OtherCluster, what)
                .with_hint("start the router again: it then follows the new cluster");
        }
    }
}

/// Returns the refusal of a coordinator of another cluster. Returns `None` unless a majority
/// refuses and no coordinator of the router's cluster answers.
async fn refusal_of_most(directory: &dyn Directory, members: &[NodeId]) -> Option<Error> {
    let mut refusals = Vec::new();
    for member in members {
        let Ok(coordinator) = directory.coordinator_member(*member) else { continue };
        match timeout(PAUSE, coordinator.status()).await {
            Ok(Ok(_)) => return None,
            Ok(Err(error)) if error.code == ErrorCode::OtherCluster => refusals.push(error),
            // A member that is down proves nothing.
            Ok(Err(_)) | Err(_) => {}
        }
    }
    if 2 * refusals.len() > members.len() { refusals.pop() } else { None }
}
