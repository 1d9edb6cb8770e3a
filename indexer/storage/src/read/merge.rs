//! Merge of cursors into one sequence of entries, forward or in reverse.
//!
//! The cursors play in a tournament (a tree of losers: Knuth, The Art of Computer Programming,
//! volume 3, 5.4.1). For the next row, only the games on the path from the last winner's leaf to
//! the root are played again. Almost every game is decided by the *heads* of two rows: eight bytes
//! after the prefix that all entries of the merge share. Only equal heads lead to a comparison of
//! entries.
//!
//! All versions of an entry are adjacent, in any order, and the newest version at or below the
//! epoch decides. So neither the direction of the merge nor the order of the tables matters.

use std::cmp::Ordering;

use proto::Result;
use proto::model::ids::SliceNo;

use crate::read::cursor::{Cursor, shared_prefix_len};
use crate::read::source::Source;

/// A merge of the rows of some sources.
#[derive(Clone)]
pub struct Merge {
    pub(super) cursors: Vec<Cursor>,
    /// The tournament tree: first the winner, then the loser of the game at each inner node.
    tree: Vec<Player>,
    pub(super) reverse: bool,
}

/// A cursor in the tournament, packed into one integer so that a game is a comparison without a
/// branch: the head of its current row (inverted for reverse merges), whether the cursor is
/// exhausted, and its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Player(u128);

impl Player {
    /// The value of a tree node at which no cursor has played yet.
    const VACANT: Self = Self(u128::MAX);

    fn new(cursor: usize, head: u64) -> Self {
        Self(u128::from(head) << 64 | cursor as u128)
    }

    /// Returns the value of an exhausted cursor, which loses to all others.
    fn done(cursor: usize) -> Self {
        Self(u128::from(u64::MAX) << 64 | 1 << 32 | cursor as u128)
    }

    /// Returns the head of the cursor's current row.
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
    /// Creates the merge of some sources, forward or in reverse.
    pub fn new(sources: impl IntoIterator<Item = Source>, reverse: bool) -> Result<Self> {
        let mut cursors = Vec::new();
        for source in sources {
            cursors.extend(Cursor::open(source, reverse)?);
        }
        let skip = shared_prefix_len(&cursors);
        cursors.iter_mut().for_each(|cursor| cursor.set_prefix_len(skip));
        let tree = vec![Player::VACANT; cursors.len().max(1)];
        let mut merge = Self { cursors, tree, reverse };
        (0..merge.cursors.len()).for_each(|cursor| merge.play_first_games(cursor));
        Ok(merge)
    }

    /// Limits the number of blocks that each cursor reads ahead at once.
    pub fn set_ahead_max(&mut self, blocks: u32) {
        self.cursors.iter_mut().for_each(|cursor| cursor.set_ahead_max(blocks));
    }

    /// Returns the number of the cursor whose row is next, and the head of that row; `None` after
    /// the last row.
    #[inline]
    pub(super) fn winner(&self) -> Option<(usize, u64)> {
        let winner = self.tree[0];
        (!winner.is_done()).then(|| (winner.cursor(), winner.head()))
    }

    /// Returns the cursor whose row is next; `None` after the last row. In a forward merge, the
    /// rows of one entry are in the order of the sources, and the rows of one source are ordered
    /// from the newest to the oldest.
    #[inline]
    pub fn next_row(&self) -> Option<&Cursor> {
        self.winner().map(|(winner, _)| &self.cursors[winner])
    }

    /// Moves past the row that [`Self::next_row`] returns.
    #[inline]
    pub fn skip_row(&mut self) -> Result<()> {
        self.winner().map_or(Ok(()), |(winner, _)| self.advance(winner))
    }

    /// Returns the tree node of a cursor's first game.
    fn first_place(&self, cursor: usize) -> usize {
        (cursor + self.cursors.len()) / 2
    }

    /// Plays a cursor's games in the tournament from its leaf upwards. The cursor is stored in the
    /// first node without an opponent.
    fn play_first_games(&mut self, cursor: usize) {
        let mut player =
            Player::new(cursor, head_in_direction(self.cursors[cursor].head(), self.reverse));
        let mut place = self.first_place(cursor);
        while place > 0 {
            let other = self.tree[place];
            if other == Player::VACANT {
                self.tree[place] = player;
                return;
            }
            (player, self.tree[place]) = self.play(player, other);
            place /= 2;
        }
        self.tree[0] = player;
    }

    /// Moves the winner's cursor to its next row and plays its games again.
    #[inline]
    pub(super) fn advance(&mut self, winner: usize) -> Result<()> {
        let cursor = &mut self.cursors[winner];
        let mut player = match cursor.advance()? {
            true => Player::new(winner, head_in_direction(cursor.head(), self.reverse)),
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

    /// Plays a game between two cursors: returns the winner, then the loser.
    #[inline]
    fn play(&self, left: Player, right: Player) -> (Player, Player) {
        if left.head() == right.head() {
            return self.play_by_entry(left, right);
        }
        (left.min(right), left.max(right))
    }

    /// Decides a game between two rows with equal heads by their complete entries.
    #[cold]
    fn play_by_entry(&self, left: Player, right: Player) -> (Player, Player) {
        if left.is_done() || right.is_done() {
            return (left.min(right), left.max(right));
        }
        let (one, other) = (&self.cursors[left.cursor()], &self.cursors[right.cursor()]);
        let ((block, row), (other_block, other_row)) = (one.block_and_row(), other.block_and_row());
        let order = block.compare_rows(row, other_block, other_row);
        let order = if self.reverse { order.reverse() } else { order };
        match order.then(one.slice.cmp(&other.slice)).then(left.cmp(&right)) {
            Ordering::Less => (left, right),
            _ => (right, left),
        }
    }

    /// Returns the number of the cursor whose row is next if this row has the given entry and
    /// slice.
    #[inline]
    pub(super) fn next_if_same_entry(
        &self,
        head: u64,
        slice: SliceNo,
        entry: &[u8],
    ) -> Option<usize> {
        let (winner, _) = self.winner().filter(|winner| winner.1 == head)?;
        let cursor = &self.cursors[winner];
        let (block, row) = cursor.block_and_row();
        (cursor.slice == slice && block.compare(row, entry).is_eq()).then_some(winner)
    }

    /// Moves past the next entry. Passes each version of it to `visit`, in any order, except
    /// versions whose epoch is outside of a source's range. Puts the entry into the buffer
    /// `entry`. Returns false after the last entry.
    pub fn next_versions(
        &mut self,
        entry: &mut Vec<u8>,
        mut visit: impl FnMut(&Cursor),
    ) -> Result<bool> {
        let Some((mut winner, head)) = self.winner() else { return Ok(false) };
        let cursor = &self.cursors[winner];
        let slice = cursor.slice;
        let (block, row) = cursor.block_and_row();
        entry.clear();
        block.put_entry(row, entry);
        loop {
            let cursor = &self.cursors[winner];
            let (block, row) = cursor.block_and_row();
            if cursor.epochs.contains(&block.epoch(row)) {
                visit(cursor);
            }
            self.advance(winner)?;
            match self.next_if_same_entry(head, slice, entry) {
                Some(next) => winner = next,
                None => return Ok(true),
            }
        }
    }
}

/// Returns a head in the form in which a smaller number comes first, whatever the direction.
fn head_in_direction(head: u64, reverse: bool) -> u64 {
    if reverse { !head } else { head }
}
