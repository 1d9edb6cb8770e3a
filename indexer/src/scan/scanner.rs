//! The scanner of a shard: reads the ranges of a request over the merged slices, filters the entries, and folds or packs
//! them, a batch at a time. Between batches it holds a snapshot and a place; a parked scanner holds only the place, and
//! continues with another snapshot of the same epoch.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use proto::expr::Expr;
use proto::expr::aggregate::Partial;
use proto::expr::cost::CostMeter;
use proto::expr::eval::{self, Scope};
use proto::model::index::IndexSpec;
use proto::rpc::rows::RowBlockBuilder;
use proto::rpc::scan::{AggregateCall, KeyRange, Output, ShardBatch, ShardScan};
use proto::value::Value;
use proto::value::key;
use proto::value::path::Step;
use proto::{Error, Result};

use storage::{Rows, Snapshot};

use super::columns::needs_include;

/// Bytes of the first batch: smaller, so that the first row arrives early.
const FIRST_BATCH_BYTES: usize = 4 << 10;
/// Cost of a step, after which other tasks run and a cancellation is seen: 16,384 entries without a filter, some
/// milliseconds. One more evaluation may exceed it.
pub(super) const STEP_COST: u64 = 4 << 20;
/// Cost of a step on a thread that serves connections as well: 2,048 entries without a filter, less than a hop to another
/// thread and back costs in the long run.
pub(super) const INLINE_STEP_COST: u64 = STEP_COST / 8;
/// Cost of reading an entry, beside that of its expressions.
const ENTRY_COST: u64 = 256;

/// An empty batch is sent after this cost without a row: a million entries, well within the shortest time-out.
const SIGN_OF_LIFE_COST: u64 = 64 * STEP_COST;

/// A scan in progress.
pub struct ShardScanner {
    /// `None` while the scan is parked.
    snapshot: Option<Arc<dyn Snapshot>>,
    spec: Arc<IndexSpec>,
    scan: ShardScan,
    /// The remaining ranges; the next one is last.
    ahead: Vec<KeyRange>,
    /// The range that is read, and its rows from all slices, merged.
    current: Option<(KeyRange, Box<dyn Rows>)>,
    builder: RowBlockBuilder,
    batch_bytes: usize,
    /// Bytes of rows in a full batch.
    batch_bytes_max: usize,
    rows_left: u64,
    partials: Vec<Partial>,
    /// True if the scan needs the included values.
    include: bool,
    /// For DISTINCT: the leading parts of the last row returned, by this scan or, before the resume point, by another replica. It
    /// applies across all ranges.
    last_prefix: Option<Bytes>,
    /// [`Self::memory_bytes`] of the last snapshot.
    memory_bytes: usize,
    /// Cost of the steps since the last batch.
    silent_cost: u64,
    /// True if an entry may cost about as much as a whole inline step.
    is_costly: bool,
    done: bool,
}

impl ShardScanner {
    /// A scan of a snapshot, whose full batches have this many bytes of rows.
    pub fn new(
        snapshot: Arc<dyn Snapshot>,
        scan: ShardScan,
        batch_bytes_max: usize,
    ) -> Result<Self> {
        let batch_bytes = FIRST_BATCH_BYTES.min(batch_bytes_max);
        let partials = match &scan.output {
            Output::Aggregates(calls) => {
                calls.iter().map(|call| Partial::new(call.function)).collect()
            }
            Output::Rows { .. } => Vec::new(),
        };
        let spec = Arc::clone(&snapshot.info().spec);
        let last_prefix = match (&scan.resume_after, scan.distinct_parts) {
            (Some(after), Some(parts)) => {
                Some(after.slice_ref(leading_parts(&spec, after, parts)?))
            }
            _ => None,
        };
        Ok(Self {
            ahead: ranges_ahead(&scan),
            include: needs_include(&scan, spec.keys.len()),
            current: None,
            builder: RowBlockBuilder::with_capacity(batch_bytes),
            batch_bytes,
            batch_bytes_max,
            rows_left: scan.limit.unwrap_or(u64::MAX),
            partials,
            last_prefix,
            memory_bytes: 0,
            silent_cost: 0,
            is_costly: may_be_costly(&scan),
            done: false,
            snapshot: Some(snapshot),
            spec,
            scan,
        })
    }

