//! The log in memory, from which Raft reads. It begins after the last truncation.
//!
//! The memory log mirrors the log that [`super::log_store`] has on disk or is about to write. The
//! core changes the memory log first and returns the same change as a write. Raft counts an entry
//! as stored on this member only after the write is confirmed. Truncation by number and size of
//! entries keeps the log small, so that reads never touch the disk.

use std::collections::VecDeque;

use proto::Result;
use raft::eraftpb::{Entry, HardState, Snapshot};
use raft::{GetEntriesContext, RaftState, Storage, StorageError, util::limit_size};

#[cfg(feature = "testing")]
use super::log_write::{LogOp, LogWrite};
use super::members::Members;
use super::wire::LogSnapshot;

/// The log and the state that Raft restores after a start: vote, members, last snapshot, and the
/// entries after it.
#[derive(Clone, Debug)]
pub struct MemoryLog {
    pub(super) hard_state: HardState,
    /// The members at the beginning of the log.
    pub(super) founders: Members,
    pub(super) snapshot: Option<LogSnapshot>,
    /// Index and term of the entry before the first stored entry.
    pub(super) start: (u64, u64),
    /// Entries without gaps, from index `start.0 + 1`.
    pub(super) entries: VecDeque<Entry>,
}

impl MemoryLog {
    /// Creates an empty log.
    pub fn new(founders: Vec<u64>) -> Self {
        Self {
            hard_state: HardState::default(),
            founders: Members::new(founders),
            snapshot: None,
            start: (0, 0),
            entries: VecDeque::new(),
        }
    }

    /// Returns the members at the stored snapshot; without a snapshot, those at the beginning of
    /// the log.
    pub fn members(&self) -> Result<Members> {
        match &self.snapshot {
            Some(snapshot) => snapshot.members(),
            None => Ok(self.founders.clone()),
        }
    }

    /// Returns the index of the last entry that the stored snapshot contains; 0 without a snapshot.
    pub fn snapshot_index(&self) -> u64 {
        self.snapshot.as_ref().map_or(0, |snapshot| snapshot.index)
    }

    /// The index of the last entry.
    pub fn last(&self) -> u64 {
        self.start.0 + self.entries.len() as u64
    }

    /// The term of a stored entry, or of the entry before the first one.
    pub fn term_of(&self, index: u64) -> Option<u64> {
        if index == self.start.0 {
            return Some(self.start.1);
        }
        let position = index.checked_sub(self.start.0 + 1)?;
        self.entries.get(position as usize).map(|entry| entry.term)
    }

    /// The term and the command of a stored entry.
    #[cfg(feature = "testing")]
    pub fn entry(&self, index: u64) -> Option<(u64, &[u8])> {
        let position = index.checked_sub(self.start.0 + 1)?;
        self.entries.get(position as usize).map(|entry| (entry.term, &entry.data[..]))
    }

    /// The stored entries from an index on.
    pub(super) fn entries_from(&self, index: u64) -> impl Iterator<Item = &Entry> {
        let skipped = index.saturating_sub(self.start.0 + 1) as usize;
        self.entries.range(skipped.min(self.entries.len())..)
    }

    /// Returns the index up to which entries may be dropped after a snapshot at `applied`, so
    /// that at most `entries_max` entries and `bytes_max` bytes stay.
    pub(super) fn droppable_until(&self, applied: u64, entries_max: u64, bytes_max: u64) -> u64 {
        let mut left = bytes_max;
        let last = applied.saturating_sub(self.start.0) as usize;
        let newest_first = self.entries.iter().take(last).rev().take(entries_max as usize);
        let kept = newest_first.take_while(|entry| {
            let bytes = (entry.data.len() + entry.context.len()) as u64;
            let fits = bytes <= left;
            left = left.saturating_sub(bytes);
            fits
        });
        applied - kept.count() as u64
    }

    /// Appends entries. The first new entry replaces an old one with the same index, and all old
    /// entries after it.
    pub(super) fn append(&mut self, entries: &[Entry]) {
        let Some(first) = entries.first() else { return };
        let kept = first.index.saturating_sub(self.start.0 + 1);
        self.entries.truncate(kept as usize);
        self.entries.extend(entries.iter().cloned());
    }

