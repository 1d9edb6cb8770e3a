//! A scan in progress: its batches of rows, its pages, and the token that continues it later.

use std::time::Duration;

use bytes::Bytes;
use proto::expr::aggregate::PartialAggregate;
use proto::flow::Permit;
use proto::model::ids::Epoch;
use proto::plant::{self, Plant};
use proto::rpc::rows::{RowBlock, RowBlockBuilder};
use proto::rpc::scan::Output;
use proto::{Error, Result};
use tokio::time::Instant;

use super::gather::ShardMerge;
use super::merge_ahead::MergeAhead;
use super::place::ScanPosition;
use super::plan::ScanPlan;
use super::resume::fingerprint;
use super::source::{RowSource, begin_shards, memory_estimate};
use super::token::Token;
use crate::epochs::leases::EpochLease;

/// A scan in progress. Dropping it ends its shard scans.
pub struct ScanStream {
    /// The request, from which the shard scans are begun.
    plan: ScanPlan,
    lease: EpochLease,
    source: RowSource,
    place: ScanPosition,
    left: RowsLeft,
    page_left: u64,
    done: bool,
    /// `None` while the scan is parked.
    permit: Option<Permit>,
}

/// The number of rows that OFFSET still skips, and the number that LIMIT still allows.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowsLeft {
    pub offset: u64,
    pub limit: Option<u64>,
}

/// A batch of a scan.
#[derive(Clone, Debug)]
pub enum ScanBatch {
    /// Rows, in order if the scan is ordered.
    Rows(RowBlock),
    /// The aggregates of the whole scan, in the order of the calls.
    Aggregates(Vec<PartialAggregate>),
}

impl ScanStream {
    /// Creates a scan that begins at its plan's position.
    pub(super) fn new(
        plan: ScanPlan,
        lease: EpochLease,
        source: RowSource,
        permit: Permit,
        left: RowsLeft,
    ) -> Self {
        Self {
            place: ScanPosition::Behind(plan.resume_after.clone()),
            done: left.limit == Some(0),
            page_left: u64::MAX,
            permit: Some(permit),
            source,
            plan,
            lease,
            left,
        }
    }

    /// Returns the epoch that the scan reads.
    pub fn epoch(&self) -> Epoch {
        self.lease.epoch()
    }

    /// Ends the stream after this number of rows, even before the end of the scan. The token then
    /// continues after the last of them.
    pub fn end_page_after(&mut self, rows: u64) {
        self.page_left = rows;
    }

    /// Returns true if the page has reached its number of rows.
    pub fn page_is_full(&self) -> bool {
        self.page_left == 0
    }

    /// Parks the scan until the next read: releases its permit, its shard scans and their buffers,
    /// but not its position and its epoch. A scan whose reader is only slow should not be parked,
    /// because rows that shards have ready would be read again.
    pub fn park(&mut self) {
        match &mut self.source {
            RowSource::Ordered(gather) => gather.park(),
            RowSource::Ahead(_) => {
                self.source = RowSource::Ordered(ShardMerge::parked(self.plan.request.reverse));
            }
            RowSource::Unordered(unordered) => unordered.park(),
        }
        self.place = ScanPosition::Behind(self.place.resume_after());
        self.permit = None;
    }

    /// Waits for a permit, as a new scan does, and begins the shard scans again after the last
    /// row.
    async fn unpark(&mut self) -> Result<()> {
        let ScanPlan { context, index, request, .. } = &self.plan;
        let deadline = Instant::now() + Duration::from_millis(request.timeout_ms);
        let bytes = memory_estimate(index, request, context.config.scan_ahead_bytes);
        let permit = context.admission.admit(bytes, deadline).await?;
        if let RowSource::Ordered(gather) = &mut self.source {
            let rows_max = self.left.limit.map(|limit| limit.saturating_add(self.left.offset));
            let resume_after = self.place.resume_after();
            gather.resume(begin_shards(&ScanPlan { resume_after, rows_max, ..self.plan.clone() }));
        }
        self.permit = Some(permit);
        Ok(())
    }

