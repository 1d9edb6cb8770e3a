//! Merges the scans of a statement that is divided ([`Merge`]) into the rows of its result.
//!
//! Each scan has its rows in the order of the index. If MISSING reads as NULL in the parts by which the scan was divided, the merge of
//! all is in that order too, and equal rows of DISTINCT are neighbours. All scans read the epoch of the first one, whose lease
//! keeps it readable.

use std::cmp::Ordering;
use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use proto::model::ids::Epoch;
use proto::rpc::rows::{RowBlock, RowBlockBuilder, row_at};
use proto::rpc::scan::{Consistency, ScanRequest};
use proto::value::key::{LeadingParts, missing_as_null};
use proto::{Error, ErrorCode, Result};
use router::ScanBatch;

use crate::sql::backend::{Backend, BatchSource};
use crate::sql::plan::{IndexPlan, Merge};

/// Size at which a merged block is passed on.
const BLOCK_BYTES: usize = 16 << 10;

/// Time for which scans keep their permits of the router while another one of the statement waits.
const HOLD_MAX: Duration = Duration::from_millis(50);

/// Begins the other scans of a plan, if it has any, and merges them with the first one.
pub async fn merged(
    backend: &dyn Backend,
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
        let opened = or_park(backend.scan(request, None), scans.iter_mut()).await?;
        scans.push(Scan::new(opened));
    }
    Ok(Box::new(MergedScans::new(scans, epoch, plan, merge)))
}

/// Waits for a scan that needs a permit of the router. If that takes more than a moment, the other scans may hold it, or other such
/// statements that wait as well: so the other scans give theirs back.
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

/// A scan, and a place in its last block.
struct Scan {
    batches: Box<dyn BatchSource>,
    /// True if it has given its permit back.
    is_parked: bool,
    block: RowBlock,
    /// The index of the row after the current one.
    next: usize,
    current: Option<Row>,
    is_ended: bool,
}

/// A row of a block.
struct Row {
    place: Range<usize>,
    /// The entry of the current row, in which MISSING reads as NULL.
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

struct MergedScans {
    /// The scans, including those at their end.
    scans: Vec<Scan>,
    epoch: Epoch,
    reverse: bool,
    descending: Vec<bool>,
    parts: Vec<u16>,
    /// The number of leading parts that make up a row of DISTINCT.
    distinct: Option<usize>,
    /// The parts of the last row, for DISTINCT.
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

    /// Moves each scan onto a row or to its end, without waiting; false if the caller has to wait for one.
    fn settle(&mut self) -> Result<bool> {
        for scan in &mut self.scans {
            if scan.current.is_some() || scan.is_ended {
                continue;
            }
            let Some(place) = row_at(&scan.block.data, scan.next) else { return Ok(false) };
            let read = missing_as_null(
                &scan.block.data[place.entry.clone()],
                &self.descending,
                &self.parts,
            )?;
            scan.current = Some(Row { place: scan.next..place.next, read });
            scan.next = place.next;
        }
        Ok(true)
    }

    /// Waits for the next blocks of the scans that need one. Nothing is lost if the call is dropped.
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
                // A scan with a permit is only slow.
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

    /// The index of the scan whose row is first in the order; `None` if all have ended.
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

    /// True if DISTINCT has returned no equal row yet.
    fn is_new(&mut self, read: &[u8]) -> Result<bool> {
        let Some(parts) = self.distinct else { return Ok(true) };
        let parts = LeadingParts::of(read, self.descending.iter().take(parts).copied())?;
        if self.last.as_deref().is_some_and(|last| parts.read_like(last)) {
            return Ok(false);
        }
        self.last = Some(parts.bytes().to_vec());
        Ok(true)
    }

    /// Merges rows until the block is full, or a scan has to be waited for.
    fn merge_into(&mut self, builder: &mut RowBlockBuilder) -> Result<()> {
        while builder.len() < BLOCK_BYTES && self.left > 0 && self.page_left > 0 && self.settle()? {
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
