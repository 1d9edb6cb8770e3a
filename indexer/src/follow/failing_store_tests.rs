//! Tests of the follower's error paths: in a complete indexer, each file operation during several
//! epochs fails once. The follower continues with its next retry, or with the node's next start if
//! the commit log has failed; either way the index has the entries of an indexer without faults.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use proto::env::Env;
use proto::env::sim::{SimFs, world};
use proto::model::assignment::VbucketSet;
use proto::model::history::FailoverLogs;
use proto::model::ids::{Epoch, NodeId, Seqno, VbucketId};
use proto::model::node::Role;
use proto::model::topology::{PartitionKey, TopologyProvider};
use proto::rpc::mutation::{
    Frame, KeyVersionsWriter, MutationKind, StreamMessage, SubscribeRequest,
};
use proto::value::{Value, key};
use storage::StoreOptions;
use storage::log::LogOptions;
use tokio::time::{sleep, timeout};

use super::cluster::node;
use super::played::{BRANCH, INDEX, Script, cut, index, mark, unbuilt_index, wait_index_checksum};
use crate::{Config, Indexer};

const INDEXER: NodeId = NodeId(7);
/// Number of epochs.
const EPOCHS: u64 = 12;
const MUTATIONS: u64 = 30;
/// Number of different documents, so that most mutations replace an entry.
const IDS: u64 = 50;
/// The epoch up to which no file operation fails.
const BUILT: u64 = 3;

/// Returns the document of a mutation, and its new key; `None` if it is deleted.
fn mutation(seqno: u64) -> (u64, Option<u64>) {
    (seqno * 7 % IDS, (!seqno.is_multiple_of(9)).then_some(seqno))
}

/// The mutations between two seqnos.
fn mutations(from: u64, to: u64) -> Bytes {
    let (mut writer, topology) = (KeyVersionsWriter::default(), Arc::clone(&index(&[]).topology));
    for seqno in from + 1..=to {
        let (id, content) = mutation(seqno);
        let (id, deleted) = (format!("d{id}"), content.is_none());
        let kind = if deleted { MutationKind::Deletion } else { MutationKind::Upsert };
        writer.mutation(seqno - from, kind, &id, 1);
        writer.index(INDEX, usize::from(!deleted));
        if let Some(content) = content {
            let mut encoded = Vec::new();
            key::encode_part(&Value::int(content as i64), false, &mut encoded);
            writer.entry(topology.partition(PartitionKey::Id(&id)), &encoded, &[7; 300]);
        }
    }
    writer.finish()
}

/// Returns the frame and the mark of an epoch, with only the mutations after the seqno `after`.
fn epoch(epoch: u64, after: u64) -> Vec<StreamMessage> {
    let (from, to) = (after.max((epoch - 1) * MUTATIONS), epoch * MUTATIONS);
    let body = mutations(from, to);
    let (from, to) = (Seqno(from), Seqno(to));
    let frame = Frame { vbucket: VbucketId(0), vbuuid: BRANCH, from, to, body };
    let mark = mark(epoch, epoch - 1, cut([to.0, 0]));
    let mut messages = vec![StreamMessage::Frames(vec![frame])];
    if from >= to {
        messages.clear();
    }
    messages.push(StreamMessage::Epoch(mark));
    messages
}

/// Returns the messages of a stream from the cut that the node requests, up to the epoch `to`.
fn stream(request: &SubscribeRequest, built: bool, to: u64) -> Vec<StreamMessage> {
    let at = request.from.clone().unwrap_or_else(|| cut([0, 0]));
    let after = at.get(VbucketId(0)).seqno.0;
    let indexes = vec![if built { index(&[INDEXER]) } else { unbuilt_index(&[INDEXER]) }];
    let begin = StreamMessage::Begin { at, indexes, vbuckets: VbucketSet::all(2) };
    let history = FailoverLogs::new(vec![vec![(BRANCH, 0)]; 2]);
    let epochs = (request.last_epoch.0 + 1..=to).flat_map(|n| epoch(n, after));
    [begin, StreamMessage::History(Arc::new(history))].into_iter().chain(epochs).collect()
}

