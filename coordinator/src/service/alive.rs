//! Says that the member is alive.

use std::sync::Arc;
use std::time::Duration;

use proto::rpc::api::Heartbeat;

use super::reports::heartbeat;
use crate::leader::driver::member::Member;

/// How often a member says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(1);

pub(super) async fn say_alive(inner: Arc<Member>) {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        let node = inner.config.node;
        let nothing = Heartbeat {
            node,
            buckets: vec![],
            slices: vec![],
            moves: vec![],
            leases: vec![],
            scans: None,
        };
        // Between two leaders there is nobody to tell.
        if let Err(error) = heartbeat(&inner, nothing).await {
            tracing::debug!(%node, %error, "say that a coordinator is alive");
        }
    }
}
