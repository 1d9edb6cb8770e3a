//! The merge of the scans of a divided statement ([`Merge`]) into the rows of its result.
//!
//! Each scan returns rows in the order of the index. In the key parts by which the statement was
//! divided, MISSING is treated as NULL. The merged rows are then in the order of the index too,
//! and equal rows of DISTINCT are adjacent. All scans read the epoch of the first scan, whose
//! lease keeps the epoch readable.

use std::cmp::Ordering;
use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use proto::model::ids::Epoch;
use proto::rpc::rows::{RowBlock, RowBlockBuilder, row_at};
use proto::rpc::scan::{Consistency, ScanRequest};
use proto::value::key::{LeadingParts, replace_missing_by_null};
use proto::{Error, ErrorCode, Result};
use router::ScanBatch;

use crate::access::{Access, BatchSource};
use crate::sql::plan::{IndexPlan, Merge};

/// The size of a merged block, in bytes, at which it is returned.
const BLOCK_BYTES: usize = 16 << 10;

/// The time for which scans of a statement keep their permits of the router while another scan of
/// the same statement waits for a permit.
const HOLD_MAX: Duration = Duration::from_millis(50);

/// Starts the other scans of a plan, if there are any. Returns the merge of all scans.
pub async fn start_merge(
    access: &Access,
    plan: &IndexPlan,
    first: Box<dyn BatchSource>,
) -> Result<Box<dyn BatchSource>> {
    let Some(merge) = &plan.merge else { return Ok(first) };
    let epoch = first.epoch();
    let mut scans = vec![Scan::new(first)];
    for other in &merge.others {
        let request = ScanRequest {
            consistency: Consistency::Epoch(epoch),
            own: plan.request.own,
            timeout_ms: plan.request.timeout_ms,
            hedge_after: plan.request.hedge_after,
            ..other.clone()
        };
        let opened = or_park(access.scan(request, None), scans.iter_mut()).await?;
        scans.push(Scan::new(opened));
    }
    Ok(Box::new(MergedScans::new(scans, epoch, plan, merge)))
}

/// Waits for a scan of a statement that needs a permit of the router. After [`HOLD_MAX`], the
/// statement's other scans are parked and release their permits. Otherwise such waiting
/// statements could hold all permits.
async fn or_park<'s, T>(
    wait: impl Future<Output = Result<T>>,
    others: impl Iterator<Item = &'s mut Scan>,
) -> Result<T> {
    let mut wait = std::pin::pin!(wait);
    match tokio::time::timeout(HOLD_MAX, wait.as_mut()).await {
        Ok(done) => done,
        Err(_) => {
            others.for_each(Scan::park);
            wait.await
        }
    }
}

/// One of the merged scans, with the position in its last block.
struct Scan {
    batches: Box<dyn BatchSource>,
    /// True if the scan has released its permit.
    is_parked: bool,
    block: RowBlock,
    /// The offset of the row after the current row, in bytes.
    next: usize,
    current: Option<Row>,
    is_ended: bool,
}

/// The current row of a scan.
struct Row {
    place: Range<usize>,
    /// The entry of the row, in which NULL replaces MISSING.
    read: Vec<u8>,
}

impl Scan {
    fn new(batches: Box<dyn BatchSource>) -> Self {
        Self {
            batches,
            is_parked: false,
            block: RowBlock::default(),
            next: 0,
            current: None,
            is_ended: false,
        }
    }

    fn park(&mut self) {
        self.batches.park();
        self.is_parked = true;
    }
}

/// The merge of several scans, ordered by their entries.
struct MergedScans {
    /// All scans, including finished ones.
    scans: Vec<Scan>,
    epoch: Epoch,
    reverse: bool,
    descending: Vec<bool>,
    parts: Vec<u16>,
    /// The number of leading key parts that form a row of DISTINCT; `None` without DISTINCT.
    distinct: Option<usize>,
    /// The leading key parts of the last returned row, for DISTINCT.
    last: Option<Vec<u8>>,
    skip: u64,
    left: u64,
    page_left: u64,
}

impl MergedScans {
    fn new(scans: Vec<Scan>, epoch: Epoch, plan: &IndexPlan, merge: &Merge) -> Self {
        Self {
            scans,
            epoch,
            reverse: plan.request.reverse,
            descending: plan.index.spec.descending(),
            parts: merge.parts.clone(),
            distinct: plan.request.distinct_parts.map(usize::from),
            last: None,
            skip: merge.offset,
            left: merge.limit.unwrap_or(u64::MAX),
            page_left: u64::MAX,
        }
    }

