//! The settings of a projector, as plain data. The clock, the store and the network are not
//! settings: `Service::start` receives them separately.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proto::client::NodeIdentity;
use proto::model::node::NodeInfo;
use proto::rpc::api::{PRODUCER_KEPT_MS, TRANSACTION_KEPT_MS};
use proto::rpc::mutation::FRAMES_AHEAD_BYTES_MAX;

/// Default memory limit of all open transactions together, in bytes.
const TRANSACTIONS_BYTES_MAX: usize = 256 << 20;

/// Default memory limit of one transaction, in bytes. A commit is stored as one record of the
/// log, and a record has at most 1 GiB.
const TRANSACTION_BYTES_MAX: usize = 768 << 20;

/// Default limit in bytes of the data that a follower, which keeps a copy of a bucket, stores in
/// one step.
const COPY_STEP_BYTES: usize = 256 << 20;

/// The smallest number of changes of a large commit. A smaller commit is cheaper when it is
/// applied as one table in memory: a large commit makes each index flush, and write a few files.
const LARGE_COMMIT_CHANGES: u64 = 100_001;

/// Returns the memory that one transaction may use, if all transactions together may use `bytes`:
/// at most three quarters, so that a quarter is left for the others.
fn bytes_of_one_transaction(bytes: usize) -> usize {
    (bytes / 4 * 3).min(TRANSACTION_BYTES_MAX)
}

/// The settings of a projector.
#[derive(Clone)]
pub struct Config {
    /// The projector's node id and addresses.
    pub node: NodeInfo,
    /// The identity that the data directory belongs to: a node id and a cluster. `None` for a
    /// store without a directory, in tests.
    pub identity: Option<Arc<NodeIdentity>>,
    /// The size limit of a document in bytes.
    pub document_bytes_max: usize,
    /// The limit of the writes that wait in the queue, in bytes of documents.
    pub write_queue_bytes_max: usize,
    /// The limit in bytes of a bucket's mutations that no stability timestamp covers yet. Above
    /// the limit, writers wait.
    pub unpublished_bytes_max: usize,
    /// The limit in bytes of the changes of one transaction. It exists because a commit is stored
    /// as one record of the log.
    pub transaction_bytes_max: usize,
    /// The limit in bytes of the changes of all open transactions; these changes are kept in
    /// memory.
    pub transactions_bytes_max: usize,
    /// The smallest number of changed documents of a large commit. Indexers receive the changes
    /// of such a commit in advance, as bodies, and then apply them at once.
    pub large_commit_changes: u64,
    /// The maximum number of open transactions of a bucket.
    pub transactions_max: usize,
    /// The time without a call from its session after which a transaction is rolled back.
    pub transaction_kept: Duration,
    /// The time without a new mutation after which a producer's open transaction is rolled back.
    pub producer_kept: Duration,
    /// The size limit in bytes of a bucket's head: the newest mutations, which are kept in memory
    /// for the bucket's streams.
    pub head_bytes_max: usize,
    /// The limit in bytes of the data that a copy of a bucket stores in one step; the data is in
    /// memory until it is stored. A copy in sync stores all groups that wait for it in one step,
    /// and a group may be as long as a request or a transaction's commit.
    pub copy_step_bytes_max: usize,
    /// The directory with the files from which versions of data sets are loaded; `None` if this
    /// projector loads no versions.
    pub files_dir: Option<PathBuf>,
    /// The approximate size in bytes of a message that carries groups of mutations to another
    /// copy. A group of more than twice this size is split over several messages.
    pub copy_message_bytes: usize,
    /// The limit of a bucket's change log, in bytes of its entries. The oldest entries are purged
    /// above it.
    pub log_bytes_max: u64,
    /// The limit in bytes of a stream's messages that wait for the reader. A message that is
    /// longer than the limit is sent when no other message waits.
    pub stream_bytes_max: usize,
    /// The limit in bytes of the frames that a stream sends beyond its newest stability
    /// timestamp.
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
            transaction_bytes_max: bytes_of_one_transaction(TRANSACTIONS_BYTES_MAX),
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

    /// Sets the memory limit of all open transactions, and derives the limit of one transaction
    /// from it.
    pub fn set_transactions_bytes(&mut self, bytes: usize) {
        self.transaction_bytes_max = bytes_of_one_transaction(bytes);
        self.transactions_bytes_max = bytes;
        // The largest commit of a leader with the same setting.
        self.copy_step_bytes_max = bytes.max(COPY_STEP_BYTES);
    }
}
