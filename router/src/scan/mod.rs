//! Scans: scatter and gather.
//!
//! A scan fixes its epoch, takes the index's topology as its base, and reads every slice of it at that
//! epoch. The slices that one node answers for are one *shard scan*, merged there. Where order counts, the
//! shards are merged here ([`gather`]); else they follow each other, and what is found to have moved is read
//! behind them ([`unordered`], [`virtual_scan`]). Each shard scan is driven by a task of its own with a small
//! bounded channel, so that shards work side by side and a slow reader holds them back; when a shard fails it
//! is resumed on a replica after the last entry that came, which is exact because the epoch is the same there
//! ([`shard`]).
//!
//! In an ordered scan all slices stand at one entry, the last that was delivered, wherever they are: so a
//! slice that has moved is merged in from its new place, and a token needs no virtual-scan map.
//!
//! A scan holds a permit of the router's admission while it is read. One that its reader lays aside is
//! *parked* ([`ScanStream::park`]): permit, shard scans and what they have ready go, and its place and its epoch
//! stay. When it is read again it waits for a permit like a new one and goes on as a token would.

mod base;
mod gather;
mod round;
mod shard;
mod unordered;
pub mod virtual_scan;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::expr::aggregate::Partial;
use proto::flow::Permit;
use proto::model::ids::{Epoch, SliceNo};
use proto::model::index::IndexInfo;
use proto::model::topology::TopologyProvider;
use proto::plant::{self, Plant};
use proto::rpc::rows::RowBlock;
use proto::rpc::scan::{Consistency, Output, ScanRequest};
use proto::token::Token;
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;
use xxhash_rust::xxh3::xxh3_64;

use crate::leases::EpochLease;
use crate::service::Shared;
use gather::Gather;
use shard::Plan;
use unordered::Unordered;
use virtual_scan::Progress;

/// What a shard scan holds here, about; the transport's window is as large as what it may be ahead.
const SHARD_BYTES: usize = 2 * shard::AHEAD_BYTES + gather::BLOCK_BYTES;

/// A scan in progress; dropping it ends it everywhere.
pub struct ScanStream {
    /// How its shard scans are begun, and with which question.
    plan: Plan,
    lease: EpochLease,
    source: Source,
    resume_after: Option<Bytes>,
    offset_left: u64,
    limit_left: Option<u64>,
    page_left: u64,
    done: bool,
    /// Absent while it is parked.
    permit: Option<Permit>,
}

enum Source {
    Ordered(Gather),
    Unordered(Box<Unordered>),
}

/// What a scan returns, batch by batch.
#[derive(Clone, Debug)]
pub enum ScanBatch {
    /// Rows, in order if that was asked for.
    Rows(RowBlock),
    /// The aggregates of the whole scan, in the order of the calls.
    Aggregates(Vec<Partial>),
}

/// Begins a scan, or goes on with the one that a token names.
pub(crate) async fn begin(
    shared: Shared,
    mut index: Arc<IndexInfo>,
    mut request: ScanRequest,
    token: Option<&str>,
) -> Result<ScanStream> {
    let deadline = Instant::now() + Duration::from_millis(request.timeout_ms);
    let (mut limit, mut offset, mut resume_after) = (request.limit, request.offset, None);
    // Before anything is leased for it.
    let bytes = bytes_held(&index, &request);
    let permit = shared.admission.admit(bytes, deadline).await?;
    let mut progress = None;
    if let Some(text) = token {
        let token = accept(text, &index, &request)?;
        index = base::with_base(&shared, index, token.base_topology, deadline).await?;
        request.consistency = Consistency::Epoch(token.epoch);
        (limit, offset) = (token.limit_left, token.offset_left);
        if is_merged(&request) {
            resume_after = token.resume_after;
        } else {
            let (base, shards) = (&index.topology, token.shards_done);
            let resumed = Progress::resume(base, shards, token.resume_after, token.virtual_scans);
            progress = Some(resumed);
        }
    }
    let lease = shared.choose_epoch(&index, &request.consistency, deadline).await?;
    let plan = Plan {
        shared,
        index,
        request,
        epoch: lease.epoch(),
        resume_after: resume_after.clone(),
        rows_max: limit.map(|limit| limit.saturating_add(offset)),
        tell_moved: false,
        deadline: None,
    };
    Ok(ScanStream {
        source: plan_source(&plan, progress),
        plan,
        lease,
        resume_after,
        offset_left: offset,
        limit_left: limit,
        page_left: u64::MAX,
        done: limit == Some(0),
        permit: Some(permit),
    })
}

