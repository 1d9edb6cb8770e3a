//! A vbucket moves from one projector to another without a visible interruption of pushes, streams and reports. A
//! cancelled hand-over has no effect.

use std::sync::Arc;
use std::time::Duration;

use crate::common::*;
use bytes::Bytes;
use futures::StreamExt;
use projector::Config;
use projector::testing::DocumentStore;
use proto::ErrorCode;
use proto::client::source::source_of;
use proto::model::assignment::{HandOver, VbucketAssignment};
use proto::model::bucket::*;
use proto::model::catalog::*;
use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::ids::*;
use proto::model::index::*;
use proto::rpc::api::*;
use proto::rpc::command::{Command, FinishHandOver};
use proto::rpc::mutation::*;
use tokio::time::timeout;

pub const OTHER: NodeId = NodeId(2);
pub const BRANCH: u64 = 5;

/// Two projectors of a pushed bucket. The first owns vbuckets 0 and 2, the other 1 and 3.
pub struct Pair {
    pub first: World,
    pub other: World,
    pub assignment: VbucketAssignment,
    cas: u64,
    pub indexes: Vec<Arc<IndexInfo>>,
}

impl Pair {
    pub async fn new() -> Self {
        Self::with(|_| ()).await
    }

    /// Starts a pair of projectors with other settings.
    pub async fn with(change: impl Fn(&mut Config)) -> Self {
        let first = World::new(&change).await;
        let other = World::beside_with(&first, OTHER, change).await;
        let assignment = VbucketAssignment::round_robin(VBUCKETS, &[PROJECTOR, OTHER]);
        let mut pair = Self { first, other, assignment, cas: 0, indexes: Vec::new() };
        pair.show(pair.assignment.clone());
        pair
    }

    fn catalog(&self) -> Catalog {
        let bucket = BucketInfo::new(PUSHED, "p", VBUCKETS, SourceKind::Push, PROJECTOR);
        let bucket = bucket.with_assignment(self.assignment.clone());
        let node = |id| (id, Arc::new(projector_info(id)));
        Catalog {
            cas: self.cas,
            buckets: [(PUSHED, Arc::new(bucket))].into(),
            nodes: [PROJECTOR, OTHER].map(node).into(),
            indexes: self.indexes.iter().map(|index| (index.id, Arc::clone(index))).collect(),
            ..Catalog::default()
        }
    }

    pub fn show(&mut self, assignment: VbucketAssignment) {
        self.assignment = assignment;
        self.cas += 1;
        self.first.script.say(WatchMessage::Catalog(Arc::new(self.catalog())));
    }

    /// Returns the bucket's projectors as a caller with the present catalog reaches them.
    pub fn source(&self) -> Arc<dyn ProjectorApi> {
        let catalog = self.catalog();
        let find = |node| catalog.nodes.get(&node).cloned();
        source_of(&self.first.script, &catalog.buckets[&PUSHED], find).expect("a source")
    }

    /// Begins to hand over vbucket 0; returns the hand-over.
    pub fn begin(&mut self) -> HandOver {
        let transfer = HandOver { number: 7 + self.cas, vbucket: VbucketId(0), to: OTHER };
        let mut assignment = self.assignment.clone();
        assignment.begin_transfer(transfer);
        self.show(assignment);
        transfer
    }

    /// Hands over vbucket 0, and waits until the hand-over is complete; returns it.
    pub async fn hand_over(&mut self) -> HandOver {
        let transfer = self.begin();
        self.wait_for(transfer).await;
        transfer
    }

    /// Waits until the hand-over is complete.
    pub async fn wait_for(&self, transfer: HandOver) {
        let done =
            Command::FinishHandOver(FinishHandOver { bucket: PUSHED, number: transfer.number });
        let proposed = Arc::clone(&self.first.script.proposed);
        until("the hand-over is proposed", async || {
            proposed.lock().unwrap().contains(&done).then_some(())
        })
        .await;
    }

    pub fn finish(&mut self, transfer: HandOver) {
        let mut assignment = self.assignment.clone();
        assignment.finish_transfer(transfer);
        self.show(assignment);
    }

    /// Pushes as a producer does, with retries.
    pub async fn push(&self, seqnos: std::ops::RangeInclusive<u64>) {
        self.push_all(seqnos.map(pushed).collect()).await;
    }

    pub async fn push_all(&self, mutations: Vec<PushMutation>) {
        until("the push is accepted", async || {
            let mutations = mutations.clone();
            let request = PushRequest { bucket: PUSHED, branches: vec![], mutations };
            match self.source().push(request).await {
                Ok(_) => Some(()),
                Err(error) if error.code == ErrorCode::NotOwner => None,
                Err(error) => panic!("{error}"),
            }
        })
        .await;
    }
}

