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
use proto::model::ids::SliceNo;

use crate::read::cursor::{Cursor, shared_beginning};
use crate::read::source::Source;

/// The merged rows of some sources.
pub struct Merge {
    pub(super) cursors: Vec<Cursor>,
    /// The winner, then the loser of the game at each inner place.
    tree: Vec<Player>,
    pub(super) reverse: bool,
}

/// A cursor in the tournament, as one integer, so that a game is a comparison and no branch: the head
/// of the row that it stands on (inverted for reverse merges), whether it is behind its last row, and
/// its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Player(u128);

impl Player {
    /// No player has come to this place of the tree yet.
    const NOBODY: Self = Self(u128::MAX);

    fn new(cursor: usize, head: u64) -> Self {
        Self(u128::from(head) << 64 | cursor as u128)
    }

    /// One that is behind its last row comes after all others.
    fn done(cursor: usize) -> Self {
        Self(u128::from(u64::MAX) << 64 | 1 << 32 | cursor as u128)
    }

    fn head(self) -> u64 {
        (self.0 >> 64) as u64
    }

    fn is_done(self) -> bool {
        self.0 >> 32 & 1 == 1
    }

    fn cursor(self) -> usize {
        self.0 as u32 as usize
    }
}

impl Merge {
    /// A merge of some sources.
    pub fn new(sources: impl IntoIterator<Item = Source>, reverse: bool) -> Result<Self> {
        let mut cursors = Vec::new();
        for source in sources {
            cursors.extend(Cursor::open(source, reverse)?);
        }
        let skip = shared_beginning(&cursors);
        cursors.iter_mut().for_each(|cursor| cursor.set_skip(skip));
        let tree = vec![Player::NOBODY; cursors.len().max(1)];
        let mut merge = Self { cursors, tree, reverse };
        (0..merge.cursors.len()).for_each(|cursor| merge.enter(cursor));
        Ok(merge)
    }

    /// From now on each cursor reads at most so many blocks at once.
    pub fn set_ahead_max(&mut self, blocks: u32) {
        self.cursors.iter_mut().for_each(|cursor| cursor.set_ahead_max(blocks));
    }

    /// The cursor on the next row, and its head.
    #[inline]
    pub(super) fn winner(&self) -> Option<(usize, u64)> {
        let winner = self.tree[0];
        (!winner.is_done()).then(|| (winner.cursor(), winner.head()))
    }

    /// Where a cursor plays first.
    fn first_place(&self, cursor: usize) -> usize {
        (cursor + self.cursors.len()) / 2
    }

    /// A cursor's first games: at a place where nobody waits, it waits for the other.
    fn enter(&mut self, cursor: usize) {
        let mut player = Player::new(cursor, directed(self.cursors[cursor].head(), self.reverse));
        let mut place = self.first_place(cursor);
        while place > 0 {
            let other = self.tree[place];
            if other == Player::NOBODY {
                self.tree[place] = player;
                return;
            }
            (player, self.tree[place]) = self.play(player, other);
            place /= 2;
        }
        self.tree[0] = player;
    }

    /// Moves the winner's cursor on and plays its games again.
    #[inline]
    pub(super) fn advance(&mut self, winner: usize) -> Result<()> {
        let cursor = &mut self.cursors[winner];
        let mut player = match cursor.advance()? {
            true => Player::new(winner, directed(cursor.head(), self.reverse)),
            false => Player::done(winner),
        };
        let mut place = self.first_place(winner);
        while place > 0 {
            (player, self.tree[place]) = self.play(player, self.tree[place]);
            place /= 2;
        }
        self.tree[0] = player;
        Ok(())
    }

    /// Who comes first, then the other.
    #[inline]
    fn play(&self, left: Player, right: Player) -> (Player, Player) {
        if left.head() == right.head() {
            return self.play_by_entry(left, right);
        }
        (left.min(right), left.max(right))
    }

    #[cold]
    fn play_by_entry(&self, left: Player, right: Player) -> (Player, Player) {
        if left.is_done() || right.is_done() {
            return (left.min(right), left.max(right));
        }
        let (one, other) = (&self.cursors[left.cursor()], &self.cursors[right.cursor()]);
        let ((block, row), (other_block, other_row)) = (one.place(), other.place());
        let order = block.compare_rows(row, other_block, other_row);
        let order = if self.reverse { order.reverse() } else { order };
        match order.then(one.slice.cmp(&other.slice)).then(left.cmp(&right)) {
            Ordering::Less => (left, right),
            _ => (right, left),
        }
    }

    /// Does the winner stand on an entry that was found before, of the same slice?
    #[inline]
    pub(super) fn same_entry(&self, head: u64, slice: SliceNo, entry: &[u8]) -> Option<usize> {
        let (winner, _) = self.winner().filter(|winner| winner.1 == head)?;
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
        let Some((mut winner, head)) = self.winner() else { return Ok(false) };
        let cursor = &self.cursors[winner];
        let slice = cursor.slice;
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
