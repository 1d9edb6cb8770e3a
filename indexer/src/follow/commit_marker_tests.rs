//! Tests of markers of large commits in a stream: a complete indexer runs against a simulated
//! projector.

use std::time::Duration;

use proto::model::cut::Cut;
use proto::model::ids::{Epoch, Seqno, TransactionId, TransactionPlace, VbucketId};
use proto::rpc::mutation::{ChangesDigest, CommitMarker, CommitRange, Frame, StreamMessage};

use super::played::{BRANCH, Script, cut, expected_checksums, frame, mark, wait_index_checksum};
use super::transactions_tests::{NODE, bodies, started};

/// Returns the marker of a commit of transaction 5, and the frame that covers it. The commit has
/// `changes` changes, whose seqnos end at 12.
fn commit(digest: ChangesDigest, changes: u64) -> [StreamMessage; 2] {
    let (vbucket, from, to) = (VbucketId(0), Seqno(0), Seqno(12));
    let ranges = vec![CommitRange { vbucket, after: from, to }];
    let (transaction, place) = (TransactionId(5), TransactionPlace(changes));
    let marker = CommitMarker { transaction, place, digest, ranges };
    let frame = Frame { vbucket, vbuuid: BRANCH, from, to, body: Default::default() };
    [StreamMessage::Committed(marker), StreamMessage::Frames(vec![frame])]
}

fn digest(messages: &[StreamMessage]) -> ChangesDigest {
    messages.iter().fold(ChangesDigest::default(), |digest, message| match message {
        StreamMessage::Bodies(bodies) => bodies.iter().fold(digest, |d, of| d.with_changes(of)),
        _ => digest,
    })
}

/// Waits until a node has subscribed `count` times; returns the cuts from which it has subscribed.
async fn subscriptions(script: &Script, count: usize) -> Vec<Option<Cut>> {
    let all = async {
        loop {
            let all: Vec<_> = {
                let all = script.0.subscriptions.lock().unwrap();
                all.iter().map(|request| request.from.clone()).collect()
            };
            if all.len() >= count {
                return all;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), all).await.expect("in time")
}

/// Returns the checksum and the number of the documents up to a seqno.
async fn documents_to(seqno: u64) -> (u64, u64) {
    let slices = expected_checksums(seqno).await;
    slices.into_iter().fold((0, 0), |all, of| (all.0.wrapping_add(of.0), all.1 + of.1))
}

#[tokio::test]
async fn a_commit_is_applied_from_what_the_node_has_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let (script, indexer) = started(&dir).await;
    let sent = [bodies(5, 0, 9), bodies(5, 9, 20)];
    script.send(NODE, sent.clone());
    script.send(NODE, commit(digest(&sent), 20));
    // The transaction has ended before its epoch arrives.
    let ended = StreamMessage::TransactionsEnded(vec![TransactionId(5)]);
    script.send(NODE, [ended, StreamMessage::Epoch(mark(2, 1, cut([12, 0])))]);
    assert_eq!(wait_index_checksum(&indexer, Epoch(2)).await, documents_to(28).await);
    assert_eq!(wait_index_checksum(&indexer, Epoch(1)).await, documents_to(10).await, "as before");
    assert_eq!(subscriptions(&script, 1).await.len(), 1);
    let late = indexer.status().late_commit;
    assert_eq!((late.entered, late.open, late.bytes), (1, 0, 0));
}

#[tokio::test]
async fn a_commit_that_was_told_to_begin_is_written_ahead_of_its_epoch() {
    let dir = tempfile::tempdir().unwrap();
    let (script, indexer) = started(&dir).await;
    let sent = [bodies(5, 0, 9), bodies(5, 9, 20)];
    script.send(NODE, sent.clone());
    let (transaction, place) = (TransactionId(5), TransactionPlace(20));
    script.send(NODE, [StreamMessage::Committing { transaction, place }]);
    until(|| indexer.status().late_commit.prepared == 1).await;
    script.send(NODE, commit(digest(&sent), 20));
    script.send(NODE, [StreamMessage::Epoch(mark(2, 1, cut([12, 0])))]);
    assert_eq!(wait_index_checksum(&indexer, Epoch(2)).await, documents_to(28).await);
    assert_eq!(wait_index_checksum(&indexer, Epoch(1)).await, documents_to(10).await, "as before");
    let late = indexer.status().late_commit;
    assert_eq!((late.entered, late.entered_prepared, late.prepared), (1, 1, 0));
}

/// Waits until `holds` returns true.
async fn until(holds: impl Fn() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect("in time");
}

#[tokio::test]
async fn a_commit_that_the_node_lacks_comes_as_mutations_from_another_stream() {
    let sent = [bodies(5, 0, 9), bodies(5, 9, 20)];
    let of_both = digest(&sent);
    for (has, digest, changes) in
        [(&sent[..0], of_both, 20), (&sent[..1], of_both, 20), (&sent[..], digest(&sent[..1]), 20)]
    {
        let dir = tempfile::tempdir().unwrap();
        let (script, indexer) = started(&dir).await;
        script.send(NODE, has.iter().cloned());
        script.send(NODE, commit(digest, changes));
        let from = subscriptions(&script, 2).await;
        assert_eq!(from[1], Some(cut([0, 0])), "nothing was received");
        let epoch = StreamMessage::Epoch(mark(2, 1, cut([12, 0])));
        script.send(NODE, [frame(BRANCH, 0, 12), epoch]);
        assert_eq!(wait_index_checksum(&indexer, Epoch(2)).await, documents_to(12).await);
        assert_eq!(indexer.status().late_commit.entered, 0);
    }
}

#[tokio::test]
async fn a_stream_that_breaks_before_the_epoch_of_a_commit_is_followed_by_one_from_the_applied_cut()
{
    let dir = tempfile::tempdir().unwrap();
    let (script, indexer) = started(&dir).await;
    let sent = [bodies(5, 0, 20)];
    script.send(NODE, sent.clone());
    script.send(NODE, commit(digest(&sent), 20));
    // Behind the commit, so that the node has come to it.
    script.send(NODE, [frame(BRANCH, 12, 13)]);
    script.end_stream(NODE);
    let from = subscriptions(&script, 2).await;
    assert_eq!(from[1], Some(cut([0, 0])), "the frames that the marker has emptied are forgotten");
    let epoch = StreamMessage::Epoch(mark(2, 1, cut([12, 0])));
    script.send(NODE, [frame(BRANCH, 0, 12), epoch]);
    assert_eq!(wait_index_checksum(&indexer, Epoch(2)).await, documents_to(12).await);
}