    /// Moves the merge of a long scan to a separate task.
    fn merge_ahead(&mut self) {
        let is_long = matches!(&self.source, RowSource::Ordered(gather) if gather.is_long());
        if !is_long {
            return;
        }
        let parked = RowSource::Ordered(ShardMerge::parked(self.plan.request.reverse));
        if let RowSource::Ordered(gather) = std::mem::replace(&mut self.source, parked) {
            self.source = RowSource::Ahead(MergeAhead::begin(gather, &self.plan.context.env));
        }
    }

    /// Returns the next batch; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<ScanBatch>> {
        if self.permit.is_none() && !self.done {
            self.unpark().await?;
        }
        if let Output::Aggregates(calls) = &self.plan.request.output {
            if std::mem::replace(&mut self.done, true) {
                return Ok(None);
            }
            let mut totals: Vec<_> =
                calls.iter().map(|call| PartialAggregate::new(call.function)).collect();
            let RowSource::Ordered(gather) = &mut self.source else {
                return Err(Error::internal("a scan of aggregates has an unordered source"));
            };
            gather.fold_aggregates(&mut totals).await?;
            return Ok(Some(ScanBatch::Aggregates(totals)));
        }
        while !self.done && self.page_left > 0 {
            let block = match &mut self.source {
                RowSource::Ordered(gather) => gather.next().await?,
                RowSource::Ahead(ahead) => ahead.next().await?,
                RowSource::Unordered(unordered) => unordered.next().await?,
            };
            self.merge_ahead();
            let Some(block) = block else {
                self.done = true;
                break;
            };
            let block = self.cut_to_limits(block);
            if block.rows > 0 {
                return Ok(Some(ScanBatch::Rows(block)));
            }
        }
        Ok(None)
    }

    /// Returns the token that continues the scan; `None` if the scan is finished. Call this only
    /// to send the token to a client, because it keeps the epoch readable for some minutes.
    pub fn token(&self) -> Result<Option<String>> {
        if self.done {
            return Ok(None);
        }
        let (shards_done, resume_after, virtual_scans) = match &self.source {
            RowSource::Ordered(_) | RowSource::Ahead(_) => {
                (0, self.place.resume_after(), Vec::new())
            }
            RowSource::Unordered(unordered) => unordered.for_token(),
        };
        let token = Token {
            index: self.plan.index.id,
            generation: self.plan.index.generation,
            epoch: self.lease.epoch(),
            base_topology: self.plan.index.topology.number,
            request_hash: fingerprint(&self.plan.request)?,
            shards_done,
            resume_after,
            virtual_scans,
            limit_left: self.left.limit,
            offset_left: self.left.offset,
        };
        let token = token.encode()?;
        self.lease.keep_for_token(Instant::now());
        Ok(Some(token))
    }

    /// Removes the rows that OFFSET, LIMIT and the page exclude from a block, and records the
    /// position after it.
    fn cut_to_limits(&mut self, block: RowBlock) -> RowBlock {
        let rows = u64::from(block.rows);
        let skip = self.left.offset.min(rows);
        let take = self.left.limit.map_or(rows - skip, |limit| limit.min(rows - skip));
        let take = take.min(self.page_left);
        self.left.offset -= skip;
        self.page_left -= take;
        if let Some(limit) = &mut self.left.limit {
            *limit -= take;
            self.done |= *limit == 0;
        }
        let read = if plant::is(Plant::PageCutShort) { rows } else { skip + take };
        let last = || block.iter().nth(read.checked_sub(1)? as usize).map(|row| row.entry);
        match &mut self.source {
            RowSource::Unordered(unordered) => {
                if let Some(last) = last() {
                    unordered.note_delivered(last);
                }
            }
            RowSource::Ordered(_) | RowSource::Ahead(_) if read == 0 => {}
            RowSource::Ordered(_) | RowSource::Ahead(_) if read == rows => {
                self.place = ScanPosition::BehindBlock(block.clone());
            }
            RowSource::Ordered(_) | RowSource::Ahead(_) => {
                self.place = ScanPosition::Behind(last().map(Bytes::copy_from_slice));
            }
        }
        if take == rows {
            return block;
        }
        let mut cut = RowBlockBuilder::with_capacity(block.data.len());
        for row in block.iter().skip(skip as usize).take(take as usize) {
            cut.push(row.entry, row.include);
        }
        cut.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::ErrorCode;
    use proto::model::ids::BucketId;
    use proto::rpc::scan::ShardBatch;

    use super::super::shard;
    use super::super::shard_stream::ShardStream;
    use super::super::source::row_source;
    use super::*;
    use crate::epochs::leases::Leases;

    fn block(entries: &[&str]) -> ShardBatch {
        let mut block = RowBlockBuilder::with_capacity(64);
        entries.iter().for_each(|entry| block.push(entry.as_bytes(), &[]));
        ShardBatch::Rows(block.finish())
    }

    /// A scan at its beginning that reads from `source`.
    async fn stream(leases: &Leases, plan: ScanPlan, source: RowSource) -> ScanStream {
        let permit = plan.context.admission.admit(0, Instant::now()).await.expect("room");
        let left = RowsLeft { offset: plan.request.offset, limit: plan.request.limit };
        ScanStream::new(plan, leases.lease_epoch(BucketId(1), Epoch(5), 1), source, permit, left)
    }

    /// An ordered scan of the rows a to f in two blocks.
    async fn scan(leases: &Leases, offset: u64) -> ScanStream {
        let mut plan = shard::tests::plan(1, Arc::new(shard::tests::THREE_ROWS));
        let request = Arc::make_mut(&mut plan.request);
        (request.limit, request.offset) = (Some(5), offset);
        let batches = vec![block(&["a", "b", "c", "d"]), block(&["e", "f"]), ShardBatch::Done];
        let gather = ShardMerge::new(vec![ShardStream::from_batches(batches)], false, None);
        stream(leases, plan, RowSource::Ordered(gather)).await
    }

    async fn rows(scan: &mut ScanStream) -> String {
        let mut rows = String::new();
        while let Some(batch) = scan.next().await.unwrap() {
            let ScanBatch::Rows(block) = batch else { panic!("{batch:?}") };
            block.iter().for_each(|row| rows += std::str::from_utf8(row.entry).unwrap());
        }
        rows
    }

    #[tokio::test]
    async fn a_page_has_its_rows_and_its_token_continues_after_them() {
        let leases = Leases::default();
        for (page, offset, expected, limit_left) in
            [(2, 0, "ab", 3), (2, 1, "bc", 3), (4, 0, "abcd", 1), (1, 4, "e", 4)]
        {
            let mut scan = scan(&leases, offset).await;
            scan.end_page_after(page);
            assert_eq!(rows(&mut scan).await, expected);
            assert!(scan.page_is_full());
            let token = Token::decode(&scan.token().unwrap().unwrap()).unwrap();
            assert_eq!(
                token.resume_after.as_deref(),
                Some(&expected.as_bytes()[expected.len() - 1..])
            );
            assert_eq!((token.limit_left, token.offset_left), (Some(limit_left), 0));
        }
        let mut whole = scan(&leases, 0).await;
        whole.end_page_after(9);
        assert_eq!(rows(&mut whole).await, "abcde");
        assert_eq!(whole.token().unwrap(), None, "the limit is reached");
    }

    #[tokio::test]
    async fn a_parked_scan_holds_no_permit_and_continues_after_its_last_row() {
        let all = ["0 of 0", "0 of 1", "1 of 0", "1 of 1", "2 of 0", "2 of 1"];
        for (ordered, limit) in [(true, None), (false, None), (true, Some(4)), (false, Some(5))] {
            let mut plan = shard::tests::plan(2, Arc::new(shard::tests::THREE_ROWS));
            let request = Arc::make_mut(&mut plan.request);
            (request.ordered, request.limit) = (ordered, limit);
            let (context, source) = (plan.context.clone(), row_source(&plan, None));
            let mut scan = stream(&Leases::default(), plan, source).await;
            let mut rows = Vec::new();
            while let Some(batch) = scan.next().await.expect("rows") {
                let ScanBatch::Rows(block) = batch else { panic!("{batch:?}") };
                rows.extend(
                    block.iter().map(|row| String::from_utf8_lossy(row.entry).into_owned()),
                );
                assert!(
                    context.admission.try_admit(0).expect("little").is_none(),
                    "the scan is read"
                );
                scan.park();
                assert!(
                    context.admission.try_admit(0).expect("little").is_some(),
                    "the scan is parked"
                );
            }
            let expected = &all[..limit.map_or(6, |limit| limit as usize)];
            assert_eq!(rows, expected, "{ordered} {limit:?}");
        }
    }

    #[tokio::test]
    async fn a_long_scan_is_merged_ahead_and_parks_and_ends_like_any_other() {
        const ROWS: usize = 12_000;
        let row = |n| [0, 1].map(|slice| format!("{n:06} of {slice}"));
        let all: Vec<String> = (0..ROWS).flat_map(row).collect();
        for (parks_each, limit) in
            [(usize::MAX, None), (4, None), (1, None), (usize::MAX, Some(20_001)), (5, Some(9_000))]
        {
            let rows = shard::tests::Rows { of_slice: ROWS, digits: 6, batch: 1000 };
            let mut plan = shard::tests::plan_apart(Arc::new(rows));
            Arc::make_mut(&mut plan.request).limit = limit;
            plan.rows_max = limit;
            let source = row_source(&plan, None);
            let mut scan = stream(&Leases::default(), plan, source).await;
            let (mut rows, mut was_ahead, mut batches) = (Vec::new(), false, 0);
            while let Some(batch) = scan.next().await.expect("rows") {
                let ScanBatch::Rows(block) = batch else { panic!("{batch:?}") };
                rows.extend(
                    block.iter().map(|row| String::from_utf8_lossy(row.entry).into_owned()),
                );
                was_ahead |= matches!(scan.source, RowSource::Ahead(_));
                batches += 1;
                if batches % parks_each == 0 {
                    scan.park();
                }
            }
            assert!(rows == all[..limit.unwrap_or(2 * ROWS as u64) as usize], "{}", rows.len());
            assert_eq!(was_ahead, parks_each > 3, "parked each {parks_each} batches");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_parked_scan_that_gets_no_permit_in_time_fails_and_may_be_read_again() {
        let plan = shard::tests::plan(2, Arc::new(shard::tests::THREE_ROWS));
        let (context, source) = (plan.context.clone(), row_source(&plan, None));
        let mut scan = stream(&Leases::default(), plan, source).await;
        scan.park();
        let other = context.admission.admit(0, Instant::now()).await.expect("room");
        let error = scan.next().await.expect_err("another runs");
        assert_eq!(error.code, ErrorCode::TooBusy);
        drop(other);
        assert!(scan.next().await.expect("rows").is_some());
    }

    #[tokio::test]
    async fn a_token_outlives_its_scan() {
        let leases = Leases::default();
        let mut paged = scan(&leases, 0).await;
        paged.end_page_after(1);
        rows(&mut paged).await;
        drop(paged);
        assert!(leases.for_heartbeat(Instant::now()).is_empty(), "none was handed out");
        let paged = scan(&leases, 0).await;
        paged.token().unwrap().unwrap();
        drop(paged);
        assert_eq!(leases.for_heartbeat(Instant::now()), [(BucketId(1), Epoch(5))]);
    }
}