/// What rows on their way take: of each shard that is read at once what it is ahead, a window of the transport,
/// and the block that is merged.
fn bytes_held(index: &IndexInfo, request: &ScanRequest) -> usize {
    let places = index.topology.placement.iter().filter_map(|replicas| replicas.first());
    let nodes = places.collect::<BTreeSet<_>>().len().max(1);
    let shards = if is_merged(request) { nodes } else { unordered::SIDE_BY_SIDE.min(nodes) };
    shards * SHARD_BYTES
}

/// Are all shards read at once?
fn is_merged(request: &ScanRequest) -> bool {
    let aggregates = matches!(request.output, Output::Aggregates(_));
    request.ordered || request.distinct_parts.is_some() || aggregates
}

fn plan_source(plan: &Plan, progress: Option<Progress>) -> Source {
    if !is_merged(&plan.request) {
        let progress = progress.unwrap_or_else(|| Progress::new(&plan.index.topology));
        return Source::Unordered(Box::new(Unordered::new(plan.clone(), progress)));
    }
    let distinct = plan.request.distinct_parts.map(|parts| (parts, plan.index.spec.descending()));
    Source::Ordered(Gather::new(begin_shards(plan), plan.request.reverse, distinct))
}

/// Begins the shard scans of all slices.
fn begin_shards(plan: &Plan) -> Vec<shard::ShardStream> {
    let slices: Vec<_> = (0..plan.index.topology.slices()).map(SliceNo).collect();
    plan.shards(&slices).into_iter().map(|slices| plan.start(slices)).collect()
}

/// Reads a token back and checks that it belongs to this question.
fn accept(text: &str, index: &IndexInfo, request: &ScanRequest) -> Result<Token> {
    let token = Token::decode(text)?;
    let refuse = |why: &str| {
        Err(Error::new(ErrorCode::InvalidParameter, format!("continuation token: {why}"))
            .with_hint("begin the scan anew without a token"))
    };
    if (token.index, token.generation) != (index.id, index.generation) {
        return refuse("it belongs to another index");
    }
    if token.request_hash != fingerprint(request)? {
        return refuse("it belongs to another scan");
    }
    Ok(token)
}

/// What a scan asks, without the moment: a token goes on only with the same question.
fn fingerprint(request: &ScanRequest) -> Result<u64> {
    let mut question = request.clone();
    question.consistency = Consistency::Any;
    question.timeout_ms = 0;
    let bytes = postcard::to_stdvec(&question).map_err(|e| Error::internal(e.to_string()))?;
    Ok(xxh3_64(&bytes))
}

impl ScanStream {
    /// The epoch that it reads.
    pub fn epoch(&self) -> Epoch {
        self.lease.epoch()
    }

    /// Ends the stream after so many rows, though the scan is not finished: the token goes on behind the
    /// last of them.
    pub fn end_page_after(&mut self, rows: u64) {
        self.page_left = rows;
    }

    /// Has the page all the rows that were asked for?
    pub fn page_is_full(&self) -> bool {
        self.page_left == 0
    }

