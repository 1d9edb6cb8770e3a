//! The indexes of closed segments that were used lately.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::ids::VbucketId;
use storage::log::Lsn;

use super::segment_index::RunEntry;

/// The runs of one vbucket in one segment.
pub(super) type Runs = Arc<[RunEntry]>;

type Key = (Lsn, VbucketId);

/// A bounded number of bytes of indexes; the one that was not used for the longest time goes first.
#[derive(Default)]
pub(super) struct IndexCache {
    bytes_max: usize,
    bytes: usize,
    /// Counts uses.
    now: u64,
    runs: BTreeMap<Key, (Runs, u64)>,
    by_use: BTreeMap<u64, Key>,
}

impl IndexCache {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, ..Self::default() }
    }

    pub(super) fn get(&mut self, key: Key) -> Option<Runs> {
        self.now += 1;
        let (runs, used) = self.runs.get_mut(&key)?;
        self.by_use.remove(used);
        *used = self.now;
        self.by_use.insert(self.now, key);
        Some(Arc::clone(runs))
    }

    /// Keeps runs, unless they alone are larger than the cache.
    pub(super) fn put(&mut self, key: Key, runs: &Runs) {
        if bytes_of(runs) > self.bytes_max || self.runs.contains_key(&key) {
            return;
        }
        self.now += 1;
        self.bytes += bytes_of(runs);
        self.runs.insert(key, (Arc::clone(runs), self.now));
        self.by_use.insert(self.now, key);
        while self.bytes > self.bytes_max {
            let Some((_, oldest)) = self.by_use.pop_first() else { return };
            self.remove(oldest);
        }
    }

    /// Forgets the segments before `first`.
    pub(super) fn forget_before(&mut self, first: Lsn) {
        let gone: Vec<Key> =
            self.runs.range(..(first, VbucketId(0))).map(|(key, _)| *key).collect();
        gone.into_iter().for_each(|key| self.remove(key));
    }

    fn remove(&mut self, key: Key) {
        if let Some((runs, used)) = self.runs.remove(&key) {
            self.bytes -= bytes_of(&runs);
            self.by_use.remove(&used);
        }
    }
}

/// Bytes of memory, with the entries of both maps.
fn bytes_of(runs: &Runs) -> usize {
    std::mem::size_of_val(&**runs) + 128
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::model::ids::Seqno;

    #[test]
    fn the_cache_is_bounded_and_keeps_what_is_used() {
        let run = RunEntry { first: Seqno(1), bytes_before: 0, lsn: 0, item_bytes: 1, count: 1 };
        let runs: Runs = vec![run; 10].into();
        let mut cache = IndexCache::new(3 * bytes_of(&runs));
        for base in 0..3 {
            cache.put((base, VbucketId(0)), &runs);
        }
        assert!(cache.get((0, VbucketId(0))).is_some());
        cache.put((3, VbucketId(0)), &runs);
        assert!(cache.get((1, VbucketId(0))).is_none(), "it was not used for the longest time");
        assert!(cache.get((0, VbucketId(0))).is_some());
        assert!(cache.bytes <= cache.bytes_max);
        cache.forget_before(3);
        assert_eq!((cache.runs.len(), cache.by_use.len()), (1, 1));
        assert_eq!(cache.bytes, bytes_of(&runs));
    }
}
