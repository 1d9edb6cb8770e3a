//! Parallel requests to another copy, against simulated indexers.

use proto::model::topology::TopologyProvider;

use super::*;

/// A node that also answers calls for first batches, each with all of its rows.
struct First(Node);

#[async_trait]
impl Scans for First {
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
}

fn firsts(nodes: Vec<Node>) -> Vec<Arc<dyn IndexerApi>> {
    nodes.into_iter().map(|node| only(First(node))).collect()
}

const SOON: Duration = Duration::from_millis(1);
const LATE: Duration = Duration::from_millis(400);
const STAGE: Duration = Duration::from_millis(10);

/// Lets a router save budget for some parallel requests.
fn save_up(plan: &ScanPlan) {
    (0..2_000).for_each(|_| plan.context.hedging.earn_budget());
}

/// Makes all nodes report that they have applied an epoch.
fn applied(plan: &ScanPlan, epoch: u64) {
    let slices = 0..plan.index.topology.slices();
    for node in plan.context.catalog.load().nodes.keys() {
        let slice = |slice| plan.index.local_id().slice(SliceNo(slice));
        let is_there = |n: &u16| plan.index.topology.hosts(*node, SliceNo(*n));
        let readable = slices.clone().filter(is_there).map(|n| (slice(n), Epoch(0))).collect();
        let applied = vec![(plan.index.bucket, Epoch(epoch))];
        let report =
            AppliedReport { node: *node, applied, readable: Some(readable), rebuilt: Vec::new() };
        plan.context.applied.report(report);
    }
}

/// Reads a shard scan of two slices and checks its rows; returns the duration.
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
    while plan.context.hedging.is_avoided(NodeId(1)) {
        timed(&plan).await;
        tokio::time::sleep(STAGE).await;
    }
    assert!(timed(&plan).await < SOON, "it is asked first again");
}

