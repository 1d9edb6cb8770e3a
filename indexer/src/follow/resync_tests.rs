//! Tests of a complete indexer against a simulated source that purges its history. The answers are
//! compared with the source's log, evaluated from scratch.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use proto::env::{Env, TaskPolicy};
use proto::model::assignment::VbucketSet;
use proto::model::cut::{EpochMark, Position};
use proto::model::history::FailoverLogs;
use proto::model::ids::Seqno;
use proto::model::ids::{
    Epoch, Generation, IndexId, LocalIndexId, NodeId, SliceId, SliceNo, VbucketId, Vbuuid,
    vbucket_of,
};
use proto::model::index::{IndexInfo, IndexSpec, IndexState};
use proto::model::node::Role;
use proto::rpc::api::{IndexerApi, ResultStream};
use proto::rpc::mutation::{
    BackfillMessage, BackfillRequest, Frame, KeyVersionsReader, KeyVersionsWriter, MutationKind,
    StreamMessage, SubscribeRequest,
};
use tokio::sync::watch;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::super::cluster::{BUCKET, Cluster, ClusterState, ProjectorCalls, node};
use super::super::comparison::merge;
use super::*;
use crate::{Config, Indexer, recorded_tasks};

const INDEXER: NodeId = NodeId(7);
const VBUCKETS: u16 = 2;
const BRANCH: Vbuuid = Vbuuid(9);
/// The indexes: index 1 has an entry for each number of a document, index 2 one for the first
/// number if it is even.
const INDEXES: [LocalIndexId; 2] = [
    LocalIndexId { index: IndexId(1), generation: Generation(0) },
    LocalIndexId { index: IndexId(2), generation: Generation(0) },
];

/// A document and its new contents; `None` if it is removed.
type Change = (String, Option<Vec<i64>>);

#[derive(Clone)]
struct Source {
    state: Arc<Mutex<State>>,
    changed: watch::Sender<u64>,
    /// True if snapshots may send documents; otherwise they wait.
    open: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    logs: [Vec<Change>; VBUCKETS as usize],
    purged: [u64; VBUCKETS as usize],
    epochs: Vec<EpochMark>,
    begins: Vec<Option<Cut>>,
    snapshots: u32,
    random: u64,
    /// The number of snapshots that will panic the task that reads them.
    panics: u32,
    /// True if stability timestamps are sent before the mutations that they cover.
    epochs_first: bool,
}

fn key_of(number: i64) -> Vec<u8> {
    let mut key = Vec::new();
    proto::value::key::encode_part(&proto::value::Value::int(number), false, &mut key);
    key
}

fn keys(index: LocalIndexId, numbers: &[i64]) -> Vec<Vec<u8>> {
    let has = |n: &&i64| index == INDEXES[0] || **n % 2 == 0;
    let most = if index == INDEXES[0] { usize::MAX } else { 1 };
    numbers.iter().take(most).filter(has).map(|n| key_of(*n)).collect()
}

fn put(out: &mut KeyVersionsWriter, seqno: u64, (id, numbers): &Change, indexes: &[LocalIndexId]) {
    let kind = numbers.as_ref().map_or(MutationKind::Deletion, |_| MutationKind::Upsert);
    out.mutation(seqno, kind, id, indexes.len());
    for index in indexes {
        let keys = keys(*index, numbers.as_deref().unwrap_or_default());
        out.index(*index, keys.len());
        keys.iter().for_each(|key| out.entry(SliceNo(0), key, b""));
    }
}

impl State {
    fn end(&self) -> Cut {
        let position = |log: &Vec<Change>| Position {
            vbuuid: if log.is_empty() { Vbuuid(0) } else { BRANCH },
            seqno: Seqno(log.len() as u64),
        };
        Cut::from_positions(self.logs.iter().map(position).collect())
    }

    /// Returns the documents at a cut, with their seqnos.
    fn documents(&self, cut: &Cut) -> BTreeMap<String, (u64, Vec<i64>)> {
        let mut documents = BTreeMap::new();
        for (log, (_, end)) in self.logs.iter().zip(cut.iter()) {
            for ((id, numbers), seqno) in log.iter().take(end.seqno.0 as usize).zip(1..) {
                match numbers {
                    Some(numbers) => documents.insert(id.clone(), (seqno, numbers.clone())),
                    None => documents.remove(id),
                };
            }
        }
        documents
    }

    fn next(&mut self, below: u64) -> u64 {
        self.random = xxh3_64(&self.random.to_le_bytes());
        self.random % below
    }

