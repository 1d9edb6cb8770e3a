//! The scanner of a shard: reads the ranges of a request over the merged slices, filters the
//! entries, and aggregates them or packs them as rows, a batch at a time. Between batches it
//! keeps a snapshot and the next entry; a parked scanner keeps only the entry, and continues with
//! another snapshot of the same epoch.

use std::sync::Arc;

use bytes::Bytes;
use proto::expr::aggregate::PartialAggregate;
use proto::expr::cost::CostMeter;
use proto::expr::eval::Evaluation;
use proto::model::index::IndexSpec;
use proto::rpc::api::FIRST_BATCH_BYTES;
use proto::rpc::rows::{RowBlock, RowBlockBuilder};
use proto::rpc::scan::{AggregateCall, FirstBatch, Output, ShardBatch, ShardScan};
use proto::value::key;
use proto::{Error, Result};

use storage::{Bounds, Rows, Snapshot, WalkStep};

use super::columns::{may_be_costly, needs_include};
use super::filter::Filter;
use super::scope::{EntryScope, leading_parts};
use super::walks::{EntryUse, Walk, walks};

/// Initial capacity of a batch's buffer in bytes.
const BUFFER_BYTES: usize = 1 << 10;
/// Cost of a step, after which other tasks run and a cancellation takes effect. The cost is that
/// of 16,384 entries without a filter, some milliseconds. The last evaluation of a step may
/// exceed it.
pub(super) const STEP_COST: u64 = 4 << 20;
/// Cost of a step on a thread that also serves connections: that of 2,048 entries without a
/// filter. A longer step would delay others more than a hop to another thread and back costs.
pub(super) const INLINE_STEP_COST: u64 = STEP_COST / 8;
/// Cost of reading an entry, in addition to that of its expressions.
const ENTRY_COST: u64 = 256;
/// Cost of opening a cursor: about the same as reading an entry.
const CURSOR_COST: u64 = ENTRY_COST;

/// Cost without a row after which an empty batch is sent, to show that the scan is running: that
/// of a million entries, well within the shortest time-out.
const SIGN_OF_LIFE_COST: u64 = 64 * STEP_COST;

/// A scan in progress: the remaining ranges, the snapshot that it reads, and the batch that is
/// being made.
pub struct ShardScanner {
    /// The snapshot that is read; `None` while the scan is parked.
    snapshot: Option<Arc<dyn Snapshot>>,
    spec: Arc<IndexSpec>,
    scan: Arc<ShardScan>,
    filter: Filter,
    /// The remaining walks (ranges to read), in reverse order: the last element is the next one.
    ahead: Vec<Walk>,
    /// The present walk (a range that is being read) and its cursor.
    current: Option<(Walk, Box<dyn Rows>)>,
    builder: RowBlockBuilder,
    /// The batch that was returned last. Its buffer is reused.
    sent: RowBlock,
    /// True if the entry that the present walk has read last is visible.
    is_on_row: bool,
    batch_bytes: usize,
    /// Size, in bytes, at which a batch of rows is full.
    batch_bytes_max: usize,
    rows_left: u64,
    partials: Vec<PartialAggregate>,
    /// True if the scan needs the included values.
    include: bool,
    /// For DISTINCT: the leading parts of the last row that was returned. After a resume point,
    /// this may be a row that another replica returned. They are compared across all ranges.
    last_prefix: Option<Bytes>,
    /// The result of [`Self::memory_bytes`] for the last snapshot.
    memory_bytes: usize,
    /// Cost of the steps since the last batch was sent.
    silent_cost: u64,
    /// True if the evaluation of an entry may take long.
    is_costly: bool,
    /// The entry for which the evaluation of the filter failed, and the error. The rows before
    /// this entry are delivered first.
    failed: Option<(Bytes, Error)>,
    done: bool,
}

impl ShardScanner {
    /// Creates a scan of a snapshot. Full batches have `batch_bytes_max` bytes of rows; the first
    /// batches are smaller, so that the first row arrives early.
    pub fn new(
        snapshot: Arc<dyn Snapshot>,
        scan: Arc<ShardScan>,
        batch_bytes_max: usize,
    ) -> Result<Self> {
        let filter = Filter::new(&scan, &snapshot.info().spec);
        Self::with_filter(snapshot, scan, filter, batch_bytes_max)
    }

