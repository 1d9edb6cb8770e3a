//! Registers the projector and sends its heartbeats.

use std::sync::Arc;
use std::time::Duration;

use proto::ErrorCode;
use proto::rpc::api::Heartbeat;
use proto::rpc::command::{Command, CommandRequest, Outcome, RequestId};

use super::retry::{Retry, report};
use crate::projector::Projector;

/// The interval of heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// Registers, then sends heartbeats. Registers again if the coordinator does not know the node. Runs until cancelled;
/// safe to cancel at any await.
pub async fn stay_registered(projector: Arc<Projector>) {
    let node = projector.config.node.clone();
    let client = projector.env.random.next_u64();
    let mut sequence = 0;
    let mut registered = false;
    let mut retry = Retry::new();
    loop {
        let coordinator = projector.directory.coordinator();
        let result = if registered {
            let heartbeat = Heartbeat {
                node: node.id,
                buckets: Vec::new(),
                slices: Vec::new(),
                moves: Vec::new(),
                leases: Vec::new(),
                scans: None,
            };
            coordinator.heartbeat(heartbeat).await
        } else {
            sequence += 1;
            let request = Some(RequestId { client, sequence });
            let command = Command::RegisterNode(node.clone());
            coordinator.propose(CommandRequest { request, command }).await.and_then(|outcome| {
                match outcome {
                    Outcome::Refused(error) => Err(error),
                    _ => Ok(()),
                }
            })
        };
        match result {
            Ok(()) => {
                if !registered {
                    tracing::info!(node = %node.id, "registered");
                }
                registered = true;
                retry = Retry::new();
                tokio::time::sleep(HEARTBEAT).await;
            }
            Err(error) => {
                let doing = if registered { "a heartbeat" } else { "the registration" };
                if error.code == ErrorCode::Unknown {
                    registered = false;
                }
                report(doing, &error);
                retry.pause().await;
            }
        }
    }
}
