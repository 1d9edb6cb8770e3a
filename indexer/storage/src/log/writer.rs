//! The one task that writes the log.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proto::Error;
use proto::env::{File, FileSystem, OpenMode};

use super::segment::{Segments, begin_segment};
use super::{Lsn, Shared, SyncPolicy};

/// A group's buffer is kept for the next one up to this size; a larger one was a burst.
const KEPT_BUFFER_BYTES_MAX: usize = 8 << 20;

/// How often the disk is tried again while it is full.
const FULL_RETRY: Duration = Duration::from_millis(100);

/// Why a group was not written.
enum Stop {
    /// The disk was full before anything was synced: the same write may be done again.
    Full(io::Error),
    /// All else. What a disk keeps after a failed sync is not known.
    Failed(io::Error),
}

impl Stop {
    fn of_write(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(error),
            _ => Self::Failed(error),
        }
    }
}

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
    /// The next segment was begun and not finished.
    rolling: bool,
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

impl Tail {
    /// The last segment, synced up to its end.
    pub(super) fn new((file, base): (Arc<dyn File>, Lsn), segment_bytes: u64, end: Lsn) -> Self {
        Self { file, segment_bytes, base, written: end, synced: end, closed: false, rolling: false }
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
    ) -> Result<Option<Lsn>, Stop> {
        if self.closed {
            return Ok(None);
        }
        if group.rolls && self.written - self.base >= self.segment_bytes {
            self.roll(fs, dir, segments)?;
        }
        if !group.bytes.is_empty() {
            let header_bytes = super::format::SEGMENT_HEADER_BYTES as u64;
            let at = self.written - self.base + header_bytes;
            self.file.write_all_at(&group.bytes, at).map_err(Stop::of_write)?;
            self.written += group.bytes.len() as u64;
        }
        if group.sync {
            self.sync().map_err(Stop::Failed)?;
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
    fn roll(&mut self, fs: &dyn FileSystem, dir: &Path, segments: &Segments) -> Result<(), Stop> {
        self.sync().map_err(Stop::Failed)?;
        // One that a full disk left begun holds nothing and is begun anew.
        let mode = if self.rolling { OpenMode::Create } else { OpenMode::CreateNew };
        self.rolling = true;
        self.file = begin_segment(fs, dir, self.written, mode).map_err(Stop::of_write)?;
        self.rolling = false;
        self.base = self.written;
        segments.push(self.base);
        Ok(())
    }
}