    /// The next message of a stream, if there is one.
    fn message(&self, at: &mut Cut, last: &mut Epoch) -> Option<Result<StreamMessage>> {
        match self.epochs_first {
            true => self.epoch(last).map(Ok).or_else(|| self.frames(at)),
            false => self.frames(at).or_else(|| self.epoch(last).map(Ok)),
        }
    }

    fn epoch(&self, last: &mut Epoch) -> Option<StreamMessage> {
        let mark = self.epochs.iter().find(|mark| mark.epoch > *last)?;
        *last = mark.epoch;
        Some(StreamMessage::Epoch(mark.clone()))
    }

    fn frames(&self, at: &mut Cut) -> Option<Result<StreamMessage>> {
        let mut frames = Vec::new();
        for (n, log) in self.logs.iter().enumerate() {
            let (vbucket, from) = (VbucketId(n as u16), at.get(VbucketId(n as u16)).seqno);
            if from.0 < self.purged[n] {
                return Some(Err(Error::new(ErrorCode::HistoryPurged, "it was purged")));
            }
            let new = &log[from.0 as usize..];
            if !new.is_empty() {
                let mut out = KeyVersionsWriter::default();
                new.iter().zip(1..).for_each(|(change, n)| put(&mut out, n, change, &INDEXES));
                let to = Position { vbuuid: BRANCH, seqno: Seqno(log.len() as u64) };
                at.set(vbucket, to);
                let body = out.finish();
                frames.push(Frame { vbucket, vbuuid: BRANCH, from, to: to.seqno, body });
            }
        }
        (!frames.is_empty()).then_some(Ok(StreamMessage::Frames(frames)))
    }
}

