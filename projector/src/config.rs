//! Settings of a projector: plain data. `Service::start` receives the components.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proto::client::NodeIdentity;
use proto::model::node::NodeInfo;
use proto::rpc::api::{PRODUCER_KEPT_MS, TRANSACTION_KEPT_MS};
use proto::rpc::mutation::FRAMES_AHEAD_BYTES_MAX;

/// Memory of all open transactions by default.
const TRANSACTIONS_BYTES_MAX: usize = 256 << 20;

/// A transaction is one record of the log, which has at most 1 GiB.
const TRANSACTION_BYTES_MAX: usize = 768 << 20;

/// The limit of a copy's step by default, in bytes.
const COPY_STEP_BYTES: usize = 256 << 20;

/// A smaller commit is cheaper as one table in memory: each index flushes for a large one, and writes a few files.
const LARGE_COMMIT_CHANGES: u64 = 100_001;

/// The part of the memory of all transactions that one transaction may use: a quarter is left to the others.
fn share_of_one(bytes: usize) -> usize {
    (bytes / 4 * 3).min(TRANSACTION_BYTES_MAX)
}

/// The settings of a projector.
#[derive(Clone)]
pub struct Config {
    /// The projector's own registration.
    pub node: NodeInfo,
    /// The owner of the data directory, and its cluster; `None` for documents without a directory, in tests.
    pub identity: Option<Arc<NodeIdentity>>,
    /// The size limit of a document.
    pub document_bytes_max: usize,
    /// The limit of waiting writes, in bytes of documents.
    pub write_queue_bytes_max: usize,
    /// The limit of a bucket's mutations that no stability timestamp covers yet, in bytes. Writers wait above it.
    pub unpublished_bytes_max: usize,
    /// The limit of the changes of one transaction, in bytes: its commit is one request of the log.
    pub transaction_bytes_max: usize,
    /// The limit of the changes of all open transactions, in bytes: they are in memory.
    pub transactions_bytes_max: usize,
    /// Documents that a large commit changes at least: its changes enter the indexes from where they wait as bodies.
    pub large_commit_changes: u64,
    /// The limit of open transactions of a bucket.
    pub transactions_max: usize,
    /// The time after which a transaction without any call of its session is rolled back.
    pub transaction_kept: Duration,
    /// The time after its last mutation when an open transaction of a producer is rolled back.
    pub producer_kept: Duration,
    /// The size of a bucket's head: the newest mutations, kept in memory for its streams.
    pub head_bytes_max: usize,
    /// The limit of the data that a copy stores in one step, in bytes: it is in memory meanwhile. For a copy in sync these are the groups
    /// that wait for it, each of which may be one long request, or the commit of a transaction.
    pub copy_step_bytes_max: usize,
    /// The directory below which the files of versions are; `None` if this projector loads none.
    pub files_dir: Option<PathBuf>,
    /// The approximate size of a message with groups for another copy. A group of more than twice as much is sent in pieces.
    pub copy_message_bytes: usize,
    /// The size of a bucket's change log, in bytes of its entries. The oldest entries are purged above it.
    pub log_bytes_max: u64,
    /// The limit of a stream's messages that wait for their reader, in bytes. A longer message waits alone.
    pub stream_bytes_max: usize,
    /// Maximum bytes of frames that a stream sends beyond its newest stability timestamp.
    pub frames_ahead_bytes_max: usize,
}

impl Config {
    /// The default settings.
    pub fn new(node: NodeInfo) -> Self {
        Self {
            node,
            identity: None,
            document_bytes_max: proto::value::DOCUMENT_BYTES_MAX,
            // A dozen groups: enough to keep the log busy, and small compared to the store's own caches.
            write_queue_bytes_max: 64 << 20,
            // Seconds of bulk load without a leading coordinator, and no more than an indexer can collect for one
            // epoch.
            unpublished_bytes_max: 128 << 20,
            transaction_bytes_max: share_of_one(TRANSACTIONS_BYTES_MAX),
            transactions_bytes_max: TRANSACTIONS_BYTES_MAX,
            large_commit_changes: LARGE_COMMIT_CHANGES,
            // As many as there may be sessions.
            transactions_max: 1000,
            transaction_kept: Duration::from_millis(TRANSACTION_KEPT_MS),
            producer_kept: Duration::from_millis(PRODUCER_KEPT_MS),
            // A second of bulk load, so that a stream that stalls for a moment stays with the head.
            head_bytes_max: 64 << 20,
            copy_step_bytes_max: COPY_STEP_BYTES,
            files_dir: None,
            copy_message_bytes: 4 << 20,
            // Minutes of bulk load or days of light use. A copy that was away for less continues where it was.
            log_bytes_max: 1 << 30,
            // Two messages of full length: one in flight, one ready.
            stream_bytes_max: 8 << 20,
            frames_ahead_bytes_max: FRAMES_AHEAD_BYTES_MAX,
        }
    }

    /// Sets the memory of all open transactions.
    pub fn set_transactions_bytes(&mut self, bytes: usize) {
        self.transaction_bytes_max = share_of_one(bytes);
        self.transactions_bytes_max = bytes;
        // The largest commit of a leader with the same setting.
        self.copy_step_bytes_max = bytes.max(COPY_STEP_BYTES);
    }
}
