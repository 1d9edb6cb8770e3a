//! Tests of shard scans against simulated indexers.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use proto::model::ids::{BucketId, Epoch, Generation, IndexId, LocalIndexId, SliceId};
use proto::model::index::{IndexInfo, IndexSpec};
use proto::model::node::NodeInfo;
use proto::rpc::api::{CoordinatorApi, Directory, IndexerApi, ProjectorApi, ResultStream};
use proto::rpc::export::{ExportMessage, ExportRequest};
use proto::rpc::scan::{
    AppliedReport, Consistency, FirstBatch, HedgeAfter, Output, ScanRequest, ShardScan,
};

use proto::ErrorCode;

use super::super::attempt::FIRST_BATCH_TIMEOUT;
use super::super::shard_stream::NextRows;
use super::*;
use crate::context::RouterContext;
use crate::context::tests::context_of;

#[path = "hedged_tests.rs"]
mod hedged;

/// Delay of the simulated indexer.
const ANSWER: Duration = Duration::from_secs(4);
const TIMEOUT_MS: u64 = 10_000;

/// The scan calls of a simulated indexer, which answers no other calls.
#[async_trait]
pub(crate) trait Scans: Send + Sync + 'static {
    async fn scan(&self, scan: ShardScan) -> Result<ResultStream<ShardBatch>>;
    async fn first_batch(&self, _: ShardScan) -> Result<FirstBatch> {
        Err(Error::new(ErrorCode::Unsupported, "only streams"))
    }
}

struct Only<T>(Arc<T>);

#[async_trait]
impl<T: Scans> IndexerApi for Only<T> {
    async fn scan(&self, scan: ShardScan) -> Result<ResultStream<ShardBatch>> {
        self.0.scan(scan).await
    }
    async fn first_batch(&self, scan: ShardScan) -> Result<FirstBatch> {
        self.0.first_batch(scan).await
    }
    async fn watch_applied(&self) -> Result<ResultStream<AppliedReport>> {
        Err(Error::unavailable("not here"))
    }
    async fn checksum(&self, _: SliceId, _: Epoch) -> Result<(u64, u64)> {
        Err(Error::unavailable("not here"))
    }
    async fn export(&self, _: ExportRequest) -> Result<ResultStream<ExportMessage>> {
        Err(Error::unavailable("not here"))
    }
}

/// Returns an indexer that answers only scans.
fn only(indexer: impl Scans) -> Arc<dyn IndexerApi> {
    Arc::new(Only(Arc::new(indexer)))
}

/// An indexer with some rows of each slice.
pub(crate) struct Rows {
    pub of_slice: usize,
    /// Number of digits with which a row's number is printed.
    pub digits: usize,
    /// Number of rows in a batch.
    pub batch: usize,
}

/// An indexer with three rows of each slice, sent two at a time.
pub(crate) const THREE_ROWS: Rows = Rows { of_slice: 3, digits: 1, batch: 2 };

#[async_trait]
impl Scans for Rows {
    async fn scan(&self, scan: ShardScan) -> Result<ResultStream<ShardBatch>> {
        let digits = self.digits;
        let row = |n| scan.slices.iter().map(move |slice| format!("{n:0digits$} of {slice}"));
        let mut rows: Vec<String> = (0..self.of_slice).flat_map(row).collect();
        rows.sort();
        rows.retain(|row| scan.resume_after.as_ref().is_none_or(|after| row.as_bytes() > after));
        rows.truncate(scan.limit.map_or(usize::MAX, |limit| limit as usize));
        let block = |rows: &[String]| {
            let mut block = proto::rpc::rows::RowBlockBuilder::default();
            rows.iter().for_each(|row| block.push(row.as_bytes(), b""));
            Ok(ShardBatch::Rows(block.finish()))
        };
        let batches = rows.chunks(self.batch).map(block).chain([Ok(ShardBatch::Done)]);
        Ok(Box::pin(futures::stream::iter(batches.collect::<Vec<_>>())))
    }
}

