//! A whole indexer against a projector that a test plays.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream;
use proto::api::{
    HandOverPiece, HandOverRequest, IndexerApi, PushReply, PushRequest, ResultStream, WriteReply,
    WriteRequest,
};
use proto::cut::Position;
use proto::history::{SourceHistory, SourcePlace};
use proto::ids::{Epoch, Generation, Seqno, VbucketId, Vbuuid};
use proto::index::{IndexSpec, IndexState};
use proto::mutation::{BackfillMessage, BackfillRequest, Frame, KeyVersionsWriter, MutationKind};

use super::scripted::{BUCKET, Cluster, INDEXER, node};
use super::*;
use crate::Indexer;
use proto::homes::VbucketSet;

const INDEX: IndexId = IndexId(1);
const SLICE: SliceId = SliceId { index: INDEX, generation: Generation(0), slice: SliceNo(0) };
const BRANCH: Vbuuid = Vbuuid(9);

/// Remembers where streams began.
#[derive(Clone, Default)]
struct Script {
    subscriptions: Arc<Mutex<Vec<SubscribeRequest>>>,
}

fn cut(seqnos: [u64; 2]) -> Cut {
    let position = |seqno| match seqno {
        0 => Position { vbuuid: Vbuuid(0), seqno: Seqno(0) },
        _ => Position { vbuuid: BRANCH, seqno: Seqno(seqno) },
    };
    Cut::from_positions(seqnos.map(position).to_vec())
}

fn epoch(epoch: u64, seqnos: [u64; 2]) -> StreamMessage {
    let cut = Arc::new(cut(seqnos));
    let parent = Epoch(epoch - 1);
    let (epoch, horizon) = (Epoch(epoch), Epoch(0));
    StreamMessage::Epoch(EpochMark {
        bucket: BUCKET,
        epoch,
        parent,
        cut,
        horizon,
        points: Arc::default(),
    })
}

/// All of both vbuckets is on one branch.
fn history() -> StreamMessage {
    StreamMessage::History(Arc::new(FailoverLogs::new(vec![vec![(BRANCH, 0)]; 2])))
}

/// Documents of vbucket 0 from a seqno on, a thousand bytes each.
fn documents(from: u64, count: u64) -> Bytes {
    let mut writer = KeyVersionsWriter::default();
    for n in 1..=count {
        writer.mutation(n, MutationKind::Upsert, &format!("d{:06}", from + n), 1);
        writer.index(INDEX, Generation(0), 1);
        let mut key = Vec::new();
        proto::key::encode_part(&proto::value::Value::int((from + n) as i64), false, &mut key);
        writer.entry(SliceNo(0), &key, &[0; 1000]);
    }
    writer.finish()
}

fn index() -> Arc<IndexInfo> {
    let info = IndexInfo::new(INDEX, BUCKET, IndexSpec::new("i", "b"), vec![vec![INDEXER]]);
    Arc::new(IndexInfo { state: IndexState::Maintenance, ..info })
}

#[async_trait]
impl ProjectorApi for Script {
    async fn write(&self, _: WriteRequest) -> Result<WriteReply> {
        Err(Error::unavailable("not here"))
    }
    async fn get(&self, _: BucketId, _: Vec<String>) -> Result<Vec<Option<Bytes>>> {
        Err(Error::unavailable("not here"))
    }
    async fn push(&self, _: PushRequest) -> Result<PushReply> {
        Err(Error::unavailable("not here"))
    }
    async fn hand_over(&self, _: HandOverRequest) -> Result<HandOverPiece> {
        Err(Error::unavailable("not here"))
    }
    async fn place(&self, _: BucketId) -> Result<SourcePlace> {
        Err(Error::unavailable("not here"))
    }
    async fn history(&self, _: BucketId) -> Result<SourceHistory> {
        Err(Error::unavailable("not here"))
    }
    /// At first the node gets far more of vbucket 0 than it can gather, and never what its epoch needs of vbucket 1;
    /// then its stream begins at the present.
    async fn subscribe(&self, request: SubscribeRequest) -> Result<ResultStream<StreamMessage>> {
        let begins = self.subscriptions.lock().unwrap().len();
        self.subscriptions.lock().unwrap().push(request);
        let indexes = vec![index()];
        let messages = match begins {
            0 => {
                let frames = (0..1_000).map(|n| {
                    let (from, to) = (Seqno(n * 10), Seqno(n * 10 + 10));
                    let body = documents(n * 10, 10);
                    let vbucket = VbucketId(0);
                    StreamMessage::Frames(vec![Frame { vbucket, vbuuid: BRANCH, from, to, body }])
                });
                let begin =
                    StreamMessage::Begin { at: cut([0, 0]), indexes, vbuckets: VbucketSet::all(2) };
                let first = [begin, history(), epoch(1, [0, 0]), epoch(9, [10_000, 1])];
                first.into_iter().chain(frames).collect::<Vec<_>>()
            }
            _ => {
                let begin = StreamMessage::Begin {
                    at: cut([10_000, 1]),
                    indexes,
                    vbuckets: VbucketSet::all(2),
                };
                vec![begin, history(), epoch(10, [10_000, 1])]
            }
        };
        Ok(Box::pin(stream::iter(messages.into_iter().map(Ok)).chain(stream::pending())))
    }
    async fn backfill(&self, _: BackfillRequest) -> Result<ResultStream<BackfillMessage>> {
        let count = self.subscriptions.lock().unwrap().len() as u64;
        let at = if count == 1 { cut([0, 0]) } else { cut([10_000, 1]) };
        let messages = [
            BackfillMessage::Begin { cut: at },
            BackfillMessage::Documents(documents(0, count * 100)),
            BackfillMessage::End,
        ];
        Ok(Box::pin(stream::iter(messages.map(Ok)).chain(stream::pending())))
    }
}

#[tokio::test]
async fn a_node_that_cannot_gather_what_it_lacks_goes_on_at_the_present() {
    let dir = tempfile::tempdir().unwrap();
    let script = Script::default();
    let cluster = Cluster { projector: Arc::new(script.clone()), indexes: vec![index()] };
    let mut config = Config::new((*node(INDEXER)).clone(), dir.path());
    // The stream has ten times what four of these hold.
    config.queue_bytes_max = Some(256 << 10);
    let indexer = Indexer::start(config, Env::real(), Arc::new(cluster)).unwrap();
    let whole = async {
        loop {
            match indexer.checksum(SLICE, Epoch(10)).await {
                Ok((_, entries)) => return entries,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let entries = tokio::time::timeout(Duration::from_secs(60), whole).await.expect("in time");
    let begins = script.subscriptions.lock().unwrap().clone();
    assert_eq!(begins.len(), 2, "{begins:?}");
    assert_eq!(begins[1].from, None, "from the present");
    assert_eq!(entries, 200, "what the second snapshot has");
}
