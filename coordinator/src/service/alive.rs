//! Sends the member's own heartbeats.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use proto::rpc::api::Heartbeat;

use super::reports::heartbeat;
use crate::leader::driver::member::Member;

/// The interval of a member's heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(1);

pub(super) async fn send_heartbeats(member: Arc<Member>) -> Infallible {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        let node = member.config.node;
        let nothing = Heartbeat {
            node,
            buckets: vec![],
            slices: vec![],
            moves: vec![],
            leases: vec![],
            moments: vec![],
            reads_since: 0,
            loads: Vec::new(),
            split_points: Vec::new(),
            scans: None,
            proof: None,
            catalog_cas: 0,
            owned: Vec::new(),
        };
        // There is no leader to reach between two terms.
        if let Err(error) = heartbeat(&member, nothing).await {
            tracing::debug!(%node, %error, "a heartbeat of a coordinator failed");
        }
    }
}
