//! Merges the ordered rows of several shards into one ordered sequence, and combines their partial
//! aggregates.
//!
//! There are few shards (one for each node), so the merge compares the heads of all shards instead
//! of keeping a heap. The first eight bytes of an entry are compared as one integer. The blocks of
//! a single shard pass through unchanged.
//!
//! A shard may fail at an entry. The merge fails when it reaches that entry; any other error is
//! returned after the rows that were merged before it. So a scan with a limit does not fail for a
//! row that it does not return.

use std::cmp::Ordering;
use std::ops::Range;

use bytes::Bytes;
use futures::future::{join_all, try_join_all};
use proto::expr::aggregate::PartialAggregate;
use proto::rpc::rows::{RowBlock, RowBlockBuilder, RowIter};
use proto::rpc::scan::ShardBatch;
use proto::value::key::LeadingParts;
use proto::{Error, Result};

use super::shard_stream::{NextRows, ShardStream};

/// Size in bytes at which a merged block is returned.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;
/// Size of the first merged block in bytes. The size is small, so that the first row is returned
/// early.
const FIRST_BLOCK_BYTES: usize = 4 << 10;

/// The merge of several shards' rows, with their blocks.
pub(crate) struct ShardMerge {
    shards: Vec<Shard>,
    reverse: bool,
    distinct: Option<DistinctFilter>,
    block_bytes: usize,
    /// True once a block of the full size was returned.
    is_long: bool,
    /// An error to be returned after the rows that were merged before it.
    held: Option<Error>,
    /// The entry at which a shard has reported an error.
    failed_at: Option<Bytes>,
}

/// A shard stream with the position in its current block.
struct Shard {
    stream: ShardStream,
    block: RowBlock,
    /// The offset of the current row in the block; the next field is the offset of the row after
    /// it.
    at: usize,
    next: usize,
    /// The range of the current row's entry in the block.
    entry: Range<usize>,
    /// The first eight bytes of the current row's entry, as an integer that sorts in the order of
    /// the entries.
    prefix: u64,
    /// True if there is a current row. Otherwise the next block must be fetched, or the shard is
    /// finished.
    on_row: bool,
    /// The error that the shard has reported for the current row, whose values it cannot compute.
    failure: Option<Error>,
    finished: bool,
}

/// The state of DISTINCT over leading key parts. Equal rows of different shards are merged next to
/// each other, so only the last row is remembered.
struct DistinctFilter {
    parts: u16,
    descending: Vec<bool>,
    last: Option<Vec<u8>>,
}

impl DistinctFilter {
    /// Returns true if the row's leading key parts differ in value from those of the previous row.
    fn is_new(&mut self, entry: &[u8]) -> Result<bool> {
        let directions = self.descending.iter().take(usize::from(self.parts));
        let parts = LeadingParts::of(entry, directions.copied())?;
        if self.last.as_deref().is_some_and(|last| parts.looks_equal_to(last)) {
            return Ok(false);
        }
        self.last = Some(parts.bytes().to_vec());
        Ok(true)
    }
}

impl Shard {
    fn new(stream: ShardStream) -> Self {
        let block = RowBlock::default();
        Self {
            stream,
            block,
            at: 0,
            next: 0,
            entry: 0..0,
            prefix: 0,
            on_row: false,
            failure: None,
            finished: false,
        }
    }

    fn entry(&self) -> &[u8] {
        &self.block.data[self.entry.clone()]
    }

    /// Moves to the row at the offset `at`. If `at` is the end of the block, there is no current
    /// row.
    fn move_to(&mut self, at: usize) {
        self.at = at;
        match proto::rpc::rows::row_at(&self.block.data, at) {
            Some(place) => {
                self.prefix = prefix(&self.block.data[place.entry.clone()]);
                (self.entry, self.next) = (place.entry, place.next);
                self.on_row = true;
            }
            None => self.on_row = false,
        }
    }

    /// Removes and returns the remaining rows of the current block; `None` if there is no current
    /// row.
    fn take_rest(&mut self) -> Option<RowBlock> {
        let at = std::mem::take(&mut self.on_row).then_some(self.at)?;
        let data = self.block.data.slice(at..);
        let rows = RowIter::new(&data).count() as u32;
        Some(RowBlock { rows, data })
    }

    /// Fetches blocks until there is a row or the shard is finished.
    async fn fill(&mut self) -> Result<()> {
        while !self.on_row && !self.finished {
            match self.stream.next_rows().await? {
                NextRows::Block(block) => {
                    self.block = block;
                    self.move_to(0);
                }
                NextRows::Failed(entry, error) => {
                    (self.prefix, self.entry) = (prefix(&entry), 0..entry.len());
                    self.block = RowBlock { rows: 0, data: entry };
                    (self.on_row, self.failure) = (true, Some(error));
                }
                NextRows::End => self.finished = true,
            }
        }
        Ok(())
    }
}

