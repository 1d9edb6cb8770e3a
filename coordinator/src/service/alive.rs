//! Sends heartbeats of a member of the coordinator to its leader.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use proto::rpc::api::{Heartbeat, RoleReport};

use super::reports::heartbeat;
use crate::leader::driver::member::Member;

/// The interval between two heartbeats of a member.
const HEARTBEAT: Duration = Duration::from_secs(1);

pub(super) async fn send_heartbeats(member: Arc<Member>) -> Infallible {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        let node = member.config.node;
        let alive = Heartbeat::new(node, 0, RoleReport::Coordinator);
        // There is no leader to reach between two terms.
        if let Err(error) = heartbeat(&member, alive).await {
            tracing::debug!(%node, %error, "a heartbeat of a coordinator failed");
        }
    }
}
