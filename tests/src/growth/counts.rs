//! The counters of messages and bytes by sender, receiver and kind.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use proto::lock::lock;
use serde::{Deserialize, Serialize};

/// The role of a sender or a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Party {
    /// The coordinator that leads.
    Leader,
    /// A coordinator that does not lead.
    Follower,
    /// The role of a projector.
    Projector,
    /// The role of an indexer.
    Indexer,
    /// A router, or the operator that uses it.
    Router,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Heartbeats of nodes.
    Heartbeat,
    /// The answer to a heartbeat.
    HeartbeatReply,
    /// SYNC reports of projectors.
    Sync,
    /// The answer to SYNC.
    SyncReply,
    /// The beginning of a watch.
    Watch,
    /// A catalog of a watch.
    Catalog,
    /// Stability timestamps of a watch.
    Epochs,
    /// The users of a watch.
    Users,
    /// Entries of the log.
    RaftAppend,
    /// Other messages of Raft.
    RaftOther,
    /// A command or another request.
    Request,
    /// The answer to a message.
    Reply,
    /// A request for an epoch that covers a cut.
    Covering,
    /// The answer to a request for a covering epoch.
    CoveringReply,
    /// A stability timestamp in a maintenance stream.
    EpochInStream,
    /// A report of applied epochs.
    Applied,
}

/// The messages of one kind from one role to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// The role of the senders.
    pub from: Party,
    /// The role of the receivers.
    pub to: Party,
    /// The kind of the messages.
    pub kind: Kind,
    /// The number of messages.
    pub messages: u64,
    /// The encoded size of the messages, in bytes.
    pub bytes: u64,
}

/// The messages since the last [`Counts::take`].
#[derive(Debug, Default)]
pub struct Counts(Mutex<BTreeMap<Route, (u64, u64)>>);

/// The sender, the receiver and the kind of a message.
type Route = (Party, Party, Kind);

impl Counts {
    /// Counts a message.
    pub fn add(&self, from: Party, to: Party, kind: Kind, bytes: u64) {
        let mut counts = lock(&self.0);
        let (messages, sum) = counts.entry((from, to, kind)).or_default();
        (*messages, *sum) = (*messages + 1, *sum + bytes);
    }

    /// Returns the flows, and resets them.
    pub fn take(&self) -> Vec<Flow> {
        let counts = std::mem::take(&mut *lock(&self.0));
        let flow = |((from, to, kind), (messages, bytes))| Flow { from, to, kind, messages, bytes };
        counts.into_iter().map(flow).collect()
    }
}

/// The log entries that the leader sends, counted once for each follower.
#[derive(Debug, Default)]
pub struct LogCount {
    entries: AtomicU64,
    bytes: AtomicU64,
}

impl LogCount {
    /// Counts an entry that is sent to one follower.
    pub fn add(&self, data: &[u8]) {
        self.entries.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(data.len() as u64, Ordering::Relaxed);
    }

    /// Returns the number of entries and their size in bytes, divided by the number of followers,
    /// and resets both.
    pub fn take(&self, followers: u64) -> (u64, u64) {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed) / followers;
        (take(&self.entries), take(&self.bytes))
    }
}