impl Source {
    fn new() -> Self {
        let state = Arc::new(Mutex::new(State { random: 1, ..State::default() }));
        Self { state, changed: watch::Sender::new(0), open: watch::Sender::new(true) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Makes `count` changes, a quarter of them deletions, and an epoch that ends with them.
    fn change(&self, count: u64) {
        let mut state = self.state();
        for _ in 0..count {
            let id = format!("d{:03}", state.next(150));
            let numbers = (0..state.next(4)).map(|n| (n * 10) as i64 + state.next(9) as i64);
            let numbers = numbers.collect::<Vec<_>>();
            let gone = state.next(4) == 0;
            let vbucket = vbucket_of(&id, VBUCKETS);
            state.logs[usize::from(vbucket.0)].push((id, (!gone).then_some(numbers)));
        }
        let epoch = state.epochs.len() as u64 + 1;
        let cut = Arc::new(state.end());
        let (horizon, parent) = (Epoch(0), Epoch(epoch - 1));
        let (bucket, points) = (BUCKET, Arc::default());
        let epoch = Epoch(epoch);
        state.epochs.push(EpochMark { bucket, epoch, parent, cut, horizon, points });
        drop(state);
        self.changed.send_modify(|count| *count += 1);
    }

    /// Purges the whole history.
    fn purge(&self) {
        let mut state = self.state();
        let ends: Vec<u64> = state.logs.iter().map(|log| log.len() as u64).collect();
        state.purged.iter_mut().zip(ends).for_each(|(purged, end)| *purged = end - 1);
    }

    fn newest(&self) -> Epoch {
        self.state().epochs.last().map_or(Epoch(0), |mark| mark.epoch)
    }

    /// Returns the expected checksum and number of entries of a slice.
    fn expected(&self, index: LocalIndexId, epoch: Epoch) -> (u64, u64) {
        let state = self.state();
        let mark = state.epochs.iter().find(|mark| mark.epoch == epoch).expect("an epoch");
        let (mut sum, mut count) = (0u64, 0);
        for (id, (_, numbers)) in state.documents(&mark.cut) {
            for key in keys(index, &numbers) {
                let entry = xxh3_64(&[&key[..], id.as_bytes()].concat());
                sum = sum.wrapping_add(xxh3_64_with_seed(b"", entry));
                count += 1;
            }
        }
        (sum, count)
    }
}

#[async_trait]
impl ProjectorCalls for Source {
    async fn subscribe(&self, request: SubscribeRequest) -> Result<ResultStream<StreamMessage>> {
        let (at, last) = {
            let mut state = self.state();
            state.begins.push(request.from.clone());
            let newest = state.epochs.last().map_or(0, |mark| mark.epoch.0);
            match request.from {
                Some(from) => (from, request.last_epoch),
                None => (state.end(), request.last_epoch.max(Epoch(newest.saturating_sub(1)))),
            }
        };
        let indexes = infos();
        let logs = FailoverLogs::new(vec![vec![(BRANCH, 0)]; VBUCKETS.into()]);
        let begin = [
            Ok(StreamMessage::Begin {
                at: at.clone(),
                indexes,
                vbuckets: VbucketSet::all(VBUCKETS),
            }),
            Ok(StreamMessage::History(Arc::new(logs))),
        ];
        let (source, changed) = (self.clone(), self.changed.subscribe());
        let next = move |(mut at, mut last, mut changed): (Cut, Epoch, watch::Receiver<u64>)| {
            let source = source.clone();
            async move {
                loop {
                    changed.borrow_and_update();
                    let message = source.state().message(&mut at, &mut last);
                    match message {
                        Some(message) => return Some((message, (at, last, changed))),
                        None => changed.changed().await.ok()?,
                    }
                }
            }
        };
        let rest = stream::unfold((at, last, changed), next);
        Ok(Box::pin(stream::iter(begin).chain(rest)))
    }

    async fn backfill(&self, request: BackfillRequest) -> Result<ResultStream<BackfillMessage>> {
        let mut messages = VecDeque::new();
        let mut state = self.state();
        state.snapshots += 1;
        let cut = state.end();
        let documents: Vec<_> = state.documents(&cut).into_iter().collect();
        messages.push_back(BackfillMessage::Begin { cut });
        for some in documents.chunks(20) {
            let mut out = KeyVersionsWriter::default();
            for (id, (seqno, numbers)) in some {
                // A projector leaves out documents without entries.
                if !keys(request.index, numbers).is_empty() {
                    let change = (id.clone(), Some(numbers.clone()));
                    put(&mut out, *seqno, &change, &[request.index]);
                }
            }
            messages.push_back(BackfillMessage::Documents(out.finish()));
        }
        messages.push_back(BackfillMessage::End);
        let open = self.open.subscribe();
        let source = self.clone();
        let next = move |(mut messages, mut open): (VecDeque<_>, watch::Receiver<bool>)| {
            let source = source.clone();
            async move {
                let message: BackfillMessage = messages.pop_front()?;
                if !matches!(message, BackfillMessage::Begin { .. }) {
                    open.wait_for(|open| *open).await.ok()?;
                    let panics = std::mem::take(&mut source.state().panics);
                    assert_eq!(panics, 0, "a panic, as told");
                }
                Some((Ok(message), (messages, open)))
            }
        };
        Ok(Box::pin(stream::unfold((messages, open), next)))
    }
}

fn infos() -> Vec<Arc<IndexInfo>> {
    let info = |id: LocalIndexId| {
        let spec = IndexSpec::new(format!("i{}", id.index), "b");
        let info = IndexInfo::new(id.index, BUCKET, spec, vec![vec![INDEXER]]);
        Arc::new(IndexInfo { state: IndexState::Maintenance, ..info })
    };
    INDEXES.map(info).to_vec()
}

fn start(source: &Source, dir: &Path, change: impl FnOnce(&mut Config)) -> Indexer {
    start_in(Env::real(), source, dir, change)
}

fn start_in(env: Env, source: &Source, dir: &Path, change: impl FnOnce(&mut Config)) -> Indexer {
    let mut config = Config::new((*node(INDEXER, Role::Indexer)).clone(), dir);
    config.retry = Duration::from_millis(10);
    change(&mut config);
    let cluster =
        Cluster { state: ClusterState::new(&[INDEXER], &infos()), streams: source.clone() };
    Indexer::start(config, env, Arc::new(cluster)).expect("it starts")
}

/// Ends an indexer, and waits for its blocking work.
async fn stop(indexer: Indexer) {
    drop(indexer);
    tokio::time::sleep(Duration::from_millis(300)).await;
}

fn slice(index: LocalIndexId) -> SliceId {
    index.slice(SliceNo(0))
}

/// Waits until all indexes are at an epoch, and compares them with the source.
async fn shows(indexer: &Indexer, source: &Source, epoch: Epoch) {
    for index in INDEXES {
        let found = async {
            loop {
                match indexer.checksum(slice(index), epoch).await {
                    Ok(found) => return found,
                    Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        let found = tokio::time::timeout(Duration::from_secs(20), found).await.expect("in time");
        assert_eq!(found, source.expected(index, epoch), "index {index} at epoch {epoch}");
    }
}

async fn refuses(indexer: &Indexer, epochs: std::ops::Range<u64>) {
    for (index, epoch) in INDEXES.into_iter().flat_map(|i| epochs.clone().map(move |e| (i, e))) {
        let refused = indexer.checksum(slice(index), Epoch(epoch)).await;
        let code = refused.map_err(|error| error.code);
        assert_eq!(code, Err(ErrorCode::SnapshotTooOld), "index {index} at epoch {epoch}");
    }
}

/// Returns a source whose indexer stopped at epoch 2 and missed the epochs 3 to 5.
async fn was_away(dir: &Path) -> Source {
    let source = Source::new();
    source.change(200);
    let indexer = start(&source, dir, |_| {});
    shows(&indexer, &source, Epoch(1)).await;
    source.change(50);
    shows(&indexer, &source, Epoch(2)).await;
    stop(indexer).await;
    (0..3).for_each(|_| source.change(40));
    source
}

/// Returns a source whose indexer missed the epochs 3 to 5, which the source has purged.
async fn left_behind(dir: &Path) -> Source {
    let source = was_away(dir).await;
    source.purge();
    source
}

#[tokio::test]
async fn a_copy_from_before_the_purge_answers_until_one_epoch_corrects_it() {
    let dir = tempfile::tempdir().unwrap();
    let source = left_behind(dir.path()).await;
    source.open.send_replace(false);
    let indexer = start(&source, dir.path(), |_| {});
    shows(&indexer, &source, Epoch(2)).await;
    source.open.send_replace(true);
    shows(&indexer, &source, Epoch(5)).await;
    refuses(&indexer, 1..5).await;
    let begins = source.state().begins.clone();
    let snapshots = source.state().snapshots;
    assert_eq!(
        begins.len(),
        3,
        "the first, one that was refused, one from the present: {begins:?}"
    );
    assert!(begins[1].is_some() && begins[2].is_none());
    assert_eq!(snapshots, 4, "each index is built once and compared once");
    source.change(30);
    shows(&indexer, &source, Epoch(6)).await;
    shows(&indexer, &source, Epoch(5)).await;
}

#[tokio::test]
async fn changes_during_a_comparison_are_in_the_correcting_epoch() {
    let dir = tempfile::tempdir().unwrap();
    let source = left_behind(dir.path()).await;
    source.open.send_replace(false);
    let indexer = start(&source, dir.path(), |_| {});
    while source.state().snapshots < 3 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    (0..3).for_each(|_| source.change(60));
    // The unread rest of the stream is purged as well: the resync begins again.
    source.purge();
    shows(&indexer, &source, Epoch(2)).await;
    source.open.send_replace(true);
    let newest = source.newest();
    shows(&indexer, &source, newest).await;
    refuses(&indexer, 1..newest.0).await;
}

#[tokio::test]
async fn a_crash_while_copies_are_compared_or_after_they_were_corrected_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let source = left_behind(dir.path()).await;
    source.open.send_replace(false);
    let indexer = start(&source, dir.path(), |_| {});
    while source.state().snapshots < 3 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    stop(indexer).await;
    source.open.send_replace(true);
    let indexer = start(&source, dir.path(), |_| {});
    shows(&indexer, &source, Epoch(5)).await;
    let begins = source.state().begins.len();
    // Long enough for the log to be synced.
    tokio::time::sleep(Duration::from_millis(500)).await;
    stop(indexer).await;
    let indexer = start(&source, dir.path(), |_| {});
    shows(&indexer, &source, Epoch(5)).await;
    refuses(&indexer, 1..5).await;
    source.change(20);
    shows(&indexer, &source, Epoch(6)).await;
    let state = source.state();
    assert_eq!(state.begins.len(), begins + 1, "the log has the corrections");
    assert!(state.begins[begins].is_some());
}

#[tokio::test]
async fn a_panic_in_a_comparison_rebuilds_the_copies() {
    let dir = tempfile::tempdir().unwrap();
    let source = left_behind(dir.path()).await;
    let built = source.state().snapshots;
    source.state().panics = 1;
    let (env, failures) = recorded_tasks::env();
    let indexer = start_in(env, &source, dir.path(), |_| {});
    shows(&indexer, &source, Epoch(5)).await;
    refuses(&indexer, 1..5).await;
    let lines = failures.lines();
    assert!(lines.len() == 1 && lines[0].contains("\"resync\""), "once: {lines:?}");
    assert!(lines[0].contains("a panic, as told"), "{lines:?}");
    assert_eq!(failures.policies(), [TaskPolicy::Request], "the process goes on");
    let snapshots = source.state().snapshots;
    assert_eq!(snapshots - built, 3, "one comparison, and a build of each index");
    source.change(30);
    shows(&indexer, &source, Epoch(6)).await;
    shows(&indexer, &source, Epoch(5)).await;
}

#[tokio::test]
async fn copies_that_differ_too_much_are_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    let source = left_behind(dir.path()).await;
    let indexer = start(&source, dir.path(), |config| config.queue_bytes_max = Some(64));
    shows(&indexer, &source, Epoch(5)).await;
    assert!(source.state().snapshots >= 5, "compared, and then built");
}

/// The limit of gathered mutations is set so high that the log refuses the epoch's record, which
/// must lead to a resync.
#[tokio::test]
async fn an_epoch_that_exceeds_a_log_record_leads_to_a_resync() {
    for epochs_first in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let source = was_away(dir.path()).await;
        source.state().epochs_first = epochs_first;
        let begins = source.state().begins.len();
        let limit = |config: &mut Config| config.store.log.record_bytes_max = 2 << 10;
        let indexer = start(&source, dir.path(), limit);
        shows(&indexer, &source, Epoch(5)).await;
        refuses(&indexer, 2..5).await;
        let began = source.state().begins[begins..].to_vec();
        assert!(began[0].is_some() && began.contains(&None), "it was resynced: {began:?}");
        source.change(5);
        shows(&indexer, &source, Epoch(6)).await;
    }
}

/// The files of the commit log.
fn log_files(env: &Env, dir: &Path) -> Vec<std::path::PathBuf> {
    env.fs.list(&dir.join("log")).unwrap()
}

/// The node never released its log, so its node manifest is old, and only the log has its position.
#[tokio::test]
async fn copies_whose_log_is_lost_or_cut_catch_up_from_the_stream() {
    for cut in [None, Some(0), Some(9), Some(20)] {
        let dir = tempfile::tempdir().unwrap();
        let source = was_away(dir.path()).await;
        let env = Env::real();
        for path in log_files(&env, dir.path()) {
            match cut {
                None => env.fs.remove_file(&path).unwrap(),
                Some(len) => {
                    env.fs
                        .open(&path, proto::env::OpenMode::ReadWrite)
                        .unwrap()
                        .set_len(len)
                        .unwrap();
                }
            }
        }
        let indexer = start(&source, dir.path(), |_| {});
        shows(&indexer, &source, Epoch(5)).await;
        source.change(20);
        shows(&indexer, &source, Epoch(6)).await;
    }
}

/// The node manifest has no mark of the bucket, like an old copy of the file.
#[tokio::test]
async fn copies_without_a_known_epoch_answer_only_after_a_comparison() {
    let dir = tempfile::tempdir().unwrap();
    let source = was_away(dir.path()).await;
    let env = Env::real();
    log_files(&env, dir.path()).iter().for_each(|path| env.fs.remove_file(path).unwrap());
    let manifests = dir.path().join("manifests");
    let node = storage::manifest::read_node(&*env.fs, &manifests).unwrap().expect("written");
    let node = storage::manifest::NodeManifest { marks: Vec::new(), ..node };
    storage::manifest::write_node(&*env.fs, &manifests, &node).unwrap();
    let snapshots = source.state().snapshots;
    source.open.send_replace(false);
    let indexer = start(&source, dir.path(), |_| {});
    while source.state().snapshots == snapshots {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    for epoch in 1..6 {
        assert!(indexer.checksum(slice(INDEXES[0]), Epoch(epoch)).await.is_err(), "epoch {epoch}");
    }
    source.open.send_replace(true);
    shows(&indexer, &source, Epoch(5)).await;
    source.change(20);
    shows(&indexer, &source, Epoch(6)).await;
}

#[test]
fn corrections_of_several_indexes_become_one_mutation_of_each_document() {
    let body = |index: LocalIndexId, ids: &[(u64, &str)]| {
        let mut out = KeyVersionsWriter::default();
        for (seqno, id) in ids {
            put(&mut out, *seqno, &((*id).to_owned(), Some(vec![2])), &[index]);
        }
        out.finish()
    };
    let bodies = [
        body(INDEXES[0], &[(3, "a"), (5, "c"), (9, "d")]),
        body(INDEXES[1], &[(4, "b"), (6, "c")]),
        Bytes::new(),
    ];
    let merged = merge(&bodies).unwrap();
    let read: Vec<_> = KeyVersionsReader::new(&merged).map(|versions| versions.unwrap()).collect();
    let found = read.iter().map(|v| (v.id, v.seqno_minus_base, v.indexes().count()));
    let expected = [("a", 3, 1), ("b", 4, 1), ("c", 6, 2), ("d", 9, 1)];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}
