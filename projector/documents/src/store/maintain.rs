//! Maintains the buckets of a store: flushes their tables, merges fragments, and releases log
//! segments, while readers and writers continue.

use std::sync::atomic::Ordering;

use proto::Result;
use proto::lock::lock;
use proto::plant::{self, Plant};

use super::bucket_store::BucketStore;
use super::disk_store::{DiskStore, entry_of};

/// The number of maintenance rounds after which the ends of the logs are stored, unless that
/// round has found work. In an idle store this is about two seconds.
const NOTE_EVERY: u32 = 10;

/// The number of memtables in memory above which a commit flushes its bucket itself, because the
/// maintenance is too slow.
const MEMTABLES_MAX: usize = 3;

/// A commit flushes the largest bucket itself if all buckets together use more memory than this
/// number of halves of the memory limit. The maintenance may then be in a long merge.
const MEMORY_MAX_HALVES: usize = 3;

/// The memory of all buckets is checked each time that a fraction of the memory limit was logged:
/// the limit divided by this number.
const LOOKS: usize = 64;

/// The number of fragments above which merges do not wait for the end of a load.
const UNMERGED_MAX: usize = 128;

impl BucketStore {
    /// Writes the table's versions in memory to a fragment, and releases the segments of the log
    /// that are then not needed. Returns false if there was nothing to flush.
    pub fn flush(&self) -> Result<bool> {
        let _one_at_a_time = lock(&self.flushing);
        self.flush_now()
    }

    /// Flushes like [`Self::flush`]; the caller has locked `flushing`.
    pub(super) fn flush_now(&self) -> Result<bool> {
        // Order matters: the table has everything of this state, and perhaps more.
        let shown = self.shown_state()?;
        let covered = shown.log.from;
        let Some(change) = self.table.prepare_flush(|| self.retention())? else {
            return Ok(false);
        };
        change.install(|table| self.write_table(Some(shown), table))?;
        tracing::debug!(dir = %self.dir.display(), covered, "wrote documents to a fragment");
        self.release()?;
        Ok(true)
    }

    /// Merges fragments if that is worthwhile; returns false otherwise.
    fn merge(&self) -> Result<bool> {
        let Some(change) = self.table.prepare_merge(|| self.retention())? else {
            return Ok(false);
        };
        change.install(|table| self.write_table(None, table))?;
        tracing::debug!(dir = %self.dir.display(), "merged fragments of documents");
        Ok(true)
    }

    /// Does one piece of maintenance for the bucket; returns false if none is needed. A flush is
    /// needed when the log after the checkpoint exceeds `replay_bytes_max` bytes.
    pub fn maintain(&self, replay_bytes_max: u64) -> Result<bool> {
        // Records, purges and rewinds take room in the log, and none in memory.
        // Order matters: a writer that flushes moves both on.
        let covered = self.covered();
        let is_long = self.log.end() - covered > replay_bytes_max;
        if (is_long || self.table.needs_flush()) && self.flush()? {
            return Ok(true);
        }
        if !self.merges_wait() && self.table.needs_merge() && self.merge()? {
            return Ok(true);
        }
        if plant::is(Plant::CheckpointAhead) {
            self.write_checkpoint(self.log.state())?;
        }
        self.release()?;
        self.log.record_synced_end()?;
        Ok(false)
    }

    /// Returns true if merges wait for the end of a load.
    pub(super) fn merges_wait(&self) -> bool {
        self.is_loading.load(Ordering::Relaxed) && self.table.fragments() < UNMERGED_MAX
    }
}

impl DiskStore {
    /// Does one piece of maintenance for each bucket. Returns true if more may be needed.
    pub(super) fn maintain_all(&self) -> Result<bool> {
        // A bucket that cannot be written does not delay the others.
        let (mut has_worked, mut failed) = match self.flush_largest(self.options.memory_bytes_max) {
            Ok(flushed) => (flushed, None),
            Err(error) => (false, Some(error)),
        };
        for (id, bucket) in self.all() {
            match bucket.maintain(self.options.replay_bytes_max) {
                Ok(worked) => has_worked |= worked,
                Err(error) => failed = failed.or(Some(error.context(format!("bucket {id}")))),
            }
        }
        let is_due = self.idle_rounds.fetch_add(1, Ordering::Relaxed).is_multiple_of(NOTE_EVERY);
        if !has_worked && is_due {
            self.store_log_ends()?;
        }
        failed.map_or(Ok(has_worked), Err)
    }