/// The behaviour of a simulated node.
enum Node {
    /// Answers with the rows of [`THREE_ROWS`] after a delay.
    After(Duration),
    Refuses,
    /// Answers after a delay that the first slice has moved to node 2.
    Moves(Duration),
    /// Sends two rows of [`THREE_ROWS`] and then fails.
    Breaks,
    /// Answers with the rows of [`THREE_ROWS`] after a delay that the test changes.
    Paced(Arc<Mutex<Duration>>),
}

#[async_trait]
impl Scans for Node {
    async fn scan(&self, scan: ShardScan) -> Result<ResultStream<ShardBatch>> {
        match self {
            Node::After(answer) => tokio::time::sleep(*answer).await,
            Node::Paced(answer) => {
                let answer = *answer.lock().unwrap();
                tokio::time::sleep(answer).await;
            }
            Node::Refuses => return Err(Error::unavailable("connection refused")),
            Node::Moves(answer) => {
                tokio::time::sleep(*answer).await;
                let moved = ShardBatch::Moved(vec![(scan.slices[0], NodeId(2))]);
                return Ok(Box::pin(futures::stream::iter([Ok(moved)])));
            }
            Node::Breaks => {
                let broken = Err(Error::unavailable("connection reset"));
                let begin = THREE_ROWS.scan(scan).await?.take(1);
                return Ok(Box::pin(begin.chain(futures::stream::iter([broken]))));
            }
        }
        THREE_ROWS.scan(scan).await
    }
}

/// The simulated indexers; the first is node 1.
struct Played(Vec<Arc<dyn IndexerApi>>);

impl Directory for Played {
    fn coordinator(&self) -> Arc<dyn CoordinatorApi> {
        unreachable!("a shard scan asks indexers alone")
    }
    fn coordinator_member(&self, _: NodeId) -> Result<Arc<dyn CoordinatorApi>> {
        Err(Error::unavailable("not here"))
    }
    fn projector(&self, _: &NodeInfo) -> Arc<dyn ProjectorApi> {
        unreachable!("a shard scan asks indexers alone")
    }
    fn indexer(&self, node: &NodeInfo) -> Arc<dyn IndexerApi> {
        Arc::clone(&self.0[node.id.0 as usize - 1])
    }
}

fn context(indexers: Vec<Arc<dyn IndexerApi>>) -> RouterContext {
    let nodes = indexers.len() as u64;
    let mut context = context_of(nodes, Arc::new(Played(indexers)));
    context.config.hedge_after = HedgeAfter::Usual;
    context
}

/// Creates a plan for slices that are all on nodes 1 and 2, which are both this indexer.
pub(crate) fn plan(slices: u16, indexer: Arc<impl Scans>) -> ScanPlan {
    let indexer: Arc<dyn IndexerApi> = Arc::new(Only(indexer));
    plan_over(vec![vec![1, 2]; usize::from(slices)], vec![Arc::clone(&indexer), indexer])
}

/// Creates a plan for two slices on two different nodes.
pub(crate) fn plan_apart(indexer: Arc<impl Scans>) -> ScanPlan {
    let indexer: Arc<dyn IndexerApi> = Arc::new(Only(indexer));
    plan_over(vec![vec![1], vec![2]], vec![Arc::clone(&indexer), indexer])
}

/// A scan of slices with copies on the given nodes.
fn plan_over(placement: Vec<Vec<u64>>, indexers: Vec<Arc<dyn IndexerApi>>) -> ScanPlan {
    let spec = IndexSpec { slices: placement.len() as u16, ..IndexSpec::new("i", "b") };
    let placement = placement.into_iter().map(|nodes| nodes.into_iter().map(NodeId).collect());
    let request = ScanRequest {
        index: LocalIndexId { index: IndexId(1), generation: Generation(0) },
        ranges: Arc::default(),
        partitions: None,
        filter: None,
        reverse: false,
        ordered: true,
        distinct_parts: None,
        limit: None,
        offset: 0,
        output: Output::Rows { include: false },
        consistency: Consistency::Any,
        own: None,
        timeout_ms: TIMEOUT_MS,
        hedge_after: HedgeAfter::Usual,
    };
    ScanPlan {
        context: Arc::new(context(indexers)),
        index: Arc::new(IndexInfo::new(IndexId(1), BucketId(1), spec, placement.collect())),
        request: Arc::new(request),
        epoch: Epoch(1),
        resume_after: None,
        rows_max: None,
    }
}