    fn with_filter(
        snapshot: Arc<dyn Snapshot>,
        scan: Arc<ShardScan>,
        filter: Filter,
        batch_bytes_max: usize,
    ) -> Result<Self> {
        let partials = match &scan.output {
            Output::Aggregates(calls) => {
                calls.iter().map(|call| PartialAggregate::new(call.function)).collect()
            }
            Output::Rows { .. } => Vec::new(),
        };
        let spec = Arc::clone(&snapshot.info().spec);
        let last_prefix = match (&scan.resume_after, scan.distinct_parts) {
            (Some(after), Some(parts)) => {
                Some(after.slice_ref(leading_parts(&spec, after, parts)?.bytes()))
            }
            _ => None,
        };
        Ok(Self {
            ahead: walks(&scan, &spec),
            include: needs_include(&scan, spec.keys.len()),
            current: None,
            builder: RowBlockBuilder::with_capacity(BUFFER_BYTES),
            sent: RowBlock::default(),
            is_on_row: false,
            batch_bytes: FIRST_BATCH_BYTES.min(batch_bytes_max),
            batch_bytes_max,
            rows_left: scan.limit.unwrap_or(u64::MAX),
            partials,
            last_prefix,
            memory_bytes: 0,
            silent_cost: 0,
            is_costly: may_be_costly(&scan),
            failed: None,
            done: false,
            snapshot: Some(snapshot),
            spec,
            scan,
            filter,
        })
    }

    /// Returns a copy of the scan, from its beginning, that never waits for a disk. A step that
    /// would have to wait fails with `NotInMemory`.
    pub fn without_waiting(&self) -> Result<Self> {
        let snapshot = self.snapshot()?.without_waiting();
        let (scan, filter) = (Arc::clone(&self.scan), self.filter.copy_for_scanner());
        Self::with_filter(snapshot, scan, filter, self.batch_bytes_max)
    }

    fn snapshot(&self) -> Result<&Arc<dyn Snapshot>> {
        self.snapshot.as_ref().ok_or_else(|| Error::internal("a step of a scan that is parked"))
    }

    /// The request.
    pub fn scan(&self) -> &ShardScan {
        &self.scan
    }

    /// Runs a step of about the cost `cost_max`. Returns the next batch; `None` if no batch is
    /// complete, so that the caller lets other tasks run first. Must not be called after a batch
    /// that is `Done`.
    pub fn step(&mut self, cost_max: u64) -> Result<Option<ShardBatch>> {
        if self.done {
            return Ok(Some(ShardBatch::Done));
        }
        let mut spent = 0;
        while spent < cost_max {
            if self.rows_left == 0 || !self.advance(&mut spent, cost_max)? {
                return Ok(Some(self.last_batch()));
            }
            if self.builder.len() >= self.batch_bytes {
                self.batch_bytes = (self.batch_bytes * 4).min(self.batch_bytes_max);
                self.silent_cost = 0;
                self.sent = self.builder.finish();
                return Ok(Some(ShardBatch::Rows(self.sent.clone())));
            }
        }
        // An empty batch tells the router that the scan is still running.
        self.silent_cost += spent;
        if self.silent_cost >= SIGN_OF_LIFE_COST {
            self.silent_cost = 0;
            return Ok(Some(ShardBatch::Rows(self.builder.finish())));
        }
        Ok(None)
    }

    /// Reads the first batch of the scan, with one step of about the cost `cost_max`.
    pub fn first_batch(mut self, cost_max: u64) -> Result<FirstBatch> {
        let batch = match self.step(cost_max)? {
            Some(batch) => batch,
            None => ShardBatch::Rows(self.builder.finish()),
        };
        Ok(FirstBatch { batch, is_whole: self.done })
    }

    /// Approximate memory of the scan while it reads: blocks of fragments, and the present batch.
    pub fn memory_bytes(&mut self) -> usize {
        if let Some(snapshot) = &self.snapshot {
            let blocks = snapshot.walk_bytes(&self.scan.slices, self.include);
            self.memory_bytes = blocks + self.batch_bytes_max;
        }
        self.memory_bytes
    }