    /// Lays the scan aside until it is read on. It keeps its place and its epoch, and gives back what others may
    /// wait for. A reader that is only slow has no need of it: what a shard has ready is read again.
    pub fn park(&mut self) {
        match &mut self.source {
            Source::Ordered(gather) => gather.park(),
            Source::Unordered(unordered) => unordered.park(),
        }
        self.permit = None;
    }

    /// Waits for a permit, as long as a new scan would, and begins the shard scans behind the last row.
    async fn unpark(&mut self) -> Result<()> {
        let Plan { shared, index, request, .. } = &self.plan;
        let deadline = Instant::now() + Duration::from_millis(request.timeout_ms);
        let permit = shared.admission.admit(bytes_held(index, request), deadline).await?;
        if let Source::Ordered(gather) = &mut self.source {
            let rows_max = self.limit_left.map(|limit| limit.saturating_add(self.offset_left));
            let resume_after = self.resume_after.clone();
            gather.go_on(begin_shards(&Plan { resume_after, rows_max, ..self.plan.clone() }));
        }
        self.permit = Some(permit);
        Ok(())
    }

    /// The next batch, `None` after the last.
    pub async fn next(&mut self) -> Result<Option<ScanBatch>> {
        if self.permit.is_none() && !self.done {
            self.unpark().await?;
        }
        if let Output::Aggregates(calls) = &self.plan.request.output {
            if std::mem::replace(&mut self.done, true) {
                return Ok(None);
            }
            let mut totals: Vec<_> = calls.iter().map(|call| Partial::new(call.function)).collect();
            let Source::Ordered(gather) = &mut self.source else {
                return Err(Error::internal("aggregates are gathered"));
            };
            gather.fold(&mut totals).await?;
            return Ok(Some(ScanBatch::Aggregates(totals)));
        }
        while !self.done && self.page_left > 0 {
            let block = match &mut self.source {
                Source::Ordered(gather) => gather.next().await?,
                Source::Unordered(unordered) => unordered.next().await?,
            };
            let Some(block) = block else {
                self.done = true;
                break;
            };
            let block = self.cut(block);
            if block.rows > 0 {
                return Ok(Some(ScanBatch::Rows(block)));
            }
        }
        Ok(None)
    }

    /// Where the scan can go on; `None` when it is finished. Its epoch stays readable
    /// for some minutes, so it is to be asked for only to be handed out.
    pub fn token(&self) -> Result<Option<String>> {
        if self.done {
            return Ok(None);
        }
        let (shards_done, resume_after, virtual_scans) = match &self.source {
            Source::Ordered(_) => (0, self.resume_after.clone(), Vec::new()),
            Source::Unordered(unordered) => unordered.for_token(),
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
            limit_left: self.limit_left,
            offset_left: self.offset_left,
        };
        let token = token.encode()?;
        self.lease.keep_for_token(Instant::now());
        Ok(Some(token))
    }

    /// Leaves out the offset and what is above the limit or the page, and keeps the place.
    fn cut(&mut self, block: RowBlock) -> RowBlock {
        let rows = u64::from(block.rows);
        let skip = self.offset_left.min(rows);
        let take = self.limit_left.map_or(rows - skip, |limit| limit.min(rows - skip));
        let take = take.min(self.page_left);
        self.offset_left -= skip;
        self.page_left -= take;
        if let Some(limit) = &mut self.limit_left {
            *limit -= take;
            self.done |= *limit == 0;
        }
        let read = if plant::is(Plant::PageCutShort) { rows } else { skip + take };
        let last = read.checked_sub(1).and_then(|last| block.iter().nth(last as usize));
        if let Some(last) = last {
            match &mut self.source {
                Source::Ordered(_) => {
                    self.resume_after = Some(Bytes::copy_from_slice(last.entry));
                }
                Source::Unordered(unordered) => unordered.delivered(last.entry),
            }
        }
        if take == rows {
            return block;
        }
        let mut cut = proto::rpc::rows::RowBlockBuilder::with_capacity(block.data.len());
        for row in block.iter().skip(skip as usize).take(take as usize) {
            cut.push(row.entry, row.include);
        }
        cut.finish()
    }
}