/// Returns the first eight bytes of an entry, as an integer that sorts in the order of the entries.
fn prefix(entry: &[u8]) -> u64 {
    match entry.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => entry
            .iter()
            .enumerate()
            .fold(0, |sum, (n, byte)| sum | u64::from(*byte) << (56 - 8 * n)),
    }
}

impl ShardMerge {
    /// Creates a merge of shards. With `distinct` (a number of leading key parts, and the
    /// direction of each key part), only the first of several rows with equal leading key parts is
    /// returned.
    pub fn new(
        shards: Vec<ShardStream>,
        reverse: bool,
        distinct: Option<(u16, Vec<bool>)>,
    ) -> Self {
        let distinct =
            distinct.map(|(parts, descending)| DistinctFilter { parts, descending, last: None });
        Self {
            shards: shards.into_iter().map(Shard::new).collect(),
            reverse,
            distinct,
            block_bytes: FIRST_BLOCK_BYTES,
            is_long: false,
            held: None,
            failed_at: None,
        }
    }

    /// Removes and returns the entry at which a shard has reported an error, after [`Self::next`]
    /// has returned that error.
    pub fn failed_at(&mut self) -> Option<Bytes> {
        self.failed_at.take()
    }

    /// Creates a merge without shards; [`Self::go_on`] adds shards later.
    pub fn parked(reverse: bool) -> Self {
        Self::new(Vec::new(), reverse, None)
    }

    /// Returns true if so many rows were merged that a separate task should merge the rest.
    pub fn is_long(&self) -> bool {
        self.is_long && self.shards.len() > 1 && self.distinct.is_none()
    }

    /// Ends the shard scans and drops their buffered rows.
    pub fn park(&mut self) {
        self.shards.clear();
        (self.held, self.failed_at) = (None, None);
        (self.block_bytes, self.is_long) = (FIRST_BLOCK_BYTES, false);
    }

    /// Continues the merge with new shard scans, which begin after the last row that was returned.
    pub fn resume(&mut self, shards: Vec<ShardStream>) {
        self.shards = shards.into_iter().map(Shard::new).collect();
    }

