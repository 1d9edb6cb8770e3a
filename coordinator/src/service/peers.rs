//! Raft's messages to the other members, through the directory.
//!
//! Each member has a queue, bounded in messages and in bytes, and one task that takes what has gathered and sends it in one call.
//! A full queue or a failed call loses messages, which is what Raft expects of a network; nothing here
//! is retried, since what is late is stale.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_channel::{Receiver, Sender};
use bytes::Bytes;
use proto::env::{Env, Task};
use proto::flow::{Budget, Reservation};
use proto::model::ids::NodeId;
use proto::rpc::api::Directory;
use proto::{ErrorCode, Result};

use crate::raft::wire::QUEUE_BYTES_MAX;
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
pub struct Peers(BTreeMap<NodeId, (Sender<Waiting>, Budget)>);

/// A message that waits, and its room in the queue.
type Waiting = (RaftMessage, Reservation);

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
            queues.insert(peer, (sender, Budget::new(QUEUE_BYTES_MAX)));
            let sending = send_all(directory.clone(), peer, receiver);
            tasks.push(env.spawn("coordinator-peer", sending));
        }
        (Arc::new(Self(queues)), tasks)
    }
}

impl PeerTransport for Peers {
    fn send(&self, to: NodeId, message: RaftMessage) {
        // Full: the member is down or slow, and Raft will know.
        if let Some((queue, bytes)) = self.0.get(&to)
            && let Some(room) = bytes.try_reserve(message.bytes())
        {
            let _ = queue.try_send((message, room));
        }
    }
}

async fn send_all(directory: Arc<dyn Directory>, peer: NodeId, queue: Receiver<Waiting>) {
    while let Ok((first, _room)) = queue.recv().await {
        match send_some(&directory, peer, first, &queue).await {
            Ok(()) => {}
            // A state that has grown out of its bounds would never arrive.
            Err(error) if error.code == ErrorCode::OverLimit => {
                tracing::error!(%peer, %error, "a member cannot be brought up to date");
            }
            Err(error) => tracing::debug!(%peer, %error, "send raft messages"),
        }
    }
}

async fn send_some(
    directory: &Arc<dyn Directory>,
    peer: NodeId,
    first: RaftMessage,
    queue: &Receiver<Waiting>,
) -> Result<()> {
    let timeout = if first.snapshot.is_some() { SNAPSHOT_CALL_TIMEOUT } else { CALL_TIMEOUT };
    let mut messages = vec![Bytes::from(first.encode()?)];
    let mut bytes = messages[0].len();
    while bytes < CALL_BYTES_MAX
        && let Ok((next, _room)) = queue.try_recv()
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