    /// Applies a write to this log as a disk would, for tests that step a core without a disk.
    #[cfg(feature = "testing")]
    pub fn write(&mut self, write: LogWrite) {
        for op in write.ops {
            match op {
                LogOp::HardState(hard_state) => self.hard_state = hard_state,
                LogOp::Append(entries) => self.append(&entries),
                LogOp::Snapshot(snapshot) => self.snapshot = Some(snapshot),
                LogOp::Reset(snapshot) => self.reset_to(snapshot),
                LogOp::DropThrough { index, .. } => self.drop_through(index),
            }
        }
    }

    /// Drops the entries up to and including `index`, which a snapshot must contain.
    pub(super) fn drop_through(&mut self, index: u64) {
        if let Some(term) = self.term_of(index).filter(|_| index > self.start.0) {
            self.entries.drain(..(index - self.start.0) as usize);
            self.start = (index, term);
        }
    }

    /// Restarts the log with a snapshot from the leader: drops all entries.
    pub(super) fn reset_to(&mut self, snapshot: LogSnapshot) {
        self.entries.clear();
        self.start = (snapshot.index, snapshot.term);
        self.snapshot = Some(snapshot);
    }
}

impl Storage for MemoryLog {
    fn initial_state(&self) -> raft::Result<RaftState> {
        let members = self.members().map_err(|error| StorageError::Other(error.into()))?;
        Ok(RaftState::new(self.hard_state.clone(), members.to_conf_state()))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        if low <= self.start.0 {
            return Err(StorageError::Compacted.into());
        }
        if high > self.last() + 1 {
            return Err(StorageError::Unavailable.into());
        }
        let position = |index: u64| (index - self.start.0 - 1) as usize;
        let mut entries: Vec<Entry> =
            self.entries.range(position(low)..position(high)).cloned().collect();
        limit_size(&mut entries, max_size.into());
        Ok(entries)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        match self.term_of(index) {
            Some(term) => Ok(term),
            None if index < self.start.0 => Err(StorageError::Compacted.into()),
            None => Err(StorageError::Unavailable.into()),
        }
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.start.0 + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last())
    }

    fn snapshot(&self, request_index: u64, to: u64) -> raft::Result<Snapshot> {
        // A new member drops a snapshot that does not name it. The next one does.
        let names = |snapshot: &LogSnapshot| {
            snapshot.voters.contains(&to) || snapshot.learners.contains(&to)
        };
        match &self.snapshot {
            Some(snapshot) if snapshot.index >= request_index && names(snapshot) => {
                Ok(snapshot.clone().into_raft())
            }
            _ => Err(StorageError::SnapshotTemporarilyUnavailable.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: u64, term: u64) -> Entry {
        Entry { index, term, ..Default::default() }
    }

    #[test]
    fn entries_are_replaced_from_the_first_new_one() {
        let mut log = MemoryLog::new(vec![1]);
        log.append(&[entry(1, 1), entry(2, 1), entry(3, 1)]);
        log.append(&[entry(2, 2)]);
        assert_eq!((log.last(), log.term_of(1), log.term_of(2)), (2, Some(1), Some(2)));
        assert_eq!(log.term_of(3), None);
    }

    #[test]
    fn the_term_before_the_first_entry_is_remembered() {
        let mut log = MemoryLog::new(vec![1]);
        log.append(&[entry(1, 1), entry(2, 1), entry(3, 2), entry(4, 2)]);
        log.drop_through(3);
        assert_eq!((log.first_index().unwrap(), log.last()), (4, 4));
        assert_eq!((log.term_of(2), log.term_of(3)), (None, Some(2)));
        log.drop_through(2);
        assert_eq!(log.first_index().unwrap(), 4, "truncation never goes back");
        let snapshot = LogSnapshot::new(9, 3, &Members::new(vec![1]), b"state").unwrap();
        log.reset_to(snapshot);
        assert_eq!((log.last(), log.term_of(9), log.snapshot_index()), (9, Some(3), 9));
    }
}
