//! Tests of the changes of open transactions in a stream: a complete indexer runs against a
//! simulated projector.

use std::time::Duration;

use futures::StreamExt;
use proto::env::Env;
use proto::model::assignment::VbucketSet;
use proto::model::ids::{Epoch, NodeId, TransactionId, TransactionPlace};
use proto::model::node::Role;
use proto::rpc::api::IndexerApi;
use proto::rpc::mutation::{StreamMessage, SubscribeRequest, UncommittedChanges};
use proto::rpc::scan::{KeyRange, Output, ShardBatch, ShardScan, UncommittedView};
use proto::{ErrorCode, Result};
use storage::StoreOptions;

use super::cluster::{BUCKET, node};
use super::played::{
    INDEX, SLICES, Script, cut, documents, history, index, mark, unbuilt_index, wait_index_checksum,
};
use crate::{Config, Indexer};

pub(super) const NODE: NodeId = NodeId(7);
/// The number of documents at epoch 1.
const DOCUMENTS: u64 = 10;

/// Returns changes of a transaction: the documents after seqno 8, two of which exist at epoch 1.
pub(super) fn bodies(transaction: u64, from: u64, to: u64) -> StreamMessage {
    let body = documents(8 + from, to - from);
    let (from, to) = (TransactionPlace(from), TransactionPlace(to));
    let transaction = TransactionId(transaction);
    StreamMessage::Bodies(vec![UncommittedChanges { transaction, from, to, body }])
}

/// Returns the messages of a stream. The second stream carries the first four changes of
/// transaction 6, which is open then.
fn streams(request: &SubscribeRequest, begins: usize) -> Vec<StreamMessage> {
    let at = request.from.clone().unwrap_or_else(|| cut([0, 0]));
    let indexes = vec![if begins == 0 { unbuilt_index(&[NODE]) } else { index(&[NODE]) }];
    let mut messages =
        vec![StreamMessage::Begin { at, indexes, vbuckets: VbucketSet::all(2) }, history(None)];
    messages.push(match begins {
        0 => StreamMessage::Epoch(mark(1, 0, cut([0, 0]))),
        _ => bodies(6, 0, 4),
    });
    messages
}

fn scan(transaction: u64, place: u64, timeout_ms: u64) -> ShardScan {
    let own =
        UncommittedView { transaction: TransactionId(transaction), place: TransactionPlace(place) };
    ShardScan {
        bucket: BUCKET,
        index: INDEX,
        slices: SLICES.map(|slice| slice.slice).to_vec(),
        epoch: Epoch(1),
        own: Some(own),
        ranges: [KeyRange::all()].into(),
        filter: None,
        reverse: false,
        distinct_parts: None,
        resume_after: None,
        limit: None,
        output: Output::Rows { include: false },
        timeout_ms,
    }
}

/// The number of rows of a scan's first batch.
async fn rows(indexer: &Indexer, scan: ShardScan) -> Result<u32> {
    match indexer.first_batch(scan).await?.batch {
        ShardBatch::Rows(block) => Ok(block.rows),
        other => panic!("{other:?}"),
    }
}

pub(super) async fn started(dir: &tempfile::TempDir) -> (Script, Indexer) {
    started_with(dir, StoreOptions::default()).await
}

async fn started_with(dir: &tempfile::TempDir, store: StoreOptions) -> (Script, Indexer) {
    let script = Script::new(&[NODE], streams, |_, _| (cut([0, 0]), documents(0, DOCUMENTS)));
    let config = Config { store, ..Config::new((*node(NODE, Role::Indexer)).clone(), dir.path()) };
    let indexer = Indexer::start(config, Env::real(), script.cluster()).unwrap();
    assert_eq!(wait_index_checksum(&indexer, Epoch(1)).await.1, DOCUMENTS);
    (script, indexer)
}