    /// Returns the next rows in order; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<RowBlock>> {
        if let Some(error) = self.held.take() {
            return Err(error);
        }
        if let ([only], None) = (&mut self.shards[..], &self.distinct)
            && only.failure.is_none()
        {
            // The shard may be the last of several, and in the middle of a block.
            if let Some(rest) = only.take_rest() {
                return Ok(Some(rest));
            }
            return match only.stream.next_rows().await? {
                NextRows::Block(block) => Ok(Some(block)),
                NextRows::End => Ok(None),
                NextRows::Failed(entry, error) => {
                    self.failed_at = Some(entry);
                    Err(error)
                }
            };
        }
        let mut builder = RowBlockBuilder::with_capacity(self.block_bytes + self.block_bytes / 8);
        while builder.len() < self.block_bytes {
            let merged = match self.fill().await {
                Ok(()) => self.merge_into(&mut builder),
                failed => failed,
            };
            if let Err(error) = merged {
                if builder.is_empty() {
                    return Err(error);
                }
                self.held = Some(error);
                return Ok(Some(builder.finish()));
            }
            if self.shards.is_empty() {
                break;
            }
        }
        self.is_long = self.block_bytes == BLOCK_BYTES;
        self.block_bytes = (self.block_bytes * 4).min(BLOCK_BYTES);
        Ok((!builder.is_empty()).then(|| builder.finish()))
    }

    /// Reads from all shards in parallel, until each has a current row or is finished.
    async fn fill(&mut self) -> Result<()> {
        let mut without = self.shards.iter_mut().filter(|shard| !shard.on_row);
        match (without.next(), without.next()) {
            (None, _) => Ok(()),
            (Some(only), None) => only.fill().await,
            (Some(one), Some(other)) => {
                let all = [one, other].into_iter().chain(without);
                try_join_all(all.map(Shard::fill)).await.map(drop)
            }
        }
    }

    /// Merges rows until the block is full or the current block of a shard is used up.
    fn merge_into(&mut self, builder: &mut RowBlockBuilder) -> Result<()> {
        self.shards.retain(|shard| shard.on_row);
        while builder.len() < self.block_bytes && !self.shards.is_empty() {
            let first = self.first();
            let shard = &mut self.shards[first];
            if let Some(error) = shard.failure.take() {
                self.failed_at = Some(shard.block.data.clone());
                return Err(error);
            }
            let wanted = match &mut self.distinct {
                Some(distinct) => distinct.is_new(shard.entry())?,
                None => true,
            };
            if wanted {
                builder.push_packed(&shard.block.data, shard.at..shard.next);
            }
            shard.move_to(shard.next);
            if !shard.on_row {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns the number of the shard whose row comes first. All shards must have a current row.
    fn first(&self) -> usize {
        let wanted = if self.reverse { Ordering::Greater } else { Ordering::Less };
        let mut first = 0;
        for at in 1..self.shards.len() {
            let (this, best) = (&self.shards[at], &self.shards[first]);
            let order = this.prefix.cmp(&best.prefix).then_with(|| this.entry().cmp(best.entry()));
            if order == wanted {
                first = at;
            }
        }
        first
    }

    /// Combines the partial aggregates of all shards into `totals`.
    pub async fn fold_aggregates(&mut self, totals: &mut [PartialAggregate]) -> Result<()> {
        join_all(self.shards.iter_mut().map(|shard| shard.stream.begin())).await;
        for shard in &mut self.shards {
            loop {
                match shard.stream.next().await? {
                    ShardBatch::Partials(partials) => {
                        for (total, partial) in totals.iter_mut().zip(&partials) {
                            total.merge(partial);
                        }
                    }
                    ShardBatch::Done => break,
                    ShardBatch::Failed(_, error) => return Err(error),
                    // A keep-alive.
                    ShardBatch::Rows(block) if block.rows == 0 => {}
                    ShardBatch::Rows(_) | ShardBatch::Moved(_) => {
                        return Err(Error::internal("a scan of aggregates received rows"));
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proto::rpc::rows::Row;

    use super::*;

    fn block(entries: &[String]) -> ShardBatch {
        let mut builder = RowBlockBuilder::default();
        entries.iter().for_each(|entry| builder.push(entry.as_bytes(), b""));
        ShardBatch::Rows(builder.finish())
    }

    /// Returns shards with these numbers of entries, in blocks of `block_rows`, and all entries in
    /// order.
    fn shards(counts: &[usize], block_rows: usize) -> (Vec<ShardStream>, Vec<String>) {
        let entries = |shard: usize, count: usize| -> Vec<String> {
            (0..count).map(|n| format!("{n:06} of shard {shard}, and some bytes more")).collect()
        };
        let all: Vec<Vec<String>> =
            counts.iter().enumerate().map(|(shard, count)| entries(shard, *count)).collect();
        let stream = |entries: &Vec<String>| {
            let blocks = entries.chunks(block_rows).map(block).chain([ShardBatch::Done]);
            ShardStream::from_batches(blocks.collect())
        };
        let streams = all.iter().map(stream).collect();
        let mut sorted = all.concat();
        sorted.sort();
        (streams, sorted)
    }

    #[tokio::test]
    async fn each_row_is_merged_once_in_order() {
        for counts in [&[1000][..], &[0, 1000], &[10, 1000], &[130, 1000, 3], &[400, 400], &[0, 0]]
        {
            for block_rows in [1, 7, 99, 5000] {
                let (streams, expected) = shards(counts, block_rows);
                let mut gather = ShardMerge::new(streams, false, None);
                let mut got = Vec::new();
                while let Some(block) = gather.next().await.expect("rows") {
                    assert_eq!(block.rows as usize, block.iter().count());
                    let text = |row: Row<'_>| String::from_utf8_lossy(row.entry).into_owned();
                    got.extend(block.iter().map(text));
                }
                assert!(got == expected, "{counts:?} in blocks of {block_rows}: {}", got.len());
            }
        }
    }

    #[tokio::test]
    async fn a_shard_fails_at_its_entry() {
        let rows =
            |entries: &[&str]| block(&entries.iter().map(|e| (*e).to_owned()).collect::<Vec<_>>());
        let failed = |entry: &'static str| {
            let error = Error::new(proto::ErrorCode::DivisionByZero, "division by zero");
            ShardBatch::Failed(Bytes::from_static(entry.as_bytes()), error)
        };
        let one = || vec![rows(&["a", "c"]), rows(&["e", "g"]), ShardBatch::Done];
        for (other, expected) in [
            (vec![rows(&["b"]), failed("f")], "abce"),
            (vec![failed("d")], "ac"),
            (vec![failed("0")], ""),
            (vec![rows(&["b"]), failed("z")], "abceg"),
        ] {
            let streams = [one(), other].map(ShardStream::from_batches);
            let mut gather = ShardMerge::new(streams.into(), false, None);
            let mut got = String::new();
            let error = loop {
                match gather.next().await {
                    Ok(Some(block)) => {
                        block.iter().for_each(|row| got += &String::from_utf8_lossy(row.entry));
                    }
                    Ok(None) => panic!("it fails behind {got}"),
                    Err(error) => break error,
                }
            };
            assert_eq!((&*got, error.code), (expected, proto::ErrorCode::DivisionByZero));
            assert!(gather.failed_at().is_some(), "{expected}");
        }
    }
}