    /// Runs a step of about this cost and returns the next batch, or `None` to let other tasks run first. Not called
    /// after `Done`.
    pub fn step(&mut self, cost_max: u64) -> Result<Option<ShardBatch>> {
        if self.done {
            return Ok(Some(ShardBatch::Done));
        }
        let mut spent = 0;
        while spent < cost_max {
            if self.rows_left == 0 || !self.advance(&mut spent)? {
                self.done = true;
                return Ok(Some(self.last_batch()));
            }
            if self.builder.len() >= self.batch_bytes {
                self.batch_bytes = (self.batch_bytes * 4).min(self.batch_bytes_max);
                self.silent_cost = 0;
                return Ok(Some(ShardBatch::Rows(self.builder.finish())));
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

    /// Approximate memory of the scan while it reads: blocks of fragments, and the present batch.
    pub fn memory_bytes(&mut self) -> usize {
        if let Some(snapshot) = &self.snapshot {
            let blocks = snapshot.walk_bytes(&self.scan.slices, self.include);
            self.memory_bytes = blocks + self.batch_bytes_max;
        }
        self.memory_bytes
    }

    /// True if the next step needs no disk, and no entry so far took long to look at.
    pub fn may_run_inline(&self) -> bool {
        !self.is_costly && self.snapshot.as_ref().is_some_and(|snapshot| snapshot.is_in_memory())
    }

    /// True if the scan holds no snapshot.
    pub fn is_parked(&self) -> bool {
        self.snapshot.is_none()
    }

    /// Releases the snapshot and everything read from it.
    pub fn park(&mut self) {
        self.memory_bytes();
        self.snapshot = None;
        let Some((mut range, rows)) = self.current.take() else { return };
        // Before its first entry a scan has no place to resume from.
        if !rows.entry().is_empty() {
            go_behind(&mut range, rows.entry(), self.scan.reverse);
        }
        self.ahead.push(range);
    }

    /// Continues with another snapshot of the same epoch.
    pub fn unpark(&mut self, snapshot: Arc<dyn Snapshot>) {
        self.snapshot = Some(snapshot);
    }

    fn last_batch(&mut self) -> ShardBatch {
        if !self.partials.is_empty() {
            return ShardBatch::Partials(std::mem::take(&mut self.partials));
        }
        match self.builder.is_empty() {
            true => ShardBatch::Done,
            false => ShardBatch::Rows(self.builder.finish()),
        }
    }

    /// Processes one entry and adds its cost; false if there is none left.
    fn advance(&mut self, spent: &mut u64) -> Result<bool> {
        *spent += ENTRY_COST;
        let Some((_, rows)) = &mut self.current else {
            let Some(range) = self.ahead.pop() else { return Ok(false) };
            self.walk(range)?;
            return Ok(true);
        };
        if !rows.next()? {
            self.current = None;
            return Ok(true);
        }
        let (entry, include) = (rows.entry(), rows.include());
        let prefix = match self.scan.distinct_parts {
            Some(parts) => Some(leading_parts(&self.spec, entry, parts)?),
            None => None,
        };
        if prefix.is_some() && prefix == self.last_prefix.as_deref() {
            let prefix = Bytes::copy_from_slice(prefix.unwrap_or_default());
            self.skip_prefix(&prefix)?;
            return Ok(true);
        }
        let scope = EntryScope { spec: &self.spec, entry, include };
        let cost = CostMeter::for_evaluation();
        let passes = match &self.scan.filter {
            Some(filter) => eval::truth(filter, &scope, &cost)? == Some(true),
            None => true,
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
        self.is_costly |= cost.spent() > INLINE_STEP_COST / 2;
        if !passes {
            return Ok(true);
        }
        // The next entry with this prefix triggers the jump over all of them.
        self.last_prefix = prefix.map(Bytes::copy_from_slice);
        Ok(true)
    }

    /// Continues behind all entries that begin with `prefix`.
    fn skip_prefix(&mut self, prefix: &[u8]) -> Result<()> {
        let Some((mut range, _)) = self.current.take() else { return Ok(()) };
        if self.scan.reverse {
            range.high = Some(Bytes::copy_from_slice(prefix));
        } else {
            match key::successor(prefix) {
                Some(next) => range.low = next.into(),
                None => return Ok(()),
            }
        }
        self.walk(range)
    }

    fn walk(&mut self, range: KeyRange) -> Result<()> {
        let Some(snapshot) = &self.snapshot else {
            return Err(Error::internal("a step of a scan that is parked"));
        };
        let rows = snapshot.rows(&self.scan.slices, &range, self.scan.reverse, self.include)?;
        self.current = Some((range, rows));
        Ok(())
    }
}

/// Adds an entry to the states of aggregates.
fn add_to(
    partials: &mut [Partial],
    calls: &[AggregateCall],
    scope: &EntryScope<'_>,
    cost: &CostMeter,
) -> Result<()> {
    for (call, partial) in calls.iter().zip(partials) {
        match &call.argument {
            None => partial.add_row(),
            Some(argument) => {
                let value = eval::eval(argument, scope, cost)?;
                cost.add_value(&value)?;
                partial.add(&value);
            }
        }
    }
    Ok(())
}

/// True if the work for one entry depends on more than the length of its values: a pattern may pass a text many times.
fn may_be_costly(scan: &ShardScan) -> bool {
    let arguments = match &scan.output {
        Output::Aggregates(calls) => &calls[..],
        Output::Rows { .. } => &[],
    };
    let arguments = arguments.iter().filter_map(|call| call.argument.as_ref());
    let costly = |expr: &Expr| matches!(expr, Expr::Like { .. } | Expr::Call(..));
    arguments.chain(&scan.filter).any(|expr| expr.any(&mut |part| costly(part)))
}

/// The ranges that a scan reads, the first one last, without the part before the resume point.
fn ranges_ahead(scan: &ShardScan) -> Vec<KeyRange> {
    let mut ranges: Vec<KeyRange> =
        scan.ranges.iter().filter_map(|range| clip(range, scan)).collect();
    if !scan.reverse {
        ranges.reverse();
    }
    ranges
}

fn clip(range: &KeyRange, scan: &ShardScan) -> Option<KeyRange> {
    let mut range = range.clone();
    if let Some(after) = &scan.resume_after {
        go_behind(&mut range, after, scan.reverse);
    }
    let empty = range.high.as_ref().is_some_and(|high| *high <= range.low);
    (!empty).then_some(range)
}

/// Removes from a range the part that a scan has passed when it is at an entry.
fn go_behind(range: &mut KeyRange, entry: &[u8], reverse: bool) {
    if reverse {
        if range.high.as_ref().is_none_or(|high| high[..] > *entry) {
            range.high = Some(Bytes::copy_from_slice(entry));
        }
        return;
    }
    // The smallest entry greater than another one is that entry with a zero byte appended.
    let next = Bytes::from([entry, &[0][..]].concat());
    if next > range.low {
        range.low = next;
    }
}

/// The bytes of the first `parts` key parts of an entry.
fn leading_parts<'a>(spec: &IndexSpec, entry: &'a [u8], parts: u16) -> Result<&'a [u8]> {
    let mut len = 0;
    for part in spec.keys.iter().take(usize::from(parts)) {
        len += key::skip_part(&entry[len..], part.descending)?;
    }
    Ok(&entry[..len])
}

/// An entry as the scope of expressions: columns are decoded on demand.
struct EntryScope<'a> {
    spec: &'a Arc<IndexSpec>,
    entry: &'a [u8],
    include: &'a [u8],
}

impl EntryScope<'_> {
    fn decode(&self, column: usize) -> Result<Value> {
        let keys = &self.spec.keys;
        match keys.get(column) {
            Some(part) => {
                let before = leading_parts(self.spec, self.entry, column as u16)?.len();
                key::decode_part(&mut &self.entry[before..], part.descending)
            }
            None => {
                let mut rest = self.include;
                for _ in keys.len()..column {
                    let len = key::skip_part(rest, false)?;
                    rest = &rest[len..];
                }
                key::decode_part(&mut rest, false)
            }
        }
    }
}

impl Scope for EntryScope<'_> {
    fn path(&self, _steps: &[Step]) -> Cow<'_, Value> {
        Cow::Owned(Value::Missing)
    }

    fn document_id(&self) -> &str {
        let parts = leading_parts(self.spec, self.entry, self.spec.keys.len() as u16);
        let id = parts.map_or(&[][..], |parts| &self.entry[parts.len()..]);
        std::str::from_utf8(id).unwrap_or_default()
    }

    fn column(&self, n: u16) -> Cow<'_, Value> {
        Cow::Owned(self.decode(usize::from(n)).unwrap_or(Value::Missing))
    }

    fn column_cost(&self, n: u16) -> u64 {
        // The parts before a column are stepped over.
        let part = usize::from(n);
        let read = if part < self.spec.keys.len() { self.entry } else { self.include };
        read.len() as u64
    }
}

#[cfg(test)]
#[path = "scanner_tests.rs"]
mod tests;
