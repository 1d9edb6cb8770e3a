//! The task that registers the projector with the coordinators and sends its heartbeats.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use proto::client::{ForgottenPolicy, Membership, MembershipConfig};
use proto::rpc::api::{Heartbeat, ProjectorReport};

use super::retry::new_retry;
use crate::projector::Projector;

/// The interval of heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// Registers the node, then sends heartbeats. Registers it again if the coordinator does not know
/// the node. Runs until cancelled; safe to cancel at any await.
pub async fn stay_registered(projector: Arc<Projector>) -> Infallible {
    let node = projector.config.node.id;
    let config = MembershipConfig {
        node: projector.config.node.clone(),
        heartbeat: HEARTBEAT,
        retry: new_retry(),
        client: Some(projector.env.random.next_u64()),
        // A lone coordinator waits for it, see `Heartbeat::catalog_cas`.
        has_news_at_once: true,
        identity: projector.config.identity.clone(),
        when_forgotten: ForgottenPolicy::RegisterAfterPause,
    };
    let reporter = Arc::clone(&projector);
    let heartbeat = move || {
        let report =
            ProjectorReport { owned: reporter.owned_vbuckets(), loads: reporter.loads.all() };
        Heartbeat::new(node, reporter.newest_catalog(), report)
    };
    Membership::new(Arc::clone(&projector.directory), config).run(heartbeat, None).await
}
