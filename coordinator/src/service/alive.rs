//! Sends the member's own heartbeats.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use proto::rpc::api::{Heartbeat, RoleReport};

use super::reports::heartbeat;
use crate::leader::driver::member::Member;

/// The interval of a member's heartbeats.
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
