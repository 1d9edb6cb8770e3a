//! Raft's messages to the other members, through the directory.
//!
//! Each member has a bounded queue and one task that takes what has gathered and sends it in one call.
//! A full queue or a failed call loses messages, which is what Raft expects of a network; nothing here
//! is retried, since what is late is stale.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_channel::{Receiver, Sender};
use bytes::Bytes;
use proto::Result;
use proto::api::Directory;
use proto::env::{Env, Task};
use proto::ids::NodeId;

use crate::raft::{PeerTransport, RaftMessage};

/// Messages that may wait for a member.
const QUEUE_MAX: usize = 512;
/// Bytes sent in one call, unless one message alone is larger.
const CALL_BYTES_MAX: usize = 1 << 20;
/// A call takes no longer; a dead connection must not hold up what comes after it is mended.
const CALL_TIMEOUT: Duration = Duration::from_secs(1);
/// A call with a snapshot may take longer.
const SNAPSHOT_CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The queues to the other members.
pub struct Peers(BTreeMap<NodeId, Sender<RaftMessage>>);

impl Peers {
    /// Queues to all members but this one, and the tasks that empty them; a cancelled task loses what
    /// waits.
    pub fn new(
        env: &Env,
        directory: &Arc<dyn Directory>,
        others: impl Iterator<Item = NodeId>,
    ) -> (Arc<Self>, Vec<Task>) {
        let mut queues = BTreeMap::new();
        let mut tasks = Vec::new();
        for peer in others {
            let (sender, receiver) = async_channel::bounded(QUEUE_MAX);
            queues.insert(peer, sender);
            let sending = send_all(directory.clone(), peer, receiver);
            tasks.push(env.spawn("coordinator-peer", sending));
        }
        (Arc::new(Self(queues)), tasks)
    }
}

impl PeerTransport for Peers {
    fn send(&self, to: NodeId, message: RaftMessage) {
        if let Some(queue) = self.0.get(&to) {
            // Full: the member is down or slow, and Raft will know.
            let _ = queue.try_send(message);
        }
    }
}

async fn send_all(directory: Arc<dyn Directory>, peer: NodeId, queue: Receiver<RaftMessage>) {
    while let Ok(first) = queue.recv().await {
        if let Err(error) = send_some(&directory, peer, first, &queue).await {
            tracing::debug!(%peer, %error, "send raft messages");
        }
    }
}

async fn send_some(
    directory: &Arc<dyn Directory>,
    peer: NodeId,
    first: RaftMessage,
    queue: &Receiver<RaftMessage>,
) -> Result<()> {
    let timeout = if first.snapshot.is_some() { SNAPSHOT_CALL_TIMEOUT } else { CALL_TIMEOUT };
    let mut messages = vec![Bytes::from(first.encode()?)];
    let mut bytes = messages[0].len();
    while bytes < CALL_BYTES_MAX
        && let Ok(next) = queue.try_recv()
    {
        let message = Bytes::from(next.encode()?);
        bytes += message.len();
        messages.push(message);
    }
    let member = directory.coordinator_member(peer)?;
    match tokio::time::timeout(timeout, member.raft(messages)).await {
        Ok(result) => result,
        Err(_) => Err(proto::Error::unavailable(format!("coordinator {peer} does not answer"))),
    }
}