    /// Moves each scan to its next row or to its end, as far as that is possible without waiting.
    /// Returns false if a scan must be awaited.
    fn advance_scans(&mut self) -> Result<bool> {
        for scan in &mut self.scans {
            if scan.current.is_some() || scan.is_ended {
                continue;
            }
            let Some(place) = row_at(&scan.block.data, scan.next) else { return Ok(false) };
            let read = replace_missing_by_null(
                &scan.block.data[place.entry.clone()],
                &self.descending,
                &self.parts,
            )?;
            scan.current = Some(Row { place: scan.next..place.next, read });
            scan.next = place.next;
        }
        Ok(true)
    }

    /// Waits for the next block of each scan that needs one. If the future is dropped, nothing is
    /// lost.
    async fn fetch(&mut self) -> Result<()> {
        for at in 0..self.scans.len() {
            let (before, rest) = self.scans.split_at_mut(at);
            let Some((scan, after)) = rest.split_first_mut() else { return Ok(()) };
            let needs = scan.current.is_none() && !scan.is_ended;
            if !needs || row_at(&scan.block.data, scan.next).is_some() {
                continue;
            }
            let next = match scan.is_parked {
                true => or_park(scan.batches.next(), before.iter_mut().chain(after)).await?,
                // A scan that has a permit needs no other permit, so the others need not be
                // parked.
                false => scan.batches.next().await?,
            };
            scan.is_parked = false;
            match next {
                Some(ScanBatch::Rows(block)) => (scan.block, scan.next) = (block, 0),
                Some(ScanBatch::Aggregates(_)) => {
                    return Err(Error::internal("a scan of rows received aggregates"));
                }
                None => scan.is_ended = true,
            }
        }
        Ok(())
    }

    /// Returns the index of the scan whose current row comes first; `None` if all scans have
    /// ended.
    fn first(&self) -> Option<usize> {
        let wanted = if self.reverse { Ordering::Greater } else { Ordering::Less };
        let mut first: Option<(usize, &Row)> = None;
        for (at, scan) in self.scans.iter().enumerate() {
            let Some(row) = &scan.current else { continue };
            if first.is_none_or(|(_, best)| row.read.cmp(&best.read) == wanted) {
                first = Some((at, row));
            }
        }
        first.map(|(at, _)| at)
    }

    /// Returns true unless DISTINCT has already returned an equal row.
    fn is_new(&mut self, read: &[u8]) -> Result<bool> {
        let Some(parts) = self.distinct else { return Ok(true) };
        let parts = LeadingParts::of(read, self.descending.iter().take(parts).copied())?;
        if self.last.as_deref().is_some_and(|last| parts.looks_equal_to(last)) {
            return Ok(false);
        }
        self.last = Some(parts.bytes().to_vec());
        Ok(true)
    }

    /// Appends rows to a block until it is full or a scan must be awaited.
    fn merge_into(&mut self, builder: &mut RowBlockBuilder) -> Result<()> {
        while builder.len() < BLOCK_BYTES
            && self.left > 0
            && self.page_left > 0
            && self.advance_scans()?
        {
            let Some(first) = self.first() else { return Ok(()) };
            let Some(row) = self.scans[first].current.take() else { return Ok(()) };
            if !self.is_new(&row.read)? {
                continue;
            }
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            builder.push_packed(&self.scans[first].block.data, row.place);
            self.left -= 1;
            self.page_left -= 1;
        }
        Ok(())
    }

    /// Returns true if no further row is returned.
    fn is_at_end(&self) -> bool {
        let is_read = |scan: &Scan| scan.is_ended && scan.current.is_none();
        self.left == 0 || self.page_left == 0 || self.scans.iter().all(is_read)
    }
}

#[async_trait]
impl BatchSource for MergedScans {
    fn epoch(&self) -> Epoch {
        self.epoch
    }

    async fn next(&mut self) -> Result<Option<ScanBatch>> {
        loop {
            let mut builder = RowBlockBuilder::default();
            self.merge_into(&mut builder)?;
            if !builder.is_empty() {
                return Ok(Some(ScanBatch::Rows(builder.finish())));
            }
            if self.is_at_end() {
                return Ok(None);
            }
            self.fetch().await?;
        }
    }

    fn park(&mut self) {
        self.scans.iter_mut().for_each(Scan::park);
    }

    fn end_page_after(&mut self, rows: u64) {
        self.page_left = rows;
    }

    fn page_is_full(&self) -> bool {
        self.page_left == 0
    }

    fn token(&self) -> Result<Option<String>> {
        let what = "a scan that is merged from several has no token";
        Err(Error::new(ErrorCode::Unsupported, what))
    }
}

#[cfg(test)]
#[path = "scan_merge_tests.rs"]
mod tests;