/// Returns a mutation of vbucket 0.
pub fn pushed(seqno: u64) -> PushMutation {
    pushed_to(VbucketId(0), seqno)
}

fn pushed_to(vbucket: VbucketId, seqno: u64) -> PushMutation {
    let mut ids = (0..).map(|n| format!("{seqno}-{n}"));
    let id = ids.find(|id| vbucket_of(id, VBUCKETS) == vbucket).expect("one of them");
    PushMutation {
        vbucket,
        position: Position { vbuuid: Vbuuid(BRANCH), seqno: Seqno(seqno) },
        id,
        kind: MutationKind::Upsert,
        document: Bytes::from_static(br#"{"n":1}"#),
    }
}

pub fn at(seqno: u64) -> Position {
    Position { vbuuid: Vbuuid(BRANCH), seqno: Seqno(seqno) }
}

/// Reads a stream until vbucket 0 has reached a seqno, and checks that no frame is missing.
pub async fn read_to(stream: &mut ResultStream<StreamMessage>, from: &mut u64, to: u64) {
    while *from < to {
        let message = timeout(Duration::from_secs(10), stream.next()).await.expect("in time");
        let message = message.expect("it goes on").expect("no error");
        if let StreamMessage::Frames(frames) = message {
            for frame in frames {
                assert_eq!(frame.from.0, *from, "no gap and nothing twice");
                *from = frame.to.0;
            }
        }
    }
}

#[tokio::test]
async fn a_vbucket_is_handed_over_and_its_stream_has_no_gap() {
    let mut pair = Pair::new().await;
    pair.push(1..=500).await;
    let (node, from) = (INDEXERS[0], Some(Cut::zero(VBUCKETS)));
    let request = SubscribeRequest { node, bucket: PUSHED, from, last_epoch: Epoch(0) };
    let mut stream = pair.source().subscribe(request.clone()).await.expect("a stream");
    let mut read = 0;
    read_to(&mut stream, &mut read, 500).await;
    let transfer = pair.hand_over().await;
    let request_to_first =
        PushRequest { bucket: PUSHED, branches: vec![], mutations: vec![pushed(501)] };
    let refused = pair.first.projector().push(request_to_first).await.map(|_| ());
    assert_eq!(
        refused.map_err(|error| error.code),
        Err(ErrorCode::NotOwner),
        "the vbucket is released"
    );
    pair.finish(transfer);
    pair.push(501..=510).await;
    read_to(&mut stream, &mut read, 510).await;
    // A new stream gets the past from the new owner, and both projectors report the same history.
    let mut anew =
        until("both know", async || pair.source().subscribe(request.clone()).await.ok()).await;
    read_to(&mut anew, &mut 0, 510).await;
    let history = until("both know", async || pair.source().history(PUSHED).await.ok()).await;
    assert_eq!(history.durable.get(VbucketId(0)), at(510));
    assert_eq!(history.logs.get(VbucketId(0)), Some(&vec![(Vbuuid(BRANCH), 0)]));
    let place = pair.source().place(PUSHED).await.expect("a place");
    assert_eq!(place.history, history.logs.fingerprint(), "the parts add up");
    let id = pushed(3).id;
    let found = pair.source().get(PUSHED, vec![id.clone()]).await.expect("documents");
    assert!(found[0].is_some());
    until("the old home has removed it", async || {
        let is_there = pair.first.store.contains(PUSHED, &id).expect("it answers");
        (!is_there).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_hand_over_leaves_the_vbucket_with_its_owner() {
    let mut pair = Pair::new().await;
    pair.push(1..=50).await;
    pair.hand_over().await;
    let mut assignment = pair.assignment.clone();
    assignment.cancel_transfers();
    pair.show(assignment);
    pair.push(51..=60).await;
    let place = until("both know", async || pair.source().place(PUSHED).await.ok()).await;
    assert_eq!(place.durable.get(VbucketId(0)), at(60));
    let id = pushed(3).id;
    until("the copy is gone", async || {
        let is_there = pair.other.store.contains(PUSHED, &id).expect("it answers");
        (!is_there).then_some(())
    })
    .await;
    let transfer = pair.hand_over().await;
    pair.finish(transfer);
    pair.push(61..=70).await;
}

/// The target requests the last piece while a push waits for its sync. The push is accepted, so the piece contains it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_that_is_accepted_before_the_release_is_handed_over() {
    let mut pair = Pair::new().await;
    pair.push(1..=10).await;
    // The test plays the target.
    let transfer = HandOver { number: 7, vbucket: VbucketId(0), to: NodeId(9) };
    let mut assignment = pair.assignment.clone();
    assignment.begin_transfer(transfer);
    let source = pair.source();
    pair.show(assignment);
    let ask = |release| HandOverRequest {
        bucket: PUSHED,
        transfer,
        after: at(10),
        seen: at(10),
        wanted: HandOverRequestKind::Mutations,
        release,
    };
    let owner = pair.first.projector();
    let before = owner.hand_over(ask(false)).await.expect("the owner knows the hand-over");
    assert_eq!((before.released, before.end), (false, at(10)));

    let held = HeldSyncs::of(&pair.first.store);
    let request = PushRequest { bucket: PUSHED, branches: vec![], mutations: vec![pushed(11)] };
    let mut pushing = std::pin::pin!(source.push(request));
    let waited = timeout(Duration::from_millis(200), pushing.as_mut()).await;
    assert!(waited.is_err(), "an answer before the sync");
    let mut last = std::pin::pin!(owner.hand_over(ask(true)));
    let waited = timeout(Duration::from_millis(200), last.as_mut()).await;
    assert!(waited.is_err(), "the release waits for the push");
    drop(held);
    let piece = last.await.expect("a piece");
    pushing.await.expect("accepted");
    assert_eq!((piece.released, piece.end), (true, at(11)));
    assert_eq!(piece.mutations, [pushed(11)]);
}

#[tokio::test]
async fn a_released_vbucket_stays_released_after_a_restart() {
    let mut pair = Pair::new().await;
    pair.push(1..=50).await;
    let transfer = pair.hand_over().await;
    pair.first.start().await;
    pair.other.start().await;
    let request = PushRequest { bucket: PUSHED, branches: vec![], mutations: vec![pushed(51)] };
    let refused = pair.first.projector().push(request).await.map(|_| ());
    assert_eq!(refused.map_err(|error| error.code), Err(ErrorCode::NotOwner));
    pair.finish(transfer);
    pair.push(51..=55).await;
    let place = until("both know", async || pair.source().place(PUSHED).await.ok()).await;
    assert_eq!(place.durable.get(VbucketId(0)), at(55));
}

/// A reader that lags far receives the mutations of one timestamp before those of the next, even
/// from a projector that owns only some vbuckets. The mutations of other vbuckets do not matter.
#[tokio::test]
async fn some_vbuckets_are_caught_up_from_timestamp_to_timestamp() {
    const EPOCHS: u64 = 4;
    /// The number of mutations per vbucket. Both vbuckets together have more than a stride, so each
    /// timestamp is a separate step.
    const MUTATIONS: u64 = 10_000;
    let pair = Pair::new().await;
    let (here, mut cuts) = ([0, 2].map(VbucketId), Vec::new());
    let count = |cut: &Cut| here.iter().map(|v| cut.get(*v).seqno.0).sum::<u64>();
    for epoch in 1..=EPOCHS {
        for vbucket in here {
            for seqno in ((epoch - 1) * MUTATIONS..epoch * MUTATIONS).step_by(1000) {
                let seqnos = seqno + 1..=seqno + 1000;
                pair.push_all(seqnos.map(|seqno| pushed_to(vbucket, seqno)).collect()).await;
            }
        }
        let ends = [MUTATIONS, 100 * MUTATIONS, MUTATIONS, 100 * MUTATIONS];
        let cut = Cut::from_positions(ends.map(|end| at(epoch * end)).to_vec());
        let (parent, horizon) = (Epoch(epoch - 1), Epoch(epoch));
        pair.first.script.say(WatchMessage::Epochs(vec![EpochMark {
            bucket: PUSHED,
            epoch: Epoch(epoch),
            parent,
            cut: Arc::new(cut.clone()),
            horizon,
            points: Arc::default(),
        }]));
        cuts.push(cut);
    }
    let subscribe = async |from| {
        let (node, last_epoch) = (NodeId(9), Epoch(0));
        let request = SubscribeRequest { node, bucket: PUSHED, from, last_epoch };
        let stream = pair.first.projector().subscribe(request).await.expect("a stream");
        Follower { stream, at: Cut::zero(VBUCKETS), ..Follower::default() }
    };
    // The projector receives all timestamps before the reader subscribes.
    let mut now = subscribe(None).await;
    while now.epochs.last() != Some(&EPOCHS) {
        now.step().await.expect("the stream goes on");
    }
    let mut late = subscribe(Some(Cut::zero(VBUCKETS))).await;
    let mut most = 0;
    while count(&late.at) < 2 * EPOCHS * MUTATIONS {
        late.step().await.expect("the stream goes on");
        let covers = |cut: &&Cut| here.iter().all(|v| late.at.get(*v).seqno >= cut.get(*v).seqno);
        let applied = cuts.iter().take_while(covers).last();
        most = most.max(count(&late.at) - applied.map_or(0, count));
    }
    assert!(most <= 2 * MUTATIONS, "{most} mutations were gathered at once");
}
