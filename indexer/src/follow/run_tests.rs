//! Tests of a complete indexer against a simulated projector.

use std::sync::Arc;

use crate::Config;
use proto::env::Env;
use proto::model::history::FailoverLogs;
use proto::model::ids::{Epoch, NodeId, Seqno, VbucketId};
use proto::model::node::Role;
use proto::model::rollback::DeadEpochs;
use proto::rpc::mutation::Frame;

use super::*;
use crate::Indexer;
use crate::follow::cluster::{BUCKET, node};
use crate::follow::played::{
    BRANCH, Script, cut, documents, index, mark, unbuilt_index, wait_index_checksum,
};
use proto::model::assignment::VbucketSet;

const INDEXER: NodeId = NodeId(7);

/// Returns the messages of a first stream with more mutations of vbucket 0 than the node can
/// gather, and without the mutations of vbucket 1 that its epoch needs. The next stream begins at
/// the present.
fn too_much(_: &SubscribeRequest, begins: usize) -> Vec<StreamMessage> {
    let indexes = vec![if begins > 0 { index(&[INDEXER]) } else { unbuilt_index(&[INDEXER]) }];
    // Both vbuckets have a single branch.
    let history =
        || StreamMessage::History(Arc::new(FailoverLogs::new(vec![vec![(BRANCH, 0)]; 2])));
    let epoch = |epoch: u64, seqnos| StreamMessage::Epoch(mark(epoch, epoch - 1, cut(seqnos)));
    if begins > 0 {
        let begin =
            StreamMessage::Begin { at: cut([10_000, 1]), indexes, vbuckets: VbucketSet::all(2) };
        return vec![begin, history(), epoch(10, [10_000, 1])];
    }
    let frames = (0..1_000).map(|n| {
        let (from, to) = (Seqno(n * 10), Seqno(n * 10 + 10));
        let body = documents(n * 10, 10);
        let vbucket = VbucketId(0);
        StreamMessage::Frames(vec![Frame { vbucket, vbuuid: BRANCH, from, to, body }])
    });
    let begin = StreamMessage::Begin { at: cut([0, 0]), indexes, vbuckets: VbucketSet::all(2) };
    let first = [begin, history(), epoch(1, [0, 0]), epoch(9, [10_000, 1])];
    first.into_iter().chain(frames).collect()
}

#[tokio::test]
async fn a_node_that_cannot_gather_its_backlog_continues_at_the_present() {
    let dir = tempfile::tempdir().unwrap();
    let script = Script::new(&[INDEXER], too_much, |_, before| match before {
        0 => (cut([0, 0]), documents(0, 100)),
        _ => (cut([10_000, 1]), documents(0, 200)),
    });
    let mut config = Config::new((*node(INDEXER, Role::Indexer)).clone(), dir.path());
    // The stream has ten times the bytes of four such queues.
    config.queue_bytes_max = Some(256 << 10);
    let indexer = Indexer::start(config, Env::real(), script.cluster()).unwrap();
    let (_, entries) = wait_index_checksum(&indexer, Epoch(10)).await;
    let begins = script.0.subscriptions.lock().unwrap().clone();
    assert_eq!(begins.len(), 2, "{begins:?}");
    assert_eq!(begins[1].from, None, "from the present");
    assert_eq!(entries, 200, "the entries of the second snapshot");
}

/// Returns the messages of a source that has lost mutations on a branch that continues, while the
/// node waits for one of them. The first stream sends nothing after the loss; the next one ends at
/// the source's end.
fn loses_its_end(request: &SubscribeRequest, begins: usize) -> Vec<StreamMessage> {
    let at = request.from.clone().unwrap_or_else(|| cut([0, 0]));
    let index = if begins == 0 { unbuilt_index(&[INDEXER]) } else { index(&[INDEXER]) };
    let (indexes, vbuckets) = (vec![index], VbucketSet::all(2));
    let history = FailoverLogs::new(vec![vec![(BRANCH, 0)]; 2]);
    let begin = StreamMessage::Begin { at, indexes, vbuckets };
    let mut messages = vec![begin, StreamMessage::History(Arc::new(history))];
    let epoch = |epoch: u64, parent, at| StreamMessage::Epoch(mark(epoch, parent, cut([at, 0])));
    if begins == 0 {
        let (from, to, body) = (Seqno(0), Seqno(10), documents(0, 10));
        let frame = Frame { vbucket: VbucketId(0), vbuuid: BRANCH, from, to, body };
        messages.extend([epoch(1, 0, 0), StreamMessage::Frames(vec![frame]), epoch(2, 1, 20)]);
    } else {
        messages.push(epoch(3, 1, 10));
    }
    messages
}

#[tokio::test]
async fn an_epoch_that_was_taken_back_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let script = Script::new(&[INDEXER], loses_its_end, |_, _| (cut([0, 0]), documents(0, 0)));
    let config = Config::new((*node(INDEXER, Role::Indexer)).clone(), dir.path());
    let indexer = Indexer::start(config, Env::real(), script.cluster()).unwrap();
    wait_index_checksum(&indexer, Epoch(1)).await;
    script.0.state.change(|catalog| {
        let bucket = catalog.buckets.get_mut(&BUCKET).map(Arc::make_mut).expect("the bucket");
        let point = Some(mark(1, 0, cut([0, 0])));
        bucket.dead = Arc::new(vec![DeadEpochs { point, to: Epoch(2) }]);
    });
    let (_, entries) = wait_index_checksum(&indexer, Epoch(3)).await;
    assert_eq!(entries, 10, "all entries of the source");
}