#[tokio::test]
async fn a_transaction_sees_its_changes_as_soon_as_they_come_and_nobody_else_does() {
    let dir = tempfile::tempdir().unwrap();
    let (script, indexer) = started(&dir).await;
    let late = rows(&indexer, scan(5, 1, 50)).await.unwrap_err();
    assert_eq!(late.code, ErrorCode::Unavailable, "{late}");
    assert!(late.message.contains("place 1 of transaction 5") && late.hint.is_some(), "{late:?}");
    let (waited, ()) = tokio::join!(rows(&indexer, scan(5, 4, 30_000)), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        script.send(NODE, [bodies(5, 0, 2)]);
        tokio::time::sleep(Duration::from_millis(20)).await;
        script.send(NODE, [bodies(5, 2, 4)]);
    });
    assert_eq!(waited, Ok(12));
    assert_eq!(rows(&indexer, scan(5, 3, 30_000)).await, Ok(11), "at a place before");
    let of_others = ShardScan { own: None, ..scan(5, 0, 30_000) };
    assert_eq!(rows(&indexer, of_others).await, Ok(10));
    assert_eq!(
        wait_index_checksum(&indexer, Epoch(1)).await.1,
        DOCUMENTS,
        "a checksum has none of it"
    );
    let (transaction, to) = (TransactionId(5), TransactionPlace(3));
    script.send(NODE, [StreamMessage::TransactionBack { transaction, to }, bodies(5, 3, 9)]);
    assert_eq!(rows(&indexer, scan(5, 9, 30_000)).await, Ok(17));
    let back = rows(&indexer, scan(5, 4, 30_000)).await.unwrap_err();
    assert_eq!(back.code, ErrorCode::SnapshotTooOld, "{back}");
    let mut open = indexer.scan(scan(5, 3, 30_000)).await.unwrap();
    script.send(NODE, [StreamMessage::TransactionsEnded(vec![transaction])]);
    let ended = async {
        while rows(&indexer, scan(5, 3, 30_000)).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        rows(&indexer, scan(5, 3, 30_000)).await.unwrap_err().code
    };
    let ended = tokio::time::timeout(Duration::from_secs(30), ended).await;
    assert_eq!(ended.expect("in time"), ErrorCode::SnapshotTooOld);
    let mut still = 0;
    while let Some(Ok(ShardBatch::Rows(block))) = open.next().await {
        still += block.rows;
    }
    assert_eq!(still, 11, "the open scan is not affected");
}

/// The number of fragments of a node.
fn fragments(dir: &tempfile::TempDir) -> usize {
    Env::real().fs.list(&storage::layout::fragment_dir(dir.path())).unwrap().len()
}

async fn until(what: impl Fn() -> bool) {
    let look = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), look).await.expect("in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_that_spill_are_seen_and_their_files_go_with_the_transaction_and_with_the_process()
{
    let dir = tempfile::tempdir().unwrap();
    let open_transactions_bytes_max = Some(48 << 10);
    let options = StoreOptions { open_transactions_bytes_max, ..StoreOptions::default() };
    let (script, indexer) = started_with(&dir, options).await;
    let before = fragments(&dir);
    for (transaction, ends) in [(5, true), (6, false)] {
        // A thousand changes take several times the limit.
        script.send(NODE, (0..50).map(|n| bodies(transaction, n * 20, n * 20 + 20)));
        assert_eq!(rows(&indexer, scan(transaction, 40, 30_000)).await, Ok(48));
        let mut all = indexer.scan(scan(transaction, 1_000, 30_000)).await.unwrap();
        let mut shown = 0;
        while let Some(Ok(ShardBatch::Rows(block))) = all.next().await {
            shown += block.rows;
        }
        assert_eq!(shown, 1_008);
        until(|| fragments(&dir) > before).await;
        drop(all);
        if ends {
            script.send(NODE, [StreamMessage::TransactionsEnded(vec![TransactionId(transaction)])]);
            until(|| fragments(&dir) == before).await;
        }
    }
    drop(indexer);
    until(|| fragments(&dir) == before).await;
}

#[tokio::test]
async fn a_gap_opens_the_stream_again_which_brings_everything_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (script, indexer) = started(&dir).await;
    script.send(NODE, [bodies(5, 0, 2), bodies(6, 0, 1)]);
    assert_eq!(rows(&indexer, scan(6, 1, 30_000)).await, Ok(10));
    // The changes from 1 to 2 are missing.
    script.send(NODE, [bodies(6, 2, 4)]);
    assert_eq!(rows(&indexer, scan(6, 4, 30_000)).await, Ok(12));
    assert_eq!(script.0.subscriptions.lock().unwrap().len(), 2);
    let gone = rows(&indexer, scan(5, 2, 50)).await.unwrap_err();
    assert_eq!(gone.code, ErrorCode::Unavailable, "the new stream has not brought it");
}
