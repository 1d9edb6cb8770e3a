//! The scanner of a shard: reads the ranges of a request over the merged slices, filters the
//! entries, and folds or packs them, a batch at a time. Between batches it keeps a snapshot and the
//! next entry; a parked scanner keeps only the entry, and continues with another snapshot of the
//! same epoch.

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

use storage::{Bounds, Rows, Snapshot, WalkPiece};

use super::columns::{may_be_costly, needs_include};
use super::filter::Filter;
use super::scope::{EntryScope, leading_parts};
use super::walks::{Reads, Walk, walks};

/// Initial capacity of a batch's buffer in bytes.
const BUFFER_BYTES: usize = 1 << 10;
/// Cost of a step, after which other tasks run and a cancellation takes effect: 16,384 entries
/// without a filter, some milliseconds. The last evaluation of a step may exceed it.
pub(super) const STEP_COST: u64 = 4 << 20;
/// Cost of a step on a thread that also serves connections: 2,048 entries without a filter. A
/// longer step would delay others more than a hop to another thread and back costs.
pub(super) const INLINE_STEP_COST: u64 = STEP_COST / 8;
/// Cost of reading an entry, in addition to that of its expressions.
const ENTRY_COST: u64 = 256;
/// Cost of opening a cursor: about that of reading an entry.
const CURSOR_COST: u64 = ENTRY_COST;

/// An empty batch is sent after this cost without a row, as a sign of life: a million entries, well
/// within the shortest time-out.
const SIGN_OF_LIFE_COST: u64 = 64 * STEP_COST;

/// A scan in progress.
pub struct ShardScanner {
    /// `None` while the scan is parked.
    snapshot: Option<Arc<dyn Snapshot>>,
    spec: Arc<IndexSpec>,
    scan: Arc<ShardScan>,
    filter: Filter,
    /// The remaining walks; the next one is the last element.
    ahead: Vec<Walk>,
    /// The present walk and its cursor.
    current: Option<(Walk, Box<dyn Rows>)>,
    builder: RowBlockBuilder,
    /// The batch that was returned last, whose buffer is reused.
    sent: RowBlock,
    /// True if the entry that the walk has read last is visible.
    is_on_row: bool,
    batch_bytes: usize,
    /// Bytes of rows in a full batch.
    batch_bytes_max: usize,
    rows_left: u64,
    partials: Vec<PartialAggregate>,
    /// True if the scan needs the included values.
    include: bool,
    /// For DISTINCT: the leading parts of the last row that was returned, by this scan or, before
    /// its resume point, by a scan of another replica. They are compared across all ranges.
    last_prefix: Option<Bytes>,
    /// The result of [`Self::memory_bytes`] for the last snapshot.
    memory_bytes: usize,
    /// Cost of the steps since the last batch was sent.
    silent_cost: u64,
    /// True if the evaluation of an entry may take long.
    is_costly: bool,
    /// The entry for which the evaluation of the filter failed, and the error. The rows before it
    /// are delivered first.
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

    /// Returns a copy of the scan, from its beginning, that does not wait for a disk: a step that
    /// would wait fails with `NotInMemory`.
    pub fn without_waiting(&self) -> Result<Self> {
        let snapshot = self.snapshot()?.without_waiting();
        let (scan, filter) = (Arc::clone(&self.scan), self.filter.another());
        Self::with_filter(snapshot, scan, filter, self.batch_bytes_max)
    }

    fn snapshot(&self) -> Result<&Arc<dyn Snapshot>> {
        self.snapshot.as_ref().ok_or_else(|| Error::internal("a step of a scan that is parked"))
    }

    /// The request.
    pub fn scan(&self) -> &ShardScan {
        &self.scan
    }

    /// Runs a step of about the cost `cost_max`. Returns the next batch; `None` if the caller
    /// should let other tasks run first. Must not be called after a batch that is `Done`.
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

    /// Reads the first batch of the scan with one step of about the cost `cost_max`.
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

    /// Returns true if the scan has no snapshot.
    pub fn is_parked(&self) -> bool {
        self.snapshot.is_none()
    }

    /// Releases the snapshot and everything read from it.
    pub fn park(&mut self) {
        self.memory_bytes();
        self.snapshot = None;
        let Some((walk, rows)) = self.current.take() else { return };
        let mut next = Vec::new();
        if rows.put_ahead(&mut next) {
            // A document whose slice changes with its values leaves a deleted version of the same entry in the slice before.
            let is_shown =
                self.last_shown(walk.reads, &*rows).is_some_and(|last| *last == next[..]);
            self.ahead.push(if is_shown { walk.behind(next) } else { walk.from(next) });
        }
        self.sent = RowBlock::default();
    }

    /// Returns the entry that a walk has read last, if the entry is visible.
    fn last_shown(&self, reads: Reads, rows: &dyn Rows) -> Option<Bytes> {
        match reads {
            Reads::Packed => {
                let sent = || self.sent.iter().last().map(|row| row.entry);
                self.builder.last_entry().or_else(sent).map(Bytes::copy_from_slice)
            }
            Reads::Each => self.is_on_row.then(|| Bytes::copy_from_slice(rows.entry())),
            // These walks read one slice, or end with their first row.
            Reads::Counted | Reads::EndFor(_) => None,
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

    /// Reads a piece of the present walk and adds its cost to `spent`; returns false if no walk is
    /// left.
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
            Reads::Packed => {
                let bounds = Bounds { bytes: self.batch_bytes, rows: self.rows_left, looks };
                let walked = rows.pack(&mut self.builder, bounds)?;
                self.rows_left -= walked.rows;
                self.pass(walked, spent);
            }
            Reads::Counted => {
                let walked = rows.count(looks)?;
                self.partials.iter_mut().for_each(|partial| partial.add_rows(walked.rows));
                self.pass(walked, spent);
            }
            Reads::EndFor(call) => self.look_for_end(call)?,
            Reads::Each => self.look_at_one(spent)?,
        }
        Ok(true)
    }

    /// Adds the cost of a piece of the present walk, and ends the walk at its end.
    fn pass(&mut self, walked: WalkPiece, spent: &mut u64) {
        *spent += walked.looks * ENTRY_COST;
        if walked.is_end {
            self.current = None;
        }
    }

    /// Reads the next entry in the search for the least or greatest leading key of the aggregate
    /// `call`.
    fn look_for_end(&mut self, call: usize) -> Result<()> {
        let Some((_, rows)) = &mut self.current else { return Ok(()) };
        match rows.look()? {
            Some(false) => return Ok(()),
            Some(true) => {
                let descending = self.spec.keys.first().is_some_and(|part| part.descending);
                let value = key::decode_part(&mut &rows.entry()[..], descending)?;
                self.partials[call].add(&value);
                self.ahead.retain(|walk| walk.reads != Reads::EndFor(call));
            }
            None => {}
        }
        self.current = None;
        Ok(())
    }

    /// Reads the next entry of a walk that evaluates each entry.
    fn look_at_one(&mut self, spent: &mut u64) -> Result<()> {
        let Some((_, rows)) = &mut self.current else { return Ok(()) };
        let found = rows.look()?;
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
            && leading.read_like(last)
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
            Output::Aggregates(calls) => add_to(&mut self.partials, calls, &scope, &cost)?,
        }
        *spent += cost.spent();
        if passes {
            // The next entry with this prefix triggers the jump over all of them.
            self.last_prefix = leading.map(|leading| Bytes::copy_from_slice(leading.bytes()));
        }
        Ok(())
    }

    /// Continues after all entries that begin with `prefix`.
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

/// Adds an entry to the states of aggregates.
fn add_to(
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
