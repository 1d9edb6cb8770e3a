//! Sends Raft's messages to the other members, through the directory.
//!
//! Each member has a queue, bounded in messages and in bytes, and one task that sends all waiting messages in one
//! call. A full queue or a failed call loses messages, which Raft tolerates. Nothing is retried here, because a late
//! message is useless.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_channel::{Receiver, Sender};
use bytes::Bytes;
use proto::env::{Env, Task};
use proto::flow::{Budget, Reservation};
use proto::lock::lock;
use proto::model::ids::NodeId;
use proto::rpc::api::Directory;
use proto::{ErrorCode, Result};

use crate::raft::members::MEMBERS_MAX;
use crate::raft::wire::QUEUE_BYTES_MAX;
use crate::raft::{PeerTransport, RaftMessage};

/// The limit of messages that wait for one other member.
const QUEUE_MAX: usize = 512;
/// The size limit of one call, in bytes, unless a single message is larger.
const CALL_BYTES_MAX: usize = 1 << 20;
/// The timeout of a call. A dead connection must not delay later messages.
const CALL_TIMEOUT: Duration = Duration::from_secs(1);
/// The timeout of a call with a snapshot.
const SNAPSHOT_CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The limit of queues: one for each member, and as many for former members.
const QUEUES_MAX: usize = 2 * MEMBERS_MAX;

/// The queues of messages to the other members. A queue, with its sending task, is created with
/// the first message. A task that is cancelled loses the waiting messages.
pub struct Peers {
    env: Env,
    directory: Arc<dyn Directory>,
    queues: Mutex<BTreeMap<NodeId, Queue>>,
}

/// The queue of messages to one member.
struct Queue {
    waiting: Sender<QueuedMessage>,
    bytes: Budget,
    _task: Task,
}

impl Queue {
    /// Returns true if no message waits and no call is in progress.
    fn is_idle(&self) -> bool {
        self.bytes.free_bytes() >= QUEUE_BYTES_MAX
    }
}

/// A waiting message, and the bytes of the queue that are reserved for it.
type QueuedMessage = (RaftMessage, Reservation);

impl Peers {
    /// Creates the object without queues: each is created with its first message.
    pub fn new(env: &Env, directory: &Arc<dyn Directory>) -> Arc<Self> {
        let (env, directory) = (env.clone(), Arc::clone(directory));
        Arc::new(Self { env, directory, queues: Mutex::default() })
    }

    /// Creates the queue to a member, and starts its task.
    fn open(&self, peer: NodeId) -> Queue {
        let (waiting, receiver) = async_channel::bounded(QUEUE_MAX);
        let directory = Arc::clone(&self.directory);
        // Raft repeats the messages that a panic loses.
        let send = move || send_all(Arc::clone(&directory), peer, receiver.clone());
        let task = self.env.spawn_restarted("coordinator-peer", send);
        Queue { waiting, bytes: Budget::new(QUEUE_BYTES_MAX), _task: task }
    }
}

impl PeerTransport for Peers {
    fn send(&self, to: NodeId, message: RaftMessage) {
        let mut queues = lock(&self.queues);
        if !queues.contains_key(&to) {
            // An unknown sender gets no answer, since its address is unknown.
            if self.directory.coordinator_member(to).is_err() {
                return;
            }
            if queues.len() >= QUEUES_MAX {
                // The queues of former members are idle.
                queues.retain(|_, queue| !queue.is_idle());
            }
            if queues.len() >= QUEUES_MAX {
                return;
            }
        }
        let queue = queues.entry(to).or_insert_with(|| self.open(to));
        // A full queue means that the member is down or slow; Raft repeats the message.
        if let Some(room) = queue.bytes.try_reserve(message.bytes()) {
            let _ = queue.waiting.try_send((message, room));
        }
    }
}

/// Sends the waiting messages to a member, again and again.
async fn send_all(directory: Arc<dyn Directory>, peer: NodeId, queue: Receiver<QueuedMessage>) {
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
    queue: &Receiver<QueuedMessage>,
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
