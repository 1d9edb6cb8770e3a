//! Sends Raft's messages to the other members, through the directory.
//!
//! Each member has a queue, bounded in messages and in bytes, and one task that sends all waiting messages in one
//! call. A full queue or a failed call loses messages, which Raft tolerates. Nothing is retried here, because a late
//! message is useless.

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

/// Messages that may wait for one member.
const QUEUE_MAX: usize = 512;
/// The size limit of one call, unless a single message is larger.
const CALL_BYTES_MAX: usize = 1 << 20;
/// The timeout of a call. A dead connection must not delay the messages that come after it is restored.
const CALL_TIMEOUT: Duration = Duration::from_secs(1);
/// The timeout of a call with a snapshot.
const SNAPSHOT_CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The queues to the other members.
pub struct Peers(BTreeMap<NodeId, (Sender<Waiting>, Budget)>);

/// A waiting message, and its room in the queue.
type Waiting = (RaftMessage, Reservation);

impl Peers {
    /// Creates the queues to all other members, and the tasks that empty them. A cancelled task loses the waiting
    /// messages.
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
            let directory = Arc::clone(directory);
            // Raft repeats the messages that a panic loses.
            let send = move || send_all(Arc::clone(&directory), peer, receiver.clone());
            tasks.push(env.spawn_restarted("coordinator-peer", send));
        }
        (Arc::new(Self(queues)), tasks)
    }
}

impl PeerTransport for Peers {
    fn send(&self, to: NodeId, message: RaftMessage) {
        // A full queue means that the member is down or slow; Raft repeats the message.
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
            // A snapshot over the size limit can never arrive.
            Err(error) if error.code == ErrorCode::OverLimit => {
                tracing::error!(%peer, %error, "the state is too large to send to a coordinator member");
            }
            Err(error) => tracing::debug!(%peer, %error, "raft messages were lost"),
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
        Err(_) => {
            Err(proto::Error::unavailable(format!("coordinator {peer} did not answer in time")))
        }
    }
}
