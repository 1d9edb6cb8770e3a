//! Settings of a projector; plain data. What it works with is handed to `Service::start`.

use proto::model::node::NodeInfo;

/// How a projector is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// Itself, as it registers.
    pub node: NodeInfo,
    /// The longest document.
    pub document_bytes_max: usize,
    /// Documents that writers may have waiting for the log, all together.
    pub write_queue_bytes_max: usize,
    /// Mutations of a bucket that no stability timestamp covers yet, in bytes; writers wait above it.
    pub unpublished_bytes_max: usize,
    /// The newest mutations of a bucket that are kept in memory for its streams.
    pub head_bytes_max: usize,
    /// What is kept of a bucket's change log, in bytes of its entries; the oldest go above it.
    pub log_bytes_max: u64,
    /// Messages of a stream that wait for their reader, in bytes; one that is longer waits alone.
    pub stream_bytes_max: usize,
    /// How far a stream runs ahead of the newest stability timestamp that it has sent.
    pub frames_ahead_bytes_max: usize,
}

impl Config {
    /// The usual settings.
    pub fn new(node: NodeInfo) -> Self {
        Self {
            node,
            document_bytes_max: proto::value::DOCUMENT_BYTES_MAX,
            // A dozen groups: enough to keep the log busy, little beside the store's own caches.
            write_queue_bytes_max: 64 << 20,
            // Seconds of bulk load without a leading coordinator, and no more than an indexer can gather for one epoch.
            unpublished_bytes_max: 128 << 20,
            // A second of bulk load, so that a stream which stalls for a moment stays with the head.
            head_bytes_max: 64 << 20,
            // Minutes of bulk load, days of light use: for so long a copy that was away goes on from where it was.
            log_bytes_max: 1 << 30,
            // Two messages of full length: one on its way, one ready.
            stream_bytes_max: 8 << 20,
            // A tick of 20 ms at full speed is below 1 MiB; this rides out a stalled promotion or two.
            frames_ahead_bytes_max: 8 << 20,
        }
    }
}
