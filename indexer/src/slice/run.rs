//! A run: what one epoch, or several merged ones, made of one index on one node; sorted and immutable.
//!
//! Rows are ordered by slice, then by entry bytes; versions of one entry stand together, the newest
//! first. A slice is a restriction of a run to its rows, so a slice that an epoch did not change
//! costs that epoch nothing. Columns, not structs: scans touch entry bytes and little else.

use proto::ids::{Epoch, SliceNo};

/// Most bytes of entries (or included values) in one run: offsets are 32 bits.
pub const RUN_BYTES_MAX: usize = 1 << 30;

/// A sorted immutable run.
#[derive(Debug, Default)]
pub struct Run {
    /// For each slice that has rows here: its first row and the one after its last; ascending.
    slices: Vec<(SliceNo, u32, u32)>,
    entries: Column,
    /// Empty when no row has included values.
    include: Column,
    epochs: Epochs,
    /// Ascending row numbers of tombstones.
    tombstones: Vec<u32>,
    oldest: Epoch,
    newest: Epoch,
    /// Does any entry have more than one version here?
    versions: bool,
}

/// Byte strings back to back, with where each begins.
#[derive(Debug, Default)]
struct Column {
    bytes: Vec<u8>,
    /// One more than there are strings, or none at all.
    offsets: Vec<u32>,
}

impl Column {
    fn push(&mut self, value: &[u8]) {
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        self.bytes.extend_from_slice(value);
        self.offsets.push(self.bytes.len() as u32);
    }

    fn get(&self, row: u32) -> &[u8] {
        let row = row as usize;
        &self.bytes[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    fn size(&self) -> usize {
        self.bytes.len() + 4 * self.offsets.len()
    }
}

/// The epoch of each row; most runs have one.
#[derive(Debug)]
enum Epochs {
    One(Epoch),
    Each(Vec<Epoch>),
}

impl Default for Epochs {
    fn default() -> Self {
        Self::One(Epoch(0))
    }
}

/// One version of an entry.
#[derive(Clone, Copy, Debug)]
pub struct Version<'a> {
    /// The slice.
    pub slice: SliceNo,
    /// Encoded key parts, then the document id.
    pub entry: &'a [u8],
    /// Encoded included values.
    pub include: &'a [u8],
    /// Since when.
    pub epoch: Epoch,
    /// Is the entry gone since then?
    pub tombstone: bool,
}

impl Run {
    /// The rows of a slice.
    pub fn rows_of(&self, slice: SliceNo) -> std::ops::Range<u32> {
        match self.slices.binary_search_by_key(&slice, |(slice, ..)| *slice) {
            Ok(at) => self.slices[at].1..self.slices[at].2,
            Err(_) => 0..0,
        }
    }

    /// The slices that have rows.
    pub fn slices(&self) -> impl Iterator<Item = (SliceNo, std::ops::Range<u32>)> + '_ {
        self.slices.iter().map(|(slice, from, to)| (*slice, *from..*to))
    }

    /// How many rows.
    pub fn rows(&self) -> u32 {
        self.entries.offsets.len().saturating_sub(1) as u32
    }

    /// The entry bytes of a row.
    pub fn entry(&self, row: u32) -> &[u8] {
        self.entries.get(row)
    }

    /// The included values of a row.
    pub fn include(&self, row: u32) -> &[u8] {
        if self.include.offsets.is_empty() { &[] } else { self.include.get(row) }
    }

    /// The epoch of a row.
    pub fn epoch(&self, row: u32) -> Epoch {
        match &self.epochs {
            Epochs::One(epoch) => *epoch,
            Epochs::Each(epochs) => epochs[row as usize],
        }
    }

    /// Is a row a tombstone?
    pub fn is_tombstone(&self, row: u32) -> bool {
        !self.tombstones.is_empty() && self.tombstones.binary_search(&row).is_ok()
    }

    /// Does every row show at an epoch, each entry once? Then nothing has to be checked per row.
    pub fn shows_whole_at(&self, epoch: Epoch) -> bool {
        self.tombstones.is_empty() && !self.versions && self.newest <= epoch
    }

    /// The oldest epoch of a row.
    pub fn oldest(&self) -> Epoch {
        self.oldest
    }

    /// Bytes of memory.
    pub fn size(&self) -> usize {
        let epochs = match &self.epochs {
            Epochs::One(_) => 0,
            Epochs::Each(epochs) => 8 * epochs.len(),
        };
        self.entries.size() + self.include.size() + epochs + 4 * self.tombstones.len()
    }

    /// The first row in `rows` whose entry is at or after `bound`.
    pub fn lower_bound(&self, rows: std::ops::Range<u32>, bound: &[u8]) -> u32 {
        let (mut low, mut high) = (rows.start, rows.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(middle) < bound {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Builds a run from versions in its order: by slice, entry, and the newest first.
#[derive(Debug, Default)]
pub struct RunBuilder {
    run: Run,
    epochs: Vec<Epoch>,
}

impl RunBuilder {
    /// Has it as many bytes as a run may have?
    pub fn is_full(&self) -> bool {
        self.run.entries.bytes.len().max(self.run.include.bytes.len()) >= RUN_BYTES_MAX
    }

    /// Appends a version.
    pub fn push(&mut self, version: Version<'_>) {
        let run = &mut self.run;
        let row = run.rows();
        match run.slices.last_mut() {
            Some((slice, _, end)) if *slice == version.slice => {
                debug_assert!(run.entries.get(row - 1) <= version.entry, "rows are sorted");
                run.versions |= run.entries.get(row - 1) == version.entry;
                *end = row + 1;
            }
            _ => run.slices.push((version.slice, row, row + 1)),
        }
        run.entries.push(version.entry);
        if !version.include.is_empty() || !run.include.offsets.is_empty() {
            if run.include.offsets.is_empty() {
                // The first row with included values: those before it have none.
                run.include.offsets = vec![0; row as usize + 1];
            }
            run.include.push(version.include);
        }
        if version.tombstone {
            run.tombstones.push(row);
        }
        if row == 0 {
            (run.oldest, run.newest) = (version.epoch, version.epoch);
        }
        run.oldest = run.oldest.min(version.epoch);
        run.newest = run.newest.max(version.epoch);
        self.epochs.push(version.epoch);
    }

    /// The run, `None` if it has no rows.
    pub fn finish(mut self) -> Option<Run> {
        if self.run.rows() == 0 {
            return None;
        }
        self.run.epochs = match self.run.oldest == self.run.newest {
            true => Epochs::One(self.run.oldest),
            false => Epochs::Each(self.epochs),
        };
        Some(self.run)
    }
}