    /// True if the evaluation of an entry may take long.
    pub fn is_costly(&self) -> bool {
        self.is_costly
    }

    /// Returns true if the scan is parked: it has no snapshot.
    pub fn is_parked(&self) -> bool {
        self.snapshot.is_none()
    }

    /// Releases the snapshot and all blocks that were read from it. Keeps the next entry.
    pub fn park(&mut self) {
        self.memory_bytes();
        self.snapshot = None;
        let Some((walk, rows)) = self.current.take() else { return };
        let mut next = Vec::new();
        if rows.put_next_entry(&mut next) {
            // A document whose slice changes with its values leaves a deleted version of the same entry in the slice before.
            let is_shown =
                self.last_visible_entry(walk.reads, &*rows).is_some_and(|last| *last == next[..]);
            self.ahead.push(if is_shown { walk.starting_after(next) } else { walk.from(next) });
        }
        self.sent = RowBlock::default();
    }

    /// Returns the entry that a walk has read last, if the entry is visible at the scan's epoch.
    fn last_visible_entry(&self, reads: EntryUse, rows: &dyn Rows) -> Option<Bytes> {
        match reads {
            EntryUse::Packed => {
                let sent = || self.sent.iter().last().map(|row| row.entry);
                self.builder.last_entry().or_else(sent).map(Bytes::copy_from_slice)
            }
            EntryUse::Each => self.is_on_row.then(|| Bytes::copy_from_slice(rows.entry())),
            // These walks read one slice, or end with their first row.
            EntryUse::Counted | EntryUse::EndFor(_) => None,
        }
    }

    /// Continues with another snapshot of the same epoch.
    pub fn unpark(&mut self, snapshot: Arc<dyn Snapshot>) {
        self.snapshot = Some(snapshot);
    }

    fn last_batch(&mut self) -> ShardBatch {
        if self.failed.is_some() && !self.builder.is_empty() {
            return ShardBatch::Rows(self.builder.finish());
        }
        self.done = true;
        if let Some((entry, error)) = self.failed.take() {
            return ShardBatch::Failed(entry, error);
        }
        if !self.partials.is_empty() {
            return ShardBatch::Partials(std::mem::take(&mut self.partials));
        }
        match self.builder.is_empty() {
            true => ShardBatch::Done,
            false => ShardBatch::Rows(self.builder.finish()),
        }
    }

    /// Reads some entries of the present walk, or of the next one, and adds their cost to
    /// `spent`. Returns false if no walk is left.
    fn advance(&mut self, spent: &mut u64, cost_max: u64) -> Result<bool> {
        *spent += ENTRY_COST;
        // A walk that begins runs at once, so that a scan that is parked after each step still makes progress.
        if self.current.is_none() {
            let Some(walk) = self.ahead.pop() else { return Ok(false) };
            self.begin(walk, spent)?;
        }
        let Some((walk, rows)) = &mut self.current else { return Ok(false) };
        // A step passes at least all versions of one entry in all slices, including the transaction's own. Otherwise it could begin with
        // the same entry for ever.
        let looks = cost_max.saturating_sub(*spent) / ENTRY_COST;
        let looks = looks.max(2 * self.scan.slices.len() as u64 + 1);
        match walk.reads {
            EntryUse::Packed => {
                let bounds = Bounds { bytes: self.batch_bytes, rows: self.rows_left, looks };
                let walked = rows.pack(&mut self.builder, bounds)?;
                self.rows_left -= walked.rows;
                self.count_walked(walked, spent);
            }
            EntryUse::Counted => {
                let walked = rows.count(looks)?;
                self.partials.iter_mut().for_each(|partial| partial.add_rows(walked.rows));
                self.count_walked(walked, spent);
            }
            EntryUse::EndFor(call) => self.read_for_end(call)?,
            EntryUse::Each => self.evaluate_next(spent)?,
        }
        Ok(true)
    }

    /// Adds the cost of the entries that were read, and ends the present walk if it has no more
    /// entries.
    fn count_walked(&mut self, walked: WalkStep, spent: &mut u64) {
        *spent += walked.looks * ENTRY_COST;
        if walked.is_end {
            self.current = None;
        }
    }

