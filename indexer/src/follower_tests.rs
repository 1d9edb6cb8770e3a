//! A whole indexer against a projector that a test plays.

use proto::ids::{Epoch, NodeId, Seqno, VbucketId};
use proto::index::Role;
use proto::mutation::Frame;

use super::played::{BRANCH, Script, cut, documents, index, mark, node, shown};
use super::*;
use crate::Indexer;
use proto::homes::VbucketSet;

const INDEXER: NodeId = NodeId(7);

/// At first the node gets far more of vbucket 0 than it can gather, and never what its epoch needs of vbucket 1;
/// then its stream begins at the present.
fn too_much(_: &SubscribeRequest, begins: usize) -> Vec<StreamMessage> {
    let indexes = vec![index(&[INDEXER])];
    // All of both vbuckets is on one branch.
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
async fn a_node_that_cannot_gather_what_it_lacks_goes_on_at_the_present() {
    let dir = tempfile::tempdir().unwrap();
    let script = Script::new(&[INDEXER], too_much, |_, before| match before {
        0 => (cut([0, 0]), documents(0, 100)),
        _ => (cut([10_000, 1]), documents(0, 200)),
    });
    let mut config = Config::new((*node(INDEXER, Role::Indexer)).clone(), dir.path());
    // The stream has ten times what four of these hold.
    config.queue_bytes_max = Some(256 << 10);
    let indexer = Indexer::start(config, Env::real(), Arc::new(script.clone())).unwrap();
    let (_, entries) = shown(&indexer, Epoch(10)).await;
    let begins = script.0.subscriptions.lock().unwrap().clone();
    assert_eq!(begins.len(), 2, "{begins:?}");
    assert_eq!(begins[1].from, None, "from the present");
    assert_eq!(entries, 200, "what the second snapshot has");
}
