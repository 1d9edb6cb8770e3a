//! Registers the node and reports to the coordinator.

use proto::flow::Admission;
use proto::model::cut::EpochMark;
use proto::rpc::api::{BucketProgress, CoordinatorApi, Heartbeat};
use proto::rpc::command::{Command, CommandRequest, Outcome};

use super::followers::{Followers, lock};
use crate::context::NodeContext;
use crate::moves::Incoming;

fn bucket_progress(context: &NodeContext, followers: &Followers) -> Vec<BucketProgress> {
    let followers = lock(followers);
    let progress = |mark: EpochMark| {
        let state = followers.get(&mark.bucket).map(|f| f.state.borrow().clone());
        let state = state.unwrap_or_default();
        BucketProgress {
            bucket: mark.bucket,
            high_watermark: state.watermarks,
            applied: mark.epoch,
            durable: context.store.counters(mark.bucket).durable,
            queue_bytes: state.staged_bytes,
            queue_bytes_max: context.config.queue_bytes_max(),
        }
    };
    context.store.applied().into_iter().map(progress).collect()
}

/// Registers the node, then sends heartbeats: regularly, and at once when a slice becomes readable.
pub(super) async fn report(
    context: NodeContext,
    incoming: Incoming,
    followers: Followers,
    scans: Admission,
) {
    let mut slices = context.slices.subscribe();
    // A known node registers too: its address may have changed.
    while !register(&context, &*context.directory.coordinator()).await {}
    loop {
        let coordinator = context.directory.coordinator();
        let heartbeat = Heartbeat {
            node: context.config.node.id,
            buckets: bucket_progress(&context, &followers),
            slices: [context.store.progress(), incoming.restoring()].concat(),
            moves: incoming.progress(),
            leases: Vec::new(),
            scans: Some(scans.status()),
        };
        match coordinator.heartbeat(heartbeat).await {
            Ok(()) => {}
            // An unknown node goes on as well: a new leader will know it soon, and a node that was removed stays out until an
            // operator starts it again.
            Err(error) => {
                tracing::debug!(%error, "heartbeat");
                tokio::time::sleep(context.config.retry).await;
                continue;
            }
        }
        tokio::select! {
            biased;
            _ = slices.changed() => {}
            () = tokio::time::sleep(context.config.heartbeat) => {}
        }
    }
}

/// Registers the node; false, after a pause, if that failed.
async fn register(context: &NodeContext, coordinator: &dyn CoordinatorApi) -> bool {
    let command = Command::RegisterNode(context.config.node.clone());
    match coordinator.propose(CommandRequest { request: None, command }).await {
        Ok(Outcome::Refused(error)) | Err(error) => {
            tracing::debug!(%error, "registering the indexer");
            tokio::time::sleep(context.config.retry).await;
            false
        }
        Ok(_) => true,
    }
}
