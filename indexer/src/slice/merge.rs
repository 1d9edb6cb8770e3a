//! Merges cursors into one sequence of entries, forward or in reverse, and picks for each entry the
//! version that an epoch shows, or hands out all of them.
//!
//! The cursors play in a tournament (a tree of losers: Knuth, The Art of Computer Programming, volume
//! 3, 5.4.1): to find the next row, only the games on the way from the last winner's place to the root
//! are played again. Almost every game is decided by the *heads* of two rows, eight bytes behind what
//! all entries of the merge share; only equal heads lead to the entries themselves.
//!
//! All versions of an entry come together, whatever their order, and the newest at or below the epoch
//! decides: so the direction does not matter, nor the order of the tables.

use std::cmp::Ordering;

use proto::Result;
use proto::ids::{Epoch, SliceNo};
use proto::scan::RowBlockBuilder;

use super::Rows;
use super::block::Block;
use super::cursor::{Cursor, Source, shared_beginning};

/// The merged rows of some sources.
pub struct Merge {
    cursors: Vec<Cursor>,
    /// The heads of the rows that the cursors stand on, inverted for reverse merges.
    heads: Vec<u64>,
    /// Which cursors are behind their last row.
    done: Vec<bool>,
    /// The winner, then the loser of the game at each inner place.
    tree: Vec<u32>,
    reverse: bool,
}

/// No player has come to this place of the tree yet.
const NOBODY: u32 = u32::MAX;

impl Merge {
    /// A merge of some sources.
    pub fn new(sources: impl IntoIterator<Item = Source>, reverse: bool) -> Result<Self> {
        let mut cursors = Vec::new();
        for source in sources {
            cursors.extend(Cursor::open(source, reverse)?);
        }
        let skip = shared_beginning(&cursors);
        cursors.iter_mut().for_each(|cursor| cursor.set_skip(skip));
        let heads = cursors.iter().map(|cursor| directed(cursor.head(), reverse)).collect();
        let players = cursors.len();
        let mut merge = Self {
            heads,
            done: vec![false; players],
            tree: vec![NOBODY; players.max(1)],
            cursors,
            reverse,
        };
        (0..players as u32).for_each(|player| merge.enter(player));
        Ok(merge)
    }

    /// The cursor on the next row.
    fn winner(&self) -> Option<usize> {
        let winner = self.tree[0] as usize;
        (!*self.done.get(winner)?).then_some(winner)
    }

    /// A player's first games: at a place where nobody waits, it waits for the other.
    fn enter(&mut self, mut player: u32) {
        let mut place = (player as usize + self.cursors.len()) / 2;
        while place > 0 {
            if self.tree[place] == NOBODY {
                self.tree[place] = player;
                return;
            }
            if self.is_before(self.tree[place], player) {
                std::mem::swap(&mut self.tree[place], &mut player);
            }
            place /= 2;
        }
        self.tree[0] = player;
    }

    /// Moves the winner's cursor on and plays its games again.
    #[inline]
    fn advance(&mut self, winner: usize) -> Result<()> {
        let cursor = &mut self.cursors[winner];
        if cursor.advance()? {
            self.heads[winner] = directed(cursor.head(), self.reverse);
        } else {
            self.heads[winner] = u64::MAX;
            self.done[winner] = true;
        }
        let mut player = winner as u32;
        let mut place = (winner + self.cursors.len()) / 2;
        while place > 0 {
            let other = self.tree[place];
            if self.is_before(other, player) {
                self.tree[place] = player;
                player = other;
            }
            place /= 2;
        }
        self.tree[0] = player;
        Ok(())
    }

    #[inline]
    fn is_before(&self, left: u32, right: u32) -> bool {
        let (left, right) = (left as usize, right as usize);
        let (one, other) = (self.heads[left], self.heads[right]);
        one < other || one == other && self.is_before_by_entry(left, right)
    }

    #[cold]
    fn is_before_by_entry(&self, left: usize, right: usize) -> bool {
        if self.done[left] || self.done[right] {
            return !self.done[left];
        }
        let (one, other) = (&self.cursors[left], &self.cursors[right]);
        let order = compare_rows(one.place(), other.place());
        let order = if self.reverse { order.reverse() } else { order };
        order.then(one.slice.cmp(&other.slice)).then(left.cmp(&right)) == Ordering::Less
    }

    /// Does the winner stand on an entry that was found before, of the same slice?
    #[inline]
    fn same_entry(&self, head: u64, slice: SliceNo, entry: &[u8]) -> Option<usize> {
        let winner = self.winner()?;
        if self.heads[winner] != head {
            return None;
        }
        let cursor = &self.cursors[winner];
        let (block, row) = cursor.place();
        (cursor.slice == slice && block.compare(row, entry).is_eq()).then_some(winner)
    }

