//! The head of a bucket's stream: its newest mutations, which all up-to-date streams share, bounded
//! in bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use documents::mutation::Mutation;

/// A position in the head of a bucket: the number of mutations that this process has published
/// before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeadPosition(u64);

/// The newest mutations of a bucket, oldest first.
pub(super) struct Head {
    mutations: VecDeque<Arc<Mutation>>,
    bytes: usize,
    bytes_max: usize,
    /// The number of mutations that were dropped from the head.
    begin: u64,
}

impl Head {
    /// Creates an empty head with a limit in bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self { mutations: VecDeque::new(), bytes: 0, bytes_max, begin: 0 }
    }

    /// Adds the newest mutations of a group. `older` is the number of earlier mutations of the
    /// group, which are left out because the head is too small for them.
    pub fn add(&mut self, older: usize, newest: Vec<Arc<Mutation>>) {
        if older > 0 {
            self.begin += (self.mutations.len() + older) as u64;
            self.mutations.clear();
            self.bytes = 0;
        }
        self.bytes += newest.iter().map(|mutation| mutation.bytes()).sum::<usize>();
        self.mutations.extend(newest);
        self.trim();
    }

    /// Drops the oldest mutations above the limit.
    fn trim(&mut self) {
        while self.bytes > self.bytes_max
            && let Some(oldest) = self.mutations.pop_front()
        {
            self.bytes -= oldest.bytes();
            self.begin += 1;
        }
    }

    /// Drops all mutations. Every earlier position is invalid afterwards, including the end.
    pub fn clear(&mut self) {
        self.begin += self.mutations.len() as u64 + 1;
        self.mutations.clear();
        self.bytes = 0;
    }

    /// Returns the position after the newest mutation.
    pub fn end(&self) -> HeadPosition {
        HeadPosition(self.begin + self.mutations.len() as u64)
    }

    /// Reads mutations from a position on: all of them, or about `bytes` bytes but at least one
    /// mutation. Also returns the position after them. `None` if the head no longer has the
    /// mutations at the position.
    pub fn read(
        &self,
        from: HeadPosition,
        bytes: usize,
    ) -> Option<(Vec<Arc<Mutation>>, HeadPosition)> {
        let skip = from.0.checked_sub(self.begin)? as usize;
        let mut size = 0;
        let fitting =
            self.mutations.range(skip.min(self.mutations.len())..).take_while(|mutation| {
                let more = size < bytes;
                size += mutation.bytes();
                more
            });
        let found: Vec<_> = fitting.cloned().collect();
        let next = HeadPosition(from.0 + found.len() as u64);
        Some((found, next))
    }
}