    /// Reads the next entry in the search for the least or greatest leading key. `call` is the
    /// number of the aggregate that needs the key.
    fn read_for_end(&mut self, call: usize) -> Result<()> {
        let Some((_, rows)) = &mut self.current else { return Ok(()) };
        match rows.read_entry()? {
            Some(false) => return Ok(()),
            Some(true) => {
                let descending = self.spec.keys.first().is_some_and(|part| part.descending);
                let value = key::decode_part(&mut &rows.entry()[..], descending)?;
                self.partials[call].add(&value);
                self.ahead.retain(|walk| walk.reads != EntryUse::EndFor(call));
            }
            None => {}
        }
        self.current = None;
        Ok(())
    }

    /// Reads the next entry, evaluates the filter, and adds the entry to the batch or to the
    /// aggregates.
    fn evaluate_next(&mut self, spent: &mut u64) -> Result<()> {
        let Some((_, rows)) = &mut self.current else { return Ok(()) };
        let found = rows.read_entry()?;
        self.is_on_row = found == Some(true);
        match found {
            Some(true) => {}
            Some(false) => return Ok(()),
            None => {
                self.current = None;
                return Ok(());
            }
        }
        let (entry, include) = (rows.entry(), rows.include());
        let leading = match self.scan.distinct_parts {
            Some(parts) => Some(leading_parts(&self.spec, entry, parts)?),
            None => None,
        };
        if let (Some(leading), Some(last)) = (leading, &self.last_prefix)
            && leading.looks_equal_to(last)
        {
            let prefix = Bytes::copy_from_slice(leading.bytes());
            return self.skip_prefix(&prefix, spent);
        }
        let scope = EntryScope { spec: &self.spec, entry, include };
        let cost = CostMeter::for_evaluation();
        let passes = match (self.filter.passes(&scope, &cost), &self.scan.output) {
            (Err(error), Output::Rows { .. }) => {
                self.failed = Some((Bytes::copy_from_slice(entry), error.into()));
                self.current = None;
                self.ahead.clear();
                return Ok(());
            }
            (passes, _) => passes?,
        };
        match &self.scan.output {
            _ if !passes => {}
            Output::Rows { include: wanted } => {
                self.builder.push(entry, if *wanted { include } else { &[] });
                self.rows_left -= 1;
            }
            Output::Aggregates(calls) => {
                add_to_aggregates(&mut self.partials, calls, &scope, &cost)?
            }
        }
        *spent += cost.spent();
        if passes {
            // The next entry with this prefix triggers the jump over all of them.
            self.last_prefix = leading.map(|leading| Bytes::copy_from_slice(leading.bytes()));
        }
        Ok(())
    }

    /// Continues the present walk after all entries that begin with `prefix`.
    fn skip_prefix(&mut self, prefix: &[u8], spent: &mut u64) -> Result<()> {
        let Some((mut walk, _)) = self.current.take() else { return Ok(()) };
        if self.scan.reverse {
            walk.range.high = Some(Bytes::copy_from_slice(prefix));
        } else {
            match key::successor(prefix) {
                Some(next) => walk.range.low = next.into(),
                None => return Ok(()),
            }
        }
        self.begin(walk, spent)
    }

    /// Opens the cursor of a walk, and adds its cost to `spent`.
    fn begin(&mut self, walk: Walk, spent: &mut u64) -> Result<()> {
        let slices = match &walk.slice {
            Some(slice) => std::slice::from_ref(slice),
            None => &self.scan.slices[..],
        };
        *spent += self.snapshot()?.cursors(slices, self.include) as u64 * CURSOR_COST;
        let rows = self.snapshot()?.rows(slices, &walk.range, walk.reverse, self.include)?;
        self.current = Some((walk, rows));
        Ok(())
    }
}

/// Adds an entry to the partial results of the aggregates.
fn add_to_aggregates(
    partials: &mut [PartialAggregate],
    calls: &[AggregateCall],
    scope: &EntryScope<'_>,
    cost: &CostMeter,
) -> Result<()> {
    for (call, partial) in calls.iter().zip(partials) {
        match &call.argument {
            None => partial.add_rows(1),
            Some(argument) => {
                let value = Evaluation::of_query(scope, cost).eval(argument)?;
                cost.add_value(&value)?;
                partial.add(&value);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "scanner_tests.rs"]
mod tests;