    /// Returns the memory that the versions of all buckets use, in bytes.
    fn memory_bytes(&self) -> usize {
        self.all().iter().map(|(_, bucket)| bucket.table.memory_bytes()).sum()
    }

    /// Flushes the bucket that uses the most memory, if all buckets together use at least
    /// `bytes`.
    fn flush_largest(&self, bytes: usize) -> Result<bool> {
        if self.memory_bytes() < bytes {
            return Ok(false);
        }
        let buckets = self.all();
        let largest = buckets.iter().max_by_key(|(_, bucket)| bucket.table.memory_bytes());
        largest.map_or(Ok(false), |(id, bucket)| {
            bucket.flush().map_err(|error| error.context(format!("bucket {id}")))
        })
    }

    /// Flushes buckets in the call of a writer that has logged `bytes`, if the maintenance is too
    /// slow.
    pub(super) fn flush_if_needed(&self, bucket: &BucketStore, bytes: usize) -> Result<()> {
        self.flush_bucket_if_needed(bucket)?;
        let before = self.logged_bytes.fetch_add(bytes, Ordering::Relaxed);
        let look_bytes = (self.options.memory_bytes_max / LOOKS).max(1);
        match before / look_bytes == before.wrapping_add(bytes) / look_bytes {
            true => Ok(()),
            false => self.flush_largest_if_needed(),
        }
    }

    /// Flushes the largest buckets while all buckets together exceed their memory limit by half.
    fn flush_largest_if_needed(&self) -> Result<()> {
        let bound = self.options.memory_bytes_max / 2 * MEMORY_MAX_HALVES;
        loop {
            match self.flush_largest(bound) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                // The error is ignored as for a single bucket.
                Err(error) if self.memory_bytes() < 2 * bound => {
                    tracing::warn!(%error, "a flush of documents failed");
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Flushes a bucket if its memory exceeds [`MEMTABLES_MAX`] memtables.
    fn flush_bucket_if_needed(&self, bucket: &BucketStore) -> Result<()> {
        let bound = MEMTABLES_MAX * self.options.memtable_bytes;
        while bucket.table.memory_bytes() > bound {
            match bucket.flush() {
                Ok(_) => {}
                // The commit itself is valid. Memory has room for a while, and the maintenance tries again.
                Err(error) if bucket.table.memory_bytes() < 2 * bound => {
                    tracing::warn!(%error, "a flush of documents failed");
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Records durably, for each log, up to where it is synced. So later damage of its last
    /// groups is not mistaken for the effect of a crash.
    fn record_synced_ends(&self) -> Result<()> {
        let marked =
            self.all().iter().map(|(_, bucket)| bucket.log.record_synced_end()).collect::<Vec<_>>();
        self.store_log_ends()?;
        marked.into_iter().collect()
    }

    /// Stores the end of each bucket's log in the manifest of the source.
    fn store_log_ends(&self) -> Result<()> {
        self.remove_left();
        let mut manifest = lock(&self.manifest);
        let mut next = manifest.contents.clone();
        for (id, bucket) in self.all() {
            if let Some(entry) = next.buckets.get_mut(&id)
                && entry.end < bucket.log.state().from
            {
                *entry = entry_of(&bucket, entry.directory);
            }
        }
        if next != manifest.contents {
            manifest.write(&*self.env.fs, next)?;
        }
        Ok(())
    }
}

impl Drop for DiskStore {
    fn drop(&mut self) {
        if let Err(error) = self.record_synced_ends() {
            tracing::debug!(%error, "the documents are closed without a last mark");
        }
    }
}
