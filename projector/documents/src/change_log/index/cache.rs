//! A cache for the indexes of closed log segments, which contains the most recently used ones.
//!
//! All logs of a store share one cache, so that its size does not grow with the number of logs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proto::lock::lock;
use proto::model::ids::VbucketId;
use storage::log::Lsn;

use super::segment::RunEntry;

/// The index entries of the runs (groups of mutations) of one vbucket in one segment.
pub(in crate::change_log) type Runs = Arc<[RunEntry]>;

/// The number by which a cache distinguishes its logs.
type LogNumber = u64;
type Key = (LogNumber, Lsn, VbucketId);

/// A cache of segment indexes with a limit in bytes. The least recently used index is removed
/// first.
pub struct IndexCache {
    bytes_max: usize,
    contents: Mutex<CacheContents>,
}

#[derive(Default)]
struct CacheContents {
    bytes: usize,
    /// The number of uses so far, which serves as a clock.
    now: u64,
    runs: BTreeMap<Key, (Runs, u64)>,
    by_use: BTreeMap<u64, Key>,
    /// The number of the last log that began to use the cache.
    logs: LogNumber,
}

/// The cached indexes of one log. They are removed from the cache when this value is dropped.
pub(super) struct LogIndexes {
    cache: Arc<IndexCache>,
    log: LogNumber,
}

impl IndexCache {
    /// Creates a cache of at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { bytes_max, contents: Mutex::default() })
    }

    /// Registers a log that is being opened, and returns its part of the cache.
    pub(super) fn of_new_log(self: &Arc<Self>) -> LogIndexes {
        let mut contents = lock(&self.contents);
        contents.logs += 1;
        LogIndexes { cache: Arc::clone(self), log: contents.logs }
    }
}

impl LogIndexes {
    pub(super) fn get(&self, base: Lsn, vbucket: VbucketId) -> Option<Runs> {
        let mut contents = lock(&self.cache.contents);
        let CacheContents { now, runs, by_use, .. } = &mut *contents;
        *now += 1;
        let key = (self.log, base, vbucket);
        let (runs, used) = runs.get_mut(&key)?;
        by_use.remove(used);
        *used = *now;
        by_use.insert(*now, key);
        Some(Arc::clone(runs))
    }

    /// Adds the index entries of a vbucket in the segment that begins at `base`. Does nothing if
    /// they are larger than the whole cache.
    pub(super) fn put(&self, base: Lsn, vbucket: VbucketId, runs: &Runs) {
        let mut contents = lock(&self.cache.contents);
        let (key, bytes_max) = ((self.log, base, vbucket), self.cache.bytes_max);
        if bytes_of(runs) > bytes_max || contents.runs.contains_key(&key) {
            return;
        }
        contents.now += 1;
        contents.bytes += bytes_of(runs);
        let now = contents.now;
        contents.runs.insert(key, (Arc::clone(runs), now));
        contents.by_use.insert(now, key);
        while contents.bytes > bytes_max {
            let Some((_, oldest)) = contents.by_use.pop_first() else { return };
            contents.remove(oldest);
        }
    }

    /// Removes the indexes of all segments of the log that begin before `first`.
    pub(super) fn forget_before(&self, first: Lsn) {
        let mut contents = lock(&self.cache.contents);
        let behind = (self.log, first, VbucketId(0));
        let gone = contents.runs.range((self.log, 0, VbucketId(0))..behind);
        let gone: Vec<Key> = gone.map(|(key, _)| *key).collect();
        gone.into_iter().for_each(|key| contents.remove(key));
    }
}

impl Drop for LogIndexes {
    fn drop(&mut self) {
        self.forget_before(Lsn::MAX);
    }
}

impl CacheContents {
    fn remove(&mut self, key: Key) {
        if let Some((runs, used)) = self.runs.remove(&key) {
            self.bytes -= bytes_of(&runs);
            self.by_use.remove(&used);
        }
    }
}

impl std::fmt::Debug for IndexCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IndexCache({} bytes)", self.bytes_max)
    }
}

/// Returns the memory that the index entries take in the cache, in bytes, with the entries of
/// both maps.
fn bytes_of(runs: &Runs) -> usize {
    std::mem::size_of_val(&**runs) + 128
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::model::ids::Seqno;

    const VBUCKET: VbucketId = VbucketId(0);

    fn ten_runs() -> Runs {
        let run = RunEntry { first: Seqno(1), bytes_before: 0, lsn: 0, item_bytes: 1, count: 1 };
        vec![run; 10].into()
    }

    fn counts(cache: &IndexCache) -> (usize, usize, usize) {
        let contents = lock(&cache.contents);
        (contents.runs.len(), contents.by_use.len(), contents.bytes)
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_what_is_used() {
        let runs = ten_runs();
        let all = IndexCache::new(3 * bytes_of(&runs));
        let cache = all.of_new_log();
        for base in 0..3 {
            cache.put(base, VBUCKET, &runs);
        }
        assert!(cache.get(0, VBUCKET).is_some());
        cache.put(3, VBUCKET, &runs);
        assert!(cache.get(1, VBUCKET).is_none(), "it was not used for the longest time");
        assert!(cache.get(0, VBUCKET).is_some());
        assert_eq!(counts(&all), (3, 3, 3 * bytes_of(&runs)));
        cache.forget_before(3);
        assert_eq!(counts(&all), (1, 1, bytes_of(&runs)));
    }

    #[test]
    fn one_bound_for_all_logs_and_closing_removes_entries() {
        let runs = ten_runs();
        let all = IndexCache::new(4 * bytes_of(&runs));
        let logs: Vec<_> = (0..10).map(|_| all.of_new_log()).collect();
        for log in &logs {
            log.put(0, VBUCKET, &runs);
        }
        assert_eq!(counts(&all), (4, 4, 4 * bytes_of(&runs)));
        assert!(logs[0].get(0, VBUCKET).is_none() && logs[9].get(0, VBUCKET).is_some());
        logs[9].forget_before(1);
        assert!(logs[9].get(0, VBUCKET).is_none() && logs[8].get(0, VBUCKET).is_some());
        drop(logs);
        assert_eq!(counts(&all), (0, 0, 0));
    }
}
