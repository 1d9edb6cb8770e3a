//! Tests of slices that are placed on another node because all nodes with them are lost: complete
//! indexers run against a simulated projector.

use std::sync::Arc;

use crate::follow::cluster::node;
use crate::follow::played::{
    BRANCH, INDEX, SLICES, Script, cut, documents, expected_checksums, frame, history,
    index_placed_on, mark, wait_index_checksum, wait_slice_checksum,
};
use crate::{Config, Indexer};
use proto::env::Env;
use proto::model::assignment::VbucketSet;
use proto::model::ids::{Epoch, NodeId};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::node::Role;
use proto::rpc::api::IndexerApi;
use proto::rpc::mutation::{StreamMessage, SubscribeRequest};

use futures::StreamExt;

/// The node that is not lost.
const HEIR: NodeId = NodeId(7);
/// The node that is lost.
const LOST: NodeId = NodeId(8);

/// Returns the index in a state and a revision, with its first slice on the heir and its second
/// slice on the node `second`.
fn index(state: IndexState, second: NodeId, revision: u64) -> Arc<IndexInfo> {
    let info = IndexInfo::clone(&index_placed_on(vec![vec![HEIR], vec![second]]));
    Arc::new(IndexInfo { state, revision, ..info })
}

fn start(script: &Script, dir: &tempfile::TempDir) -> Indexer {
    let config = Config::new((*node(HEIR, Role::Indexer)).clone(), dir.path());
    Indexer::start(config, Env::real(), script.cluster()).expect("it starts")
}

/// Returns a script with an index of two slices, of which the first is on this node.
fn script(state: IndexState) -> Script {
    let streams = move |request: &SubscribeRequest, _| {
        let begin = StreamMessage::Begin {
            at: request.from.clone().unwrap_or_else(|| cut([10, 0])),
            indexes: vec![index(state, LOST, 1)],
            vbuckets: VbucketSet::all(2),
        };
        vec![begin, history(None), StreamMessage::Epoch(mark(1, 0, cut([10, 0])))]
    };
    let script = Script::new(&[HEIR, LOST], streams, |_, before| match before {
        0 => (cut([10, 0]), documents(0, 10)),
        _ => (cut([15, 0]), documents(0, 15)),
    });
    script.0.state.change(|catalog| {
        catalog.indexes.insert(INDEX.index, index(state, LOST, 1));
    });
    script
}

/// Places the second slice on the heir, and lets the stream carry it from a cut on.
fn second_is_lost(script: &Script, state: IndexState) {
    script.0.state.change(|catalog| {
        catalog.indexes.insert(INDEX.index, index(state, HEIR, 2));
    });
    let joins = StreamMessage::IndexJoin { index: index(state, HEIR, 2), at: cut([10, 0]) };
    let epoch = StreamMessage::Epoch(mark(2, 1, cut([15, 0])));
    script.send(HEIR, [joins, frame(BRANCH, 10, 15), epoch]);
}

#[tokio::test]
async fn a_build_that_gets_further_slices_builds_them_too() {
    let dir = tempfile::tempdir().unwrap();
    let script = script(IndexState::Backfill);
    script.0.open.send_replace(false);
    let heir = start(&script, &dir);
    while script.backfills_of(HEIR) == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    second_is_lost(&script, IndexState::Backfill);
    while script.backfills_of(HEIR) == 1 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    script.0.open.send_replace(true);
    let (_, entries) = wait_index_checksum(&heir, Epoch(2)).await;
    assert_eq!(entries, 15);
    assert_eq!(script.backfills_of(HEIR), 2);
}

#[tokio::test]
async fn routers_learn_which_slices_are_rebuilt_until_they_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let script = script(IndexState::Maintenance);
    let heir = start(&script, &dir);
    wait_slice_checksum(&heir, SLICES[0], Epoch(1)).await;
    script.0.open.send_replace(false);
    let mut reports = heir.watch_applied().await.expect("reports");
    second_is_lost(&script, IndexState::Maintenance);
    let mut reported = async |meant: fn(&[proto::model::ids::SliceId]) -> bool| loop {
        let report = reports.next().await.expect("a report").expect("a report");
        if let Some(readable) = report.readable
            && meant(&report.rebuilt)
        {
            return readable.into_iter().map(|(slice, _)| slice).collect::<Vec<_>>();
        }
    };
    let readable = reported(|rebuilt| rebuilt == [SLICES[1]]).await;
    assert_eq!(readable, [SLICES[0]], "the other slice answers meanwhile");
    wait_slice_checksum(&heir, SLICES[0], Epoch(2)).await;
    assert!(heir.checksum(SLICES[1], Epoch(2)).await.is_err(), "it is not there yet");
    script.0.open.send_replace(true);
    assert_eq!(reported(|rebuilt| rebuilt.is_empty()).await, SLICES);
    assert_eq!(
        wait_slice_checksum(&heir, SLICES[1], Epoch(2)).await,
        expected_checksums(15).await[1]
    );
    assert!(heir.checksum(SLICES[1], Epoch(1)).await.is_err(), "that is below its floor");
}