#[tokio::test(start_paused = true)]
async fn split_shards_share_the_deadline() {
    let began = Instant::now();
    let plan = plan(4, Arc::new(Node::Moves(ANSWER)));
    let mut whole = plan.start(plan.place_slices(&first_slices(4)), false);
    let error = whole.next().await.expect_err("no node serves");
    assert!(error.is_retry(), "{error}");
    let took = began.elapsed();
    let whole = Duration::from_millis(TIMEOUT_MS);
    assert!(took >= whole && took < whole + ANSWER, "gave up after {took:?}");
}

fn first_slices(slices: u16) -> Vec<SliceNo> {
    (0..slices).map(SliceNo).collect()
}

/// Reads a shard scan of the slices to its end; returns its rows.
async fn read(plan: &ScanPlan, slices: u16) -> Result<Vec<String>> {
    let mut shard = plan.start(plan.place_slices(&first_slices(slices)), false);
    let mut rows = Vec::new();
    loop {
        let block = match shard.next_rows().await? {
            NextRows::Block(block) => block,
            NextRows::Failed(_, error) => return Err(error),
            NextRows::End => return Ok(rows),
        };
        rows.extend(block.iter().map(|row| String::from_utf8_lossy(row.entry).into_owned()));
    }
}

fn nodes(nodes: Vec<Node>) -> Vec<Arc<dyn IndexerApi>> {
    nodes.into_iter().map(only).collect()
}

#[tokio::test(start_paused = true)]
async fn a_hanging_node_is_abandoned_in_time_even_if_no_other_node_has_all_its_slices() {
    let (soon, hangs) = (Duration::from_millis(10), Duration::from_secs(3600));
    let all = nodes(vec![Node::After(hangs), Node::After(soon), Node::After(soon)]);
    let plan = plan_over(vec![vec![1, 2], vec![1, 3]], all);
    let began = Instant::now();
    let rows = read(&plan, 2).await.expect("each slice has a copy that answers");
    assert_eq!(rows, ["0 of 0", "0 of 1", "1 of 0", "1 of 1", "2 of 0", "2 of 1"]);
    let took = began.elapsed();
    assert!(took < 2 * FIRST_BATCH_TIMEOUT, "it was asked once, {took:?}");
}

#[tokio::test(start_paused = true)]
async fn the_error_of_a_hanging_node_names_index_slices_and_node() {
    let hangs = Node::After(Duration::from_secs(3600));
    let plan = plan_over(vec![vec![1], vec![1]], nodes(vec![hangs]));
    let error = read(&plan, 2).await.expect_err("no other node has the slices");
    assert_eq!(error.message, "index \"i\": slice 0 and 1 more: node 1 did not answer in time");
}