/// Creates a plan for two slices on nodes 1 and 2, of which node 1 counts as slow.
fn plan_with_slow(one: Node, two: Node) -> ScanPlan {
    let plan = plan_over(vec![vec![1, 2]; 2], firsts(vec![one, two]));
    applied(&plan, 1);
    for _ in 0..3 {
        plan.context.hedging.note_missed(NodeId(1), Instant::now());
    }
    assert!(plan.context.hedging.is_avoided(NodeId(1)));
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

/// Returns the node, the slices, and whether it is a probe, of each shard of a scan.
fn placed(plan: &ScanPlan) -> Vec<(u64, Vec<u16>, bool)> {
    let shard = |shard: NodeSlices| {
        let slices = shard.slices.iter().map(|slice| slice.0).collect();
        (shard.node.map_or(0, |node| node.0), slices, shard.is_probe)
    };
    plan.shards().into_iter().map(shard).collect()
}

fn three_nodes(placement: Vec<Vec<u64>>) -> ScanPlan {
    let nodes = (0..3).map(|_| Node::After(SOON)).collect();
    let plan = plan_over(placement, firsts(nodes));
    applied(&plan, 1);
    plan
}

#[tokio::test(start_paused = true)]
async fn slices_of_a_slow_node_are_placed_at_their_other_copies_but_for_a_probe() {
    let plan = three_nodes(vec![vec![1, 2], vec![1, 3], vec![1]]);
    assert_eq!(placed(&plan), [(1, vec![0, 1, 2], false)]);
    let miss = || plan.context.hedging.note_missed(NodeId(1), Instant::now());
    (0..3).for_each(|_| miss());
    let elsewhere = [(1, vec![2], false), (2, vec![0], false), (3, vec![1], false)];
    assert_eq!(placed(&plan), elsewhere, "slice 2 has no other copy");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(placed(&plan), [(1, vec![0, 1, 2], true)]);
    assert!(plan.context.hedging.claim_probe(NodeId(1), Instant::now()));
    assert_eq!(placed(&plan), elsewhere, "one scan probes");
    (0..3).for_each(|_| plan.context.hedging.note_missed(NodeId(3), Instant::now()));
    assert_eq!(placed(&plan), [(1, vec![1, 2], false), (2, vec![0], false)], "both are slow");
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_has_not_applied_the_epoch_is_no_better_than_a_slow_node() {
    let plan = three_nodes(vec![vec![1, 2]]);
    let late = AppliedReport {
        node: NodeId(2),
        applied: vec![(plan.index.bucket, Epoch(0))],
        readable: Some(vec![(plan.index.local_id().slice(SliceNo(0)), Epoch(0))]),
        rebuilt: Vec::new(),
    };
    plan.context.applied.report(late);
    (0..3).for_each(|_| plan.context.hedging.note_missed(NodeId(1), Instant::now()));
    assert_eq!(placed(&plan), [(1, vec![0], false)]);
}

#[tokio::test(start_paused = true)]
async fn a_probe_of_a_node_that_is_slow_still_needs_no_budget() {
    let plan = plan_with_slow(Node::After(LATE), Node::After(SOON));
    tokio::time::sleep(Duration::from_millis(500)).await;
    let took = timed(&plan).await;
    assert!((STAGE..2 * STAGE).contains(&took), "{took:?}");
    let status = plan.context.hedging.status();
    assert_eq!((status.begun, status.won, status.refused), (1, 1, 0));
    assert!(plan.context.hedging.is_avoided(NodeId(1)));
    assert!(timed(&plan).await < STAGE);
}

#[tokio::test(start_paused = true)]
async fn a_busy_node_shares_its_slices_with_the_other_copies() {
    let plan = three_nodes(vec![vec![1, 2], vec![1, 3], vec![1]]);
    let busy: Vec<_> = (0..8).map(|_| plan.context.busy.count_request(NodeId(1))).collect();
    let shared = [(1, vec![2], false), (2, vec![0], false), (3, vec![1], false)];
    assert_eq!(placed(&plan), shared);
    let others: Vec<_> = (0..4).map(|_| plan.context.busy.count_request(NodeId(2))).collect();
    assert_eq!(placed(&plan), [(1, vec![0, 2], false), (3, vec![1], false)]);
    drop((busy, others));
    assert_eq!(placed(&plan), [(1, vec![0, 1, 2], false)], "at rest the first copy serves");
}

#[tokio::test(start_paused = true)]
async fn many_scans_at_once_use_both_copies_of_a_slice() {
    let plan = plan_over(vec![vec![1, 2]; 2], firsts(vec![Node::After(LATE), Node::After(LATE)]));
    applied(&plan, 1);
    let (mut scans, mut nodes) = (Vec::new(), Vec::new());
    for _ in 0..32 {
        let placed = plan.shards().remove(0);
        nodes.push(placed.node.expect("a node"));
        let mut stream = plan.start(placed, false);
        // The first poll sends the request.
        let asked = tokio::time::timeout(Duration::ZERO, stream.begin()).await;
        assert!(asked.is_err(), "nobody has answered yet");
        scans.push(stream);
    }
    let of_second = nodes.iter().filter(|node| **node == NodeId(2)).count();
    assert!((8..=20).contains(&of_second), "{of_second} of 32");
}

/// An indexer that sends three rows of each slice one by one; each after the first with a delay.
struct SlowRest(Duration);

#[async_trait]
impl Scans for SlowRest {
    async fn scan(&self, scan: ShardScan) -> Result<ResultStream<ShardBatch>> {
        let (rows, delay) = (Rows { batch: 1, ..THREE_ROWS }, self.0);
        let slow = rows.scan(scan).await?.enumerate().then(move |(n, batch)| async move {
            tokio::time::sleep(if n == 0 { Duration::ZERO } else { delay }).await;
            batch
        });
        Ok(Box::pin(slow))
    }
}

/// Creates a plan for a scan whose first node becomes slow after its first batch.
fn plan_with_slow_rest(delay: Duration, other: Node) -> ScanPlan {
    let plan = plan_over(vec![vec![1, 2]; 2], vec![only(SlowRest(delay)), only(other)]);
    applied(&plan, 1);
    save_up(&plan);
    plan
}

#[tokio::test(start_paused = true)]
async fn a_scan_goes_on_at_another_copy_when_a_node_becomes_slow_in_its_midst() {
    let plan = plan_with_slow_rest(LATE, Node::After(SOON));
    let took = timed(&plan).await;
    assert!((STAGE..2 * STAGE).contains(&took), "{took:?}");
    let status = plan.context.hedging.status();
    assert_eq!((status.begun, status.won), (1, 1));
}

/// The other copy is queried for the missing rows, not for the scan's original limit.
#[tokio::test(start_paused = true)]
async fn another_copy_reads_no_more_than_the_rest_of_a_limit() {
    let mut plan = plan_with_slow_rest(LATE, Node::After(SOON));
    plan.rows_max = Some(4);
    let rows = read(&plan, 2).await.expect("a copy answers");
    assert_eq!(rows, ["0 of 0", "0 of 1", "1 of 0", "1 of 1"]);
    assert_eq!(plan.context.hedging.status().won, 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_slow_in_the_midst_of_a_scan_goes_on_if_the_others_are_slower() {
    for other in [Node::After(4 * LATE), Node::Refuses] {
        let plan = plan_with_slow_rest(LATE, other);
        let took = timed(&plan).await;
        assert!(took >= 5 * LATE, "{took:?}");
        assert_eq!(plan.context.hedging.status().won, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_of_the_usual_pace_is_asked_alone() {
    let plan = plan_with_slow_rest(STAGE / 2, Node::After(SOON));
    timed(&plan).await;
    assert_eq!(plan.context.hedging.status().begun, 0);
}

/// An indexer that answers the call for a first batch immediately with the rows numbered 0, and
/// streams the others after a delay.
struct SlowTask(Duration);

#[async_trait]
impl Scans for SlowTask {
    async fn scan(&self, scan: ShardScan) -> Result<ResultStream<ShardBatch>> {
        tokio::time::sleep(self.0).await;
        THREE_ROWS.scan(scan).await
    }
    async fn first_batch(&self, scan: ShardScan) -> Result<FirstBatch> {
        let batch = THREE_ROWS.scan(scan).await?.next().await.expect("rows")?;
        Ok(FirstBatch { batch, is_whole: false })
    }
}

#[tokio::test(start_paused = true)]
async fn another_copy_is_asked_beside_a_node_that_is_slow_behind_its_first_batch() {
    let plan_with = |other| {
        let all = vec![only(SlowTask(LATE)), only(other)];
        let plan = plan_over(vec![vec![1, 2]; 2], all);
        applied(&plan, 1);
        plan
    };
    let plan = plan_with(Node::After(SOON));
    save_up(&plan);
    let took = timed(&plan).await;
    assert!((STAGE..2 * STAGE).contains(&took), "{took:?}");
    let status = plan.context.hedging.status();
    assert_eq!((status.begun, status.won), (1, 1));
    let plan = plan_with(Node::After(SOON));
    assert!(timed(&plan).await >= LATE, "there is no budget");
    for other in [Node::After(4 * LATE), Node::Refuses] {
        let plan = plan_with(other);
        save_up(&plan);
        let took = timed(&plan).await;
        assert!((LATE..LATE + STAGE).contains(&took), "{took:?}");
        assert_eq!(plan.context.hedging.status().won, 0);
    }
}