    /// All versions of the next entry, in no order, without those that a source's epochs leave out;
    /// false behind the last entry. The entry is put into `entry`.
    pub fn next_versions(
        &mut self,
        entry: &mut Vec<u8>,
        mut visit: impl FnMut(&Cursor),
    ) -> Result<bool> {
        let Some(mut winner) = self.winner() else { return Ok(false) };
        let cursor = &self.cursors[winner];
        let (slice, head) = (cursor.slice, self.heads[winner]);
        let (block, row) = cursor.place();
        entry.clear();
        block.put_entry(row, entry);
        loop {
            let cursor = &self.cursors[winner];
            let (block, row) = cursor.place();
            if cursor.epochs.contains(&block.epoch(row)) {
                visit(cursor);
            }
            self.advance(winner)?;
            match self.same_entry(head, slice, entry) {
                Some(next) => winner = next,
                None => return Ok(true),
            }
        }
    }
}

fn directed(head: u64, reverse: bool) -> u64 {
    if reverse { !head } else { head }
}

fn compare_rows((left, row): (&Block, u32), (right, other): (&Block, u32)) -> Ordering {
    let mut entry = Vec::with_capacity(right.entry_len(other));
    right.put_entry(other, &mut entry);
    left.compare(row, &entry)
}

/// The entries that an epoch shows.
pub struct Visible {
    merge: Merge,
    epoch: Epoch,
    with_values: bool,
    /// There is one source, and all of its rows show.
    whole: bool,
    entry: Vec<u8>,
    value: Vec<u8>,
}

impl Visible {
    /// The entries that an epoch shows of some sources, with their values if asked for.
    pub fn new(
        sources: impl IntoIterator<Item = Source>,
        epoch: Epoch,
        reverse: bool,
        with_values: bool,
    ) -> Result<Self> {
        let merge = Merge::new(sources, reverse)?;
        let whole = match &merge.cursors[..] {
            [only] => {
                let stats = &only.table().stats;
                stats.shows_whole_at(epoch.min(*only.epochs.end()))
                    && only.epochs.start() <= &stats.oldest
            }
            _ => false,
        };
        Ok(Self { merge, epoch, with_values, whole, entry: Vec::new(), value: Vec::new() })
    }

    /// The next entry, where every row shows.
    fn next_whole(&mut self) -> Result<bool> {
        let Some(winner) = self.merge.winner() else { return Ok(false) };
        let (block, row) = self.merge.cursors[winner].place();
        self.entry.clear();
        block.put_entry(row, &mut self.entry);
        if self.with_values {
            self.value.clear();
            block.put_value(row, &mut self.value);
        }
        self.merge.done[winner] = !self.merge.cursors[winner].advance()?;
        Ok(true)
    }

    /// Packs what one block still has, where every row shows and is wanted as it stands; says how many
    /// rows that were.
    fn pack_block(
        &mut self,
        block: &mut RowBlockBuilder,
        bytes_max: usize,
        rows_max: u64,
    ) -> Result<u64> {
        if !self.whole || self.with_values || self.merge.reverse {
            return Ok(0);
        }
        let Some(winner) = self.merge.winner() else { return Ok(0) };
        let cursor = &mut self.merge.cursors[winner];
        let (from, rows) = cursor.rest_of_block();
        let row_bytes = from.entry_len(rows.start) + 2;
        let fit = (bytes_max - block.len()).div_ceil(row_bytes) as u64;
        let count = u64::from(rows.end - rows.start).min(rows_max).min(fit) as u32;
        if !from.pack(rows.start..rows.start + count, block) {
            return Ok(0);
        }
        self.merge.done[winner] = !cursor.skip(count)?;
        Ok(u64::from(count))
    }

    /// Goes past all versions of the next entry; true if the epoch shows it, false if not, `None`
    /// behind the last.
    fn next_entry(&mut self) -> Result<Option<bool>> {
        let Self { merge, epoch, with_values, entry, value, .. } = self;
        let mut best: Option<(Epoch, bool)> = None;
        let found = merge.next_versions(entry, |cursor| {
            let (block, row) = cursor.place();
            let version = block.epoch(row);
            if version <= *epoch && best.is_none_or(|(newest, _)| version > newest) {
                let tombstone = block.is_tombstone(row);
                best = Some((version, tombstone));
                if *with_values && !tombstone {
                    value.clear();
                    block.put_value(row, value);
                }
            }
        })?;
        Ok(found.then_some(matches!(best, Some((_, false)))))
    }
}

impl Rows for Visible {
    fn next(&mut self) -> Result<bool> {
        if self.whole {
            return self.next_whole();
        }
        loop {
            match self.next_entry()? {
                Some(true) => return Ok(true),
                Some(false) => {}
                None => return Ok(false),
            }
        }
    }

    fn entry(&self) -> &[u8] {
        &self.entry
    }

    fn include(&self) -> &[u8] {
        if self.with_values { &self.value } else { &[] }
    }

    fn pack(
        &mut self,
        block: &mut RowBlockBuilder,
        bytes_max: usize,
        rows_max: u64,
    ) -> Result<bool> {
        let mut left = rows_max;
        while left > 0 && block.len() < bytes_max {
            let packed = self.pack_block(block, bytes_max, left)?;
            if packed > 0 {
                left -= packed;
                continue;
            }
            if !self.next()? {
                return Ok(false);
            }
            block.push(self.entry(), self.include());
            left -= 1;
        }
        Ok(true)
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