#[tokio::test(start_paused = true)]
async fn a_failed_shard_resumes_after_its_rows() {
    let all = ["0 of 0", "0 of 1", "1 of 0", "1 of 1", "2 of 0", "2 of 1"];
    // Both slices go on together, or each of them on a node of its own.
    for placement in [[vec![1, 2], vec![1, 2]], [vec![1, 2], vec![1, 3]]] {
        let soon = || Node::After(Duration::from_millis(10));
        let plan = plan_over(placement.to_vec(), nodes(vec![Node::Breaks, soon(), soon()]));
        assert_eq!(
            read(&plan, 2).await.expect("each slice has another node"),
            all,
            "{placement:?}"
        );
        let resumed = plan.context.resumed.load(Ordering::Relaxed);
        assert!(resumed > 0, "{placement:?}");
        let from_second = ScanPlan { resume_after: Some("0 of 0".into()), ..plan };
        assert_eq!(read(&from_second, 2).await.expect("rows"), all[1..], "{placement:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_scan_from_before_a_move_finds_the_slice_on_its_new_node() {
    let soon = Duration::from_millis(10);
    let plan = plan_over(vec![vec![1]], nodes(vec![Node::Moves(soon), Node::After(soon)]));
    let bucket = plan.index.bucket;
    let slice =
        SliceId { index: plan.index.id, generation: plan.index.generation, slice: SliceNo(0) };
    plan.context.applied.report(AppliedReport {
        node: NodeId(2),
        applied: vec![(bucket, Epoch(1))],
        readable: Some(vec![(slice, Epoch(1))]),
        rebuilt: Vec::new(),
    });
    let rows = read(&plan, 1).await.expect("node 2 reports the slice");
    assert_eq!(rows, ["0 of 0", "1 of 0", "2 of 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_node_gets_more_time_when_the_others_fail() {
    let slow = FIRST_BATCH_TIMEOUT * 3 / 2;
    let plan = plan_over(vec![vec![1, 2]], nodes(vec![Node::After(slow), Node::Refuses]));
    let rows = read(&plan, 1).await.expect("one node answers");
    assert_eq!(rows, ["0 of 0", "1 of 0", "2 of 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_slice_whose_nodes_are_silent_fails_at_once_and_is_named() {
    let plan = plan_over(vec![vec![1, 2], vec![2]], nodes(vec![Node::Refuses, Node::Refuses]));
    let connected = |node| {
        let (node, applied) = (NodeId(node), Vec::new());
        plan.context.applied.report(AppliedReport {
            node,
            applied,
            readable: None,
            rebuilt: Vec::new(),
        });
    };
    let fails = async |slices| {
        let began = Instant::now();
        let error = read(&plan, slices).await.expect_err("no node serves");
        (error.message, began.elapsed() >= Duration::from_millis(TIMEOUT_MS))
    };
    assert!(fails(2).await.1, "nothing is known of the nodes: the scan waits for them");
    plan.context.silent.send_replace([NodeId(2)].into());
    let (text, waited) = fails(2).await;
    assert!(!waited, "the leader does not hear of node 2, and neither does the router");
    assert_eq!(text, "index \"i\": slice 1 cannot be read: node 2 () is silent");
    assert!(fails(1).await.1, "slice 0 has another node");
    connected(2);
    assert!(fails(2).await.1, "the router still reaches node 2");
    plan.context.applied.remove_report(NodeId(2));
    plan.context.silent.send_replace([NodeId(1), NodeId(2)].into());
    let (text, waited) = fails(2).await;
    assert!(!waited && text.contains("slice 0 and 1 more"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_slice_that_is_rebuilt_fails_a_scan_that_needs_it_now() {
    let plan =
        plan_over(vec![vec![1], vec![2]], nodes(vec![Node::After(Duration::ZERO), Node::Refuses]));
    let rebuilds = |rebuilt| {
        let (node, applied, readable) = (NodeId(2), Vec::new(), Some(Vec::new()));
        plan.context.applied.report(AppliedReport { node, applied, readable, rebuilt });
    };
    rebuilds(vec![plan.index.local_id().slice(SliceNo(1))]);
    let began = Instant::now();
    let error = read(&plan, 2).await.expect_err("slice 1 is not there");
    assert!(began.elapsed() < Duration::from_millis(TIMEOUT_MS));
    let text = "index \"i\": slice 1 cannot be read: node 2 () rebuilds it from the documents";
    assert!(error.code == ErrorCode::Unavailable && error.message.starts_with(text), "{error}");
    assert!(error.hint.is_some_and(|hint| hint.contains("SHOW SLICES")));
}
