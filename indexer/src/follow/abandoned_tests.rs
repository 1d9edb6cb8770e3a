//! Tests that a follower rejects snapshots that end early, and received mutations that the source
//! has lost. A complete indexer runs against a simulated projector.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use proto::env::Env;
use proto::model::assignment::VbucketSet;
use proto::model::cut::{Cut, Position};
use proto::model::ids::{Epoch, NodeId, Seqno, VbucketId};
use proto::model::node::Role;
use proto::rpc::mutation::{StreamMessage, SubscribeRequest};
use proto::{Error, ErrorCode};
use tokio::time::{sleep, timeout};

use super::cluster::{BUCKET, node};
use super::played::{
    self, BRANCH, NEW_BRANCH, Script, cut, documents, frame, index, mark, unbuilt_index,
    wait_index_checksum,
};
use crate::{Config, Indexer};

const INDEXER: NodeId = NodeId(7);
/// The last seqno of vbucket 0 that the source has kept after its loss.
const KEPT: u64 = 7;
/// The pause of the follower between two subscriptions.
const RETRY: Duration = Duration::from_millis(200);

fn start(script: &Script, dir: &Path) -> Indexer {
    let config = Config::new((*node(INDEXER, Role::Indexer)).clone(), dir);
    let config = Config { retry: RETRY, heartbeat: Duration::from_millis(20), ..config };
    Indexer::start(config, Env::real(), script.cluster()).expect("it starts")
}

/// Returns a cut at this seqno of vbucket 0, on the branch after the loss.
fn behind_the_loss(seqno: u64) -> Cut {
    let position = Position { vbuuid: NEW_BRANCH, seqno: Seqno(seqno) };
    cut([0, 0]).with(&[(VbucketId(0), position)])
}

fn begin(request: &SubscribeRequest, is_built: bool) -> StreamMessage {
    let at = request.from.clone().unwrap_or_else(|| cut([0, 0]));
    let indexes = vec![if is_built { index(&[INDEXER]) } else { unbuilt_index(&[INDEXER]) }];
    StreamMessage::Begin { at, indexes, vbuckets: VbucketSet::all(2) }
}

fn history(is_lossy: bool) -> StreamMessage {
    played::history(is_lossy.then_some(KEPT))
}

fn epoch(epoch: u64, cut: Cut) -> StreamMessage {
    StreamMessage::Epoch(mark(epoch, epoch - 1, cut))
}

/// Lets the projector refuse subscriptions from positions that the source has lost.
fn refuse_lost(script: &Script) {
    script.refuse(|request| {
        let at = request.from.as_ref()?.get(VbucketId(0));
        let is_lost = at.vbuuid == BRANCH && at.seqno > Seqno(KEPT);
        is_lost.then(|| Error::new(ErrorCode::OutOfOrder, "a place that is not in the history"))
    });
}

async fn until(what: &str, done: impl Fn() -> bool) {
    let reached = async {
        while !done() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(20), reached).await.expect(what);
}

/// Returns the watermark of vbucket 0 in the node's last heartbeat.
fn received(script: &Script) -> Seqno {
    let heartbeats = script.0.state.heartbeats.lock().unwrap();
    let report = heartbeats.get(&INDEXER).and_then(|heartbeat| heartbeat.report.indexer());
    let mut buckets = report.into_iter().flat_map(|report| &report.buckets);
    let of_bucket = buckets.find(|progress| progress.bucket == BUCKET);
    of_bucket.map_or(Seqno(0), |progress| progress.high_watermark.get(VbucketId(0)).seqno)
}

#[tokio::test]
async fn a_snapshot_whose_stream_ends_early_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let streams = |_: &SubscribeRequest, _| {
        let (indexes, vbuckets) = (vec![unbuilt_index(&[INDEXER])], VbucketSet::all(2));
        let begin = StreamMessage::Begin { at: cut([10, 0]), indexes, vbuckets };
        vec![begin, history(false), epoch(1, cut([10, 0]))]
    };
    let script = Script::new(&[INDEXER], streams, |_, before| {
        (cut([10, 0]), if before == 0 { documents(0, 4) } else { documents(0, 10) })
    });
    script.0.cut_short.store(1, Ordering::SeqCst);
    let indexer = start(&script, dir.path());
    assert_eq!(
        wait_index_checksum(&indexer, Epoch(1)).await.1,
        10,
        "all documents of the second snapshot"
    );
    assert_eq!(script.backfills_of(INDEXER), 2);
}

#[tokio::test]
async fn received_mutations_that_the_source_has_lost_are_received_again() {
    let dir = tempfile::tempdir().unwrap();
    let script = Script::new(
        &[INDEXER],
        |request, before| match before {
            0 => vec![begin(request, false), history(false), epoch(1, cut([0, 0]))],
            _ => {
                let to = KEPT + 1;
                let kept = [frame(BRANCH, 0, KEPT), frame(NEW_BRANCH, KEPT, to)];
                let begin = [begin(request, true), history(true)];
                let end = [epoch(2, behind_the_loss(to))];
                begin.into_iter().chain(kept).chain(end).collect()
            }
        },
        |_, _| (cut([0, 0]), documents(0, 0)),
    );
    let indexer = start(&script, dir.path());
    wait_index_checksum(&indexer, Epoch(1)).await;
    // No epoch covers these, and three of them will be lost.
    script.send(INDEXER, [frame(BRANCH, 0, 10)]);
    until("the frame is received", || received(&script) == Seqno(10)).await;
    refuse_lost(&script);
    script.end_stream(INDEXER);
    assert_eq!(wait_index_checksum(&indexer, Epoch(2)).await.1, KEPT + 1, "what the source has");
    assert_eq!(script.0.refused.load(Ordering::SeqCst), 1, "the lost place is asked for once");
}
