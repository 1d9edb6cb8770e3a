//! Parallel requests to another copy, against simulated indexers.

use proto::model::topology::TopologyProvider;
use proto::rpc::scan::FirstBatch;

use super::*;

/// A node that answers calls for first batches too, each with all of its rows.
struct First(Node);

#[async_trait]
impl IndexerApi for First {
    async fn scan(&self, scan: ShardScan) -> Result<ResultStream<ShardBatch>> {
        self.0.scan(scan).await
    }
    async fn first_batch(&self, scan: ShardScan) -> Result<FirstBatch> {
        let mut batches = self.0.scan(scan).await?;
        let mut all = proto::rpc::rows::RowBlockBuilder::default();
        while let Some(batch) = batches.next().await {
            if let ShardBatch::Rows(block) = batch? {
                block.iter().for_each(|row| all.push(row.entry, b""));
            }
        }
        Ok(FirstBatch { batch: ShardBatch::Rows(all.finish()), is_whole: true })
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

fn firsts(nodes: Vec<Node>) -> Vec<Arc<dyn IndexerApi>> {
    nodes.into_iter().map(|node| Arc::new(First(node)) as _).collect()
}

const SOON: Duration = Duration::from_millis(1);
const LATE: Duration = Duration::from_millis(400);
const STAGE: Duration = Duration::from_millis(10);

/// Lets a router save up some parallel requests.
fn save_up(plan: &ScanPlan) {
    (0..100).for_each(|_| plan.context.hedging.earn());
}

/// All nodes report that they have applied an epoch.
fn applied(plan: &ScanPlan, epoch: u64) {
    let slices = 0..plan.index.topology.slices();
    for node in plan.context.catalog.load().nodes.keys() {
        let slice = |slice| plan.index.local_id().slice(SliceNo(slice));
        let readable = slices.clone().map(|n| (slice(n), Epoch(0))).collect();
        let applied = vec![(plan.index.bucket, Epoch(epoch))];
        let report = AppliedReport { node: *node, applied, readable: Some(readable) };
        plan.context.applied.report(report);
    }
}

/// Reads a shard scan of two slices, whose rows must be right; returns its time.
async fn timed(plan: &ScanPlan) -> Duration {
    let began = Instant::now();
    let rows = read(plan, 2).await.expect("a copy answers");
    assert_eq!(rows, ["0 of 0", "0 of 1", "1 of 0", "1 of 1", "2 of 0", "2 of 1"]);
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn another_copy_is_asked_beside_a_slow_node_and_the_first_answer_wins() {
    // The other copies are on one node, or on two.
    for placement in [vec![vec![1, 2], vec![1, 2]], vec![vec![1, 2], vec![1, 3]]] {
        let all = firsts(vec![Node::After(LATE), Node::After(SOON), Node::After(SOON)]);
        let plan = plan_over(placement, all);
        applied(&plan, 1);
        save_up(&plan);
        let took = timed(&plan).await;
        assert!((STAGE..2 * STAGE).contains(&took), "{took:?}");
        let status = plan.context.hedging.status();
        assert_eq!((status.begun, status.won, status.refused), (1, 1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn the_slow_node_wins_if_it_answers_first_or_alone() {
    for other in [Node::After(4 * LATE), Node::Refuses] {
        let plan = plan_over(vec![vec![1, 2]; 2], firsts(vec![Node::After(LATE), other]));
        applied(&plan, 1);
        save_up(&plan);
        let took = timed(&plan).await;
        assert!((LATE..LATE + STAGE).contains(&took), "{took:?}");
        let status = plan.context.hedging.status();
        assert_eq!((status.begun, status.won), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn without_budget_a_slow_node_is_waited_for() {
    let all = firsts(vec![Node::After(LATE), Node::After(SOON)]);
    let plan = plan_over(vec![vec![1, 2]; 2], all);
    applied(&plan, 1);
    assert!(timed(&plan).await >= LATE);
    let status = plan.context.hedging.status();
    assert_eq!((status.begun, status.refused), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_missed_three_stages_is_asked_last_until_it_answers_a_probe() {
    let pace = Arc::new(Mutex::new(LATE));
    let all = firsts(vec![Node::Paced(Arc::clone(&pace)), Node::After(SOON)]);
    let plan = plan_over(vec![vec![1, 2]; 2], all);
    applied(&plan, 1);
    save_up(&plan);
    for _ in 0..3 {
        assert!(timed(&plan).await >= STAGE);
    }
    for _ in 0..30 {
        assert!(timed(&plan).await < STAGE, "node 1 is not waited for");
    }
    assert_eq!(plan.context.hedging.status().begun, 3, "avoidance needs no budget");
    *pace.lock().unwrap() = Duration::ZERO;
    tokio::time::sleep(Duration::from_secs(1)).await;
    while plan.context.hedging.avoids(NodeId(1)) {
        timed(&plan).await;
        tokio::time::sleep(STAGE).await;
    }
    assert!(timed(&plan).await < SOON, "it is asked first again");
}

/// A scan of two slices on nodes 1 and 2, of which node 1 is slow.
fn plan_with_slow(one: Node, two: Node) -> ScanPlan {
    let plan = plan_over(vec![vec![1, 2]; 2], firsts(vec![one, two]));
    applied(&plan, 1);
    for _ in 0..3 {
        plan.context.hedging.note_missed(NodeId(1), Instant::now());
    }
    assert!(plan.context.hedging.avoids(NodeId(1)));
    plan
}

#[tokio::test(start_paused = true)]
async fn a_slow_node_answers_if_the_others_do_not() {
    let plan = plan_with_slow(Node::After(LATE), Node::Refuses);
    assert!(timed(&plan).await < 2 * LATE);
    let plan = plan_with_slow(Node::After(LATE), Node::After(Duration::from_secs(3600)));
    let took = timed(&plan).await;
    assert!(took < FIRST_BATCH_TIMEOUT + 2 * LATE, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_has_not_applied_the_epoch_is_not_slow() {
    let plan = plan_over(vec![vec![1, 2]; 2], firsts(vec![Node::After(LATE), Node::After(SOON)]));
    applied(&plan, 0);
    save_up(&plan);
    assert!(timed(&plan).await >= LATE, "it may wait for the epoch, as the other one would");
    assert_eq!(plan.context.hedging.status(), crate::HedgingStatus::default());
}
