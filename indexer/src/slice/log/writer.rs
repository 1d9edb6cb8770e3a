//! The one task that writes the log.

use std::io;
use std::path::Path;
use std::sync::Arc;

use proto::Error;
use proto::env::{File, FileSystem, OpenMode};

use super::segment::{Segments, begin_segment};
use super::{Lsn, Shared, SyncPolicy};

/// A group's buffer is kept for the next one up to this size; a larger one was a burst.
const KEPT_BUFFER_BYTES_MAX: usize = 8 << 20;

/// The last segment, as the writer has it.
pub(super) struct Tail {
    file: Arc<dyn File>,
    /// The segment's size at which it is closed.
    segment_bytes: u64,
    base: Lsn,
    /// Where the written records end.
    written: Lsn,
    /// Where the synced ones end.
    synced: Lsn,
    closed: bool,
}

/// What is written at once.
struct Group {
    bytes: Vec<u8>,
    sync: bool,
    /// Does it begin a new segment, if this one is full?
    rolls: bool,
}

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
            let shared = Arc::clone(&self.shared);
            let written = self.shared.env.blocking(move || {
                let synced =
                    shared.tail().write(&group, &*shared.env.fs, &shared.dir, &shared.segments);
                synced.map(|synced| (synced, group.bytes))
            });
            match written.await {
                Ok((Some(synced), bytes)) => self.finish(synced, bytes),
                Ok((None, _)) => return,
                Err(error) => return self.fail(error),
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
        tracing::error!(%error, "the commit log stops; the node serves what it has");
        self.shared.durable.send_modify(|durable| durable.failed = Some(error));
        self.shared.wake_appenders.notify_waiters();
    }
}

impl Tail {
    /// The last segment, synced up to its end.
    pub(super) fn new((file, base): (Arc<dyn File>, Lsn), segment_bytes: u64, end: Lsn) -> Self {
        Self { file, segment_bytes, base, written: end, synced: end, closed: false }
    }

    /// Nothing is written from now on.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Writes a group, in a new segment if this one is full, and says how far the log is durable;
    /// `None` if it is closed.
    fn write(
        &mut self,
        group: &Group,
        fs: &dyn FileSystem,
        dir: &Path,
        segments: &Segments,
    ) -> io::Result<Option<Lsn>> {
        if self.closed {
            return Ok(None);
        }
        if group.rolls && self.written - self.base >= self.segment_bytes {
            self.roll(fs, dir, segments)?;
        }
        if !group.bytes.is_empty() {
            let header_bytes = super::format::SEGMENT_HEADER_BYTES as u64;
            self.file.write_all_at(&group.bytes, self.written - self.base + header_bytes)?;
            self.written += group.bytes.len() as u64;
        }
        if group.sync {
            self.sync()?;
        }
        Ok(Some(self.synced))
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.synced < self.written {
            self.file.sync()?;
            self.synced = self.written;
        }
        Ok(())
    }

    /// Begins the next segment. All of this one is synced before: only the last can be torn.
    fn roll(&mut self, fs: &dyn FileSystem, dir: &Path, segments: &Segments) -> io::Result<()> {
        self.sync()?;
        self.file = begin_segment(fs, dir, self.written, OpenMode::CreateNew)?;
        self.base = self.written;
        segments.push(self.base);
        Ok(())
    }
}