#[cfg(test)]
mod tests {
    use proto::model::ids::BucketId;
    use proto::rpc::rows::RowBlockBuilder;
    use proto::rpc::scan::ShardBatch;

    use super::shard::ShardStream;
    use super::*;
    use crate::leases::Leases;

    fn block(entries: &[&str]) -> ShardBatch {
        let mut block = RowBlockBuilder::with_capacity(64);
        entries.iter().for_each(|entry| block.push(entry.as_bytes(), &[]));
        ShardBatch::Rows(block.finish())
    }

    /// A scan, from its beginning, of what `source` brings.
    async fn stream(leases: &Leases, plan: Plan, source: Source) -> ScanStream {
        let permit = plan.shared.admission.admit(0, Instant::now()).await.expect("room");
        ScanStream {
            lease: leases.take(BucketId(1), Epoch(5)),
            source,
            resume_after: None,
            offset_left: plan.request.offset,
            limit_left: plan.request.limit,
            page_left: u64::MAX,
            done: false,
            permit: Some(permit),
            plan,
        }
    }

    /// An ordered scan of a to f that comes in two blocks.
    async fn scan(leases: &Leases, offset: u64) -> ScanStream {
        let mut plan = shard::tests::plan(1, Arc::new(shard::tests::Rows));
        (plan.request.limit, plan.request.offset) = (Some(5), offset);
        let batches = vec![block(&["a", "b", "c", "d"]), block(&["e", "f"]), ShardBatch::Done];
        let gather = Gather::new(vec![ShardStream::of(batches)], false, None);
        stream(leases, plan, Source::Ordered(gather)).await
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
    async fn a_page_has_the_rows_that_were_asked_for_and_its_token_goes_on_behind_them() {
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
    async fn a_parked_scan_holds_no_place_and_goes_on_behind_its_last_row() {
        let all = ["0 of 0", "0 of 1", "1 of 0", "1 of 1", "2 of 0", "2 of 1"];
        for (ordered, limit) in [(true, None), (false, None), (true, Some(4)), (false, Some(5))] {
            let mut plan = shard::tests::plan(2, Arc::new(shard::tests::Rows));
            (plan.request.ordered, plan.request.limit) = (ordered, limit);
            let (shared, source) = (plan.shared.clone(), plan_source(&plan, None));
            let mut scan = stream(&Leases::default(), plan, source).await;
            let mut rows = Vec::new();
            while let Some(batch) = scan.next().await.expect("rows") {
                let ScanBatch::Rows(block) = batch else { panic!("{batch:?}") };
                rows.extend(
                    block.iter().map(|row| String::from_utf8_lossy(row.entry).into_owned()),
                );
                assert!(shared.admission.try_admit(0).expect("little").is_none(), "it is read");
                scan.park();
                assert!(shared.admission.try_admit(0).expect("little").is_some(), "it is parked");
            }
            let expected = &all[..limit.map_or(6, |limit| limit as usize)];
            assert_eq!(rows, expected, "{ordered} {limit:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_parked_scan_that_finds_no_place_in_time_is_told_so_and_may_ask_again() {
        let plan = shard::tests::plan(2, Arc::new(shard::tests::Rows));
        let (shared, source) = (plan.shared.clone(), plan_source(&plan, None));
        let mut scan = stream(&Leases::default(), plan, source).await;
        scan.park();
        let other = shared.admission.admit(0, Instant::now()).await.expect("room");
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
        assert!(leases.told(Instant::now()).is_empty(), "none was handed out");
        let paged = scan(&leases, 0).await;
        paged.token().unwrap().unwrap();
        drop(paged);
        assert_eq!(leases.told(Instant::now()), [(BucketId(1), Epoch(5))]);
    }
}
