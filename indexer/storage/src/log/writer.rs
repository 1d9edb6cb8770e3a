//! The one task that writes the log.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use proto::Error;

use crate::log::lsn::Lsn;
use crate::log::options::SyncPolicy;
use crate::log::shared::Shared;
use crate::log::tail::{Group, Stop};

/// A group's buffer is kept for the next one up to this size; a larger one was a burst.
const KEPT_BUFFER_BYTES_MAX: usize = 8 << 20;

/// How often the disk is tried again while it is full.
const FULL_RETRY: Duration = Duration::from_millis(100);

/// The writer's own.
pub(super) struct Writer {
    shared: Arc<Shared>,
    policy: SyncPolicy,
    /// The buffer of the last group, empty.
    spare: Vec<u8>,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, policy: SyncPolicy) -> Self {
        Self { shared, policy, spare: Vec::new() }
    }

    /// Writes groups until one fails, or the log is closed.
    pub(super) async fn run(mut self) {
        loop {
            let Some(group) = self.next_group() else {
                self.shared.wake_writer.notified().await;
                continue;
            };
            self.shared.wake_appenders.notify_waiters();
            match self.write(group).await {
                Ok((Some(synced), bytes)) => self.finish(synced, bytes),
                Ok((None, _)) => return,
                Err(error) => return self.fail(error),
            }
        }
    }

    /// Writes a group; while the disk is full, again and again. Whoever appends waits meanwhile.
    async fn write(&self, mut group: Group) -> io::Result<(Option<Lsn>, Vec<u8>)> {
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
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::Full(error)) => {
                    group = back;
                    if !std::mem::replace(&mut was_full, true) {
                        let dir = self.shared.dir.display();
                        tracing::warn!(%error, %dir, "the commit log waits for room on the disk");
                    }
                    tokio::time::sleep(FULL_RETRY).await;
                }
            }
        }
    }

    /// What there is to do; `None` if nothing.
    fn next_group(&mut self) -> Option<Group> {
        let mut pending = self.shared.pending();
        if !pending.bytes.is_empty() {
            let bytes = std::mem::replace(&mut pending.bytes, std::mem::take(&mut self.spare));
            let sync = self.policy == SyncPolicy::EachGroup || pending.wanted > pending.durable;
            return Some(Group { bytes, sync, rolls: true });
        }
        if pending.wanted.min(pending.end) > pending.durable {
            return Some(Group { bytes: Vec::new(), sync: true, rolls: false });
        }
        if pending.vouched < pending.data_end && pending.data_end <= pending.durable {
            pending.put_mark();
            let bytes = std::mem::take(&mut pending.bytes);
            return Some(Group { bytes, sync: false, rolls: false });
        }
        None
    }

    fn finish(&mut self, synced: Lsn, mut bytes: Vec<u8>) {
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

    fn fail(&self, error: io::Error) {
        let error = Error::from(error)
            .context(format!("writing the commit log in {}", self.shared.dir.display()));
        tracing::error!(%error, "the commit log stops; no epoch is applied before the process is started again");
        self.shared.durable.send_modify(|durable| durable.failed = Some(error));
        self.shared.wake_appenders.notify_waiters();
    }
}
