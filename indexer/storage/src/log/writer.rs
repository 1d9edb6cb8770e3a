//! The task that writes the log.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use proto::Error;

use crate::log::lsn::Lsn;
use crate::log::options::SyncPolicy;
use crate::log::shared::LogState;
use crate::log::tail::{WriteFailure, WriteGroup};

/// Largest buffer, in bytes, that is reused for the next group of records. A larger one was needed
/// for a burst only and is freed.
const KEPT_BUFFER_BYTES_MAX: usize = 8 << 20;

/// Interval of retries while the disk is full.
const FULL_RETRY: Duration = Duration::from_millis(100);

/// The task that writes and syncs the log.
pub(super) struct LogWriter {
    shared: Arc<LogState>,
    policy: SyncPolicy,
    /// Empty buffer of the last group of records, for reuse.
    spare: Vec<u8>,
}

impl LogWriter {
    pub(super) fn new(shared: Arc<LogState>, policy: SyncPolicy) -> Self {
        Self { shared, policy, spare: Vec::new() }
    }

    /// Writes groups of records, and never returns. After a failed write or after the log is
    /// closed, it stays idle; all waiters get the error of a failed write.
    pub(super) async fn run(mut self) -> Infallible {
        if let Err(error) = self.write_groups().await {
            self.publish_error(error);
        }
        pending().await
    }

    /// Writes groups of records until a write fails or the log is closed.
    async fn write_groups(&mut self) -> io::Result<()> {
        loop {
            let Some(group) = self.next_group() else {
                self.shared.wake_writer.notified().await;
                continue;
            };
            self.shared.wake_appenders.notify_waiters();
            match self.write(group).await? {
                (Some(synced), bytes) => self.publish_durable(synced, bytes),
                (None, _) => return Ok(()),
            }
        }
    }

    /// Writes a group of records, and tries again while the disk is full; appenders wait
    /// meanwhile. Returns the group's buffer, and the LSN up to which the log is durable; `None`
    /// if the log is closed.
    async fn write(&self, mut group: WriteGroup) -> io::Result<(Option<Lsn>, Vec<u8>)> {
        let mut was_full = false;
        loop {
            let shared = Arc::clone(&self.shared);
            let work = move || {
                let written =
                    shared.tail().write(&group, &*shared.env.fs, &shared.dir, &shared.segments);
                (written, group)
            };
            let (written, back) = self.shared.env.blocking(work).await;
            match written {
                Ok(synced) => return Ok((synced, back.bytes)),
                Err(WriteFailure::Failed(error)) => return Err(error),
                Err(WriteFailure::Full(error)) => {
                    group = back;
                    if !std::mem::replace(&mut was_full, true) {
                        let dir = self.shared.dir.display();
                        tracing::warn!(%error, %dir, "the disk is full: the commit log waits and retries");
                    }
                    tokio::time::sleep(FULL_RETRY).await;
                }
            }
        }
    }

    /// Takes all pending records as the next group; `None` if no record is pending and no caller
    /// waits for a sync.
    fn next_group(&mut self) -> Option<WriteGroup> {
        let mut pending = self.shared.pending();
        if !pending.bytes.is_empty() {
            let bytes = std::mem::replace(&mut pending.bytes, std::mem::take(&mut self.spare));
            let sync = self.policy == SyncPolicy::EachGroup || pending.wanted > pending.durable;
            return Some(WriteGroup { bytes, sync, rolls: true });
        }
        if pending.wanted.min(pending.end) > pending.durable {
            return Some(WriteGroup { bytes: Vec::new(), sync: true, rolls: false });
        }
        if pending.vouched < pending.data_end && pending.data_end <= pending.durable {
            pending.put_mark();
            let bytes = std::mem::take(&mut pending.bytes);
            return Some(WriteGroup { bytes, sync: false, rolls: false });
        }
        None
    }

    /// Publishes the LSN up to which the log is durable, and keeps the buffer for reuse.
    fn publish_durable(&mut self, synced: Lsn, mut bytes: Vec<u8>) {
        if bytes.capacity() > self.spare.capacity() && bytes.capacity() <= KEPT_BUFFER_BYTES_MAX {
            bytes.clear();
            self.spare = bytes;
        }
        let news = {
            let mut pending = self.shared.pending();
            let news = synced > pending.durable;
            pending.durable = synced;
            news
        };
        if news {
            self.shared.durable.send_modify(|durable| durable.lsn = synced);
        }
    }

    /// Publishes the error of a failed write or sync to all waiters.
    fn publish_error(&self, error: io::Error) {
        let error = Error::from(error)
            .context(format!("writing the commit log in {}", self.shared.dir.display()));
        tracing::error!(%error, "the commit log has stopped: no epoch is applied until the process is restarted");
        self.shared.durable.send_modify(|durable| durable.failed = Some(error));
        self.shared.wake_appenders.notify_waiters();
    }
}