struct Node {
    env: Env,
    fs: SimFs,
    script: Script,
    indexer: Option<Indexer>,
    starts: u32,
}

impl Node {
    fn start(&mut self) {
        let mut config = Config::new((*node(INDEXER, Role::Indexer)).clone(), Path::new("/node"));
        config.retry = Duration::from_millis(1);
        // So small that the epochs overflow both memory and log.
        let log = LogOptions { segment_bytes: 4 << 10, ..LogOptions::default() };
        let (memory_bytes, log_bytes) = (64 << 10, 16 << 10);
        config.store = StoreOptions { memory_bytes, log_bytes, log, ..StoreOptions::default() };
        let started = Indexer::start(config, self.env.clone(), self.script.cluster());
        self.indexer = started.ok();
        self.starts += 1;
    }

    /// Returns the rows of the node at the last epoch. Restarts the node if its log has failed or
    /// its start has failed.
    async fn shown(&mut self) -> (u64, u64) {
        loop {
            if let Some(indexer) = &self.indexer {
                if let Ok(shown) =
                    timeout(Duration::from_secs(2), wait_index_checksum(indexer, Epoch(EPOCHS)))
                        .await
                {
                    return shown;
                }
                let stopped = indexer.stopped().now_or_never();
                assert!(stopped.is_some(), "the follower hangs and the log has not failed");
            }
            assert!(self.starts < 4, "one fault does not end a node again and again");
            self.indexer = None;
            sleep(Duration::from_millis(20)).await;
            self.start();
        }
    }
}

/// Runs a node in which the file operation with this number after the build fails. Returns the final contents, the number of operations
/// after the build, and the number of starts.
async fn run(fails: Option<u64>) -> ((u64, u64), u64, u32) {
    let (env, _, fs) = world(1);
    let (built, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (is_built, is_sent) = (Arc::clone(&built), Arc::clone(&sent));
    let script = Script::new(
        &[INDEXER],
        move |request, _| {
            let to = if is_sent.load(Ordering::SeqCst) { EPOCHS } else { BUILT };
            stream(request, is_built.load(Ordering::SeqCst), to)
        },
        |_, _| (cut([0, 0]), Bytes::new()),
    );
    let mut node = Node { env, fs, script, indexer: None, starts: 0 };
    node.start();
    wait_index_checksum(node.indexer.as_ref().expect("it starts"), Epoch(BUILT)).await;
    built.store(true, Ordering::SeqCst);
    let begin = node.fs.operations();
    if let Some(fails) = fails {
        node.fs.fail_at(begin + fails);
    }
    sent.store(true, Ordering::SeqCst);
    node.script.send(INDEXER, (BUILT + 1..=EPOCHS).flat_map(|n| epoch(n, 0)));
    let shown = node.shown().await;
    (shown, node.fs.operations() - begin, node.starts)
}

#[tokio::test]
async fn each_operation_fails_once_and_nothing_is_lost_or_doubled() {
    let mut documents = BTreeMap::new();
    for seqno in 1..=EPOCHS * MUTATIONS {
        let (id, content) = mutation(seqno);
        match content {
            Some(content) => documents.insert(id, content),
            None => documents.remove(&id),
        };
    }
    let (expected, operations, _) = run(None).await;
    assert_eq!(expected.1, documents.len() as u64);
    assert!(operations > 60, "{operations} operations");
    let mut tried_again = 0;
    for fails in 1..=operations {
        let (shown, _, starts) = run(Some(fails)).await;
        assert_eq!(shown, expected, "after the failure of operation {fails}");
        tried_again += u32::from(starts == 1);
    }
    assert!(tried_again > 20, "{tried_again} failures did not stop the log");
}
