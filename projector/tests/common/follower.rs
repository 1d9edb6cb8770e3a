//! The indexer's end of a stream, for tests.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use proto::Result;
use proto::model::cut::Cut;
use proto::model::ids::*;
use proto::rpc::api::*;
use proto::rpc::mutation::*;
use proto::value::Value;

/// The keys of each document in one index.
pub type Contents = BTreeMap<String, Vec<Value>>;

/// A reader of a stream that accepts messages as an indexer does, and checks that no frame is
/// missing.
pub struct Follower {
    pub stream: ResultStream<StreamMessage>,
    pub at: Cut,
    pub begun: bool,
    pub joined: BTreeMap<LocalIndexId, Cut>,
    pub epochs: Vec<u64>,
    pub contents: BTreeMap<LocalIndexId, Contents>,
    pub frames: usize,
    pub message_bytes_max: usize,
    /// The changes of open transactions, according to the messages.
    pub open: BTreeMap<TransactionId, OpenBodies>,
    /// Transactions that have ended.
    pub ended: Vec<TransactionId>,
    /// Rollbacks to savepoints: the transaction, and the place to which it was rolled back.
    pub backs: Vec<(TransactionId, u64)>,
    /// Markers of commits, each with the changes that the node had received of the transaction.
    pub marked: Vec<(CommitMarker, OpenBodies)>,
    /// The transactions whose commit was announced.
    pub committing: Vec<TransactionId>,
}

/// The changes of a transaction that a node has received.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpenBodies {
    pub place: u64,
    /// For each place, the document that was changed there, and its keys in the first index that
    /// contains it.
    pub changes: BTreeMap<u64, (String, Vec<Value>)>,
    /// The number of times that the transaction was restarted.
    pub begun: usize,
    /// The digest of the messages.
    pub digest: ChangesDigest,
}

impl Default for Follower {
    fn default() -> Self {
        Self {
            stream: Box::pin(futures::stream::pending()),
            at: Cut::default(),
            begun: false,
            joined: BTreeMap::new(),
            epochs: Vec::new(),
            contents: BTreeMap::new(),
            frames: 0,
            message_bytes_max: 0,
            open: BTreeMap::new(),
            ended: Vec::new(),
            backs: Vec::new(),
            marked: Vec::new(),
            committing: Vec::new(),
        }
    }
}

impl Follower {
    async fn next(&mut self) -> Result<StreamMessage> {
        let message = tokio::time::timeout(Duration::from_secs(5), self.stream.next()).await;
        message.expect("a message in time").expect("the stream goes on")
    }

    /// Handles one message; returns the error of the stream.
    pub async fn step(&mut self) -> Result<()> {
        let mut message = self.next().await?;
        // The tests ignore the history.
        while matches!(message, StreamMessage::History(_)) {
            message = self.next().await?;
        }
        match message {
            StreamMessage::History(_) => {}
            StreamMessage::Begin { at, indexes, .. } => {
                assert!(!self.begun, "a stream begins once");
                self.begun = true;
                self.at = at.clone();
                self.joined = indexes.iter().map(|index| (index.local_id(), at.clone())).collect();
            }
            StreamMessage::IndexJoin { index, at } => {
                assert_eq!(at, self.at, "an index joins where the frames are");
                self.joined.insert(index.local_id(), at);
            }
            StreamMessage::IndexLeave { index } => {
                self.joined.remove(&index).expect("it was there");
            }
            StreamMessage::Frames(frames) => {
                let bytes = frames.iter().map(|frame| frame.body.len()).sum();
                self.message_bytes_max = self.message_bytes_max.max(bytes);
                frames.iter().for_each(|frame| self.frame(frame));
            }
            StreamMessage::Epoch(mark) => self.epochs.push(mark.epoch.0),
            StreamMessage::Bodies(bodies) => bodies.iter().for_each(|body| self.body(body)),
            StreamMessage::TransactionBack { transaction, to } => {
                let open = self.open.get_mut(&transaction).expect("the node has it");
                open.changes.retain(|place, _| *place <= to.0);
                open.place = to.0;
                open.digest = open.digest.with_rollback(to);
                self.backs.push((transaction, to.0));
            }
            StreamMessage::Committing { transaction, place } => {
                assert_eq!(self.open[&transaction].place, place.0, "all changes come before");
                self.committing.push(transaction);
            }
            StreamMessage::Committed(marker) => {
                let open = self.open[&marker.transaction].clone();
                assert_eq!((open.place, open.digest), (marker.place.0, marker.digest));
                let is_ahead =
                    |range: &CommitRange| self.at.get(range.vbucket).seqno <= range.after;
                assert!(marker.ranges.iter().all(is_ahead), "the marker comes first");
                self.marked.push((marker, open));
            }
            StreamMessage::TransactionsEnded(ended) => {
                for transaction in ended {
                    self.open.remove(&transaction).expect("the node has it");
                    self.ended.push(transaction);
                }
            }
            StreamMessage::StreamBegin { .. } | StreamMessage::StreamEnd { .. } => {
                panic!("no vbucket is handed over")
            }
        }
        Ok(())
    }

    fn frame(&mut self, frame: &Frame) {
        assert!(self.begun);
        self.frames += 1;
        assert_eq!(self.at.get(frame.vbucket).seqno, frame.from, "no gap and no overlap");
        assert!(frame.to > frame.from, "a frame covers something");
        let position = proto::model::cut::Position { vbuuid: frame.vbuuid, seqno: frame.to };
        self.at.set(frame.vbucket, position);
        self.marked_frame(frame);
        let mut last = 0;
        for mutation in KeyVersionsReader::new(&frame.body) {
            let mutation = mutation.expect("well formed");
            assert!(mutation.seqno_minus_base > last, "in order");
            last = mutation.seqno_minus_base;
            assert!(frame.from.0 + last <= frame.to.0, "inside the frame");
            for state in mutation.indexes() {
                assert!(self.joined.contains_key(&state.index), "only joined indexes");
                apply(self.contents.entry(state.index).or_default(), &mutation, &state);
            }
        }
    }

    /// Handles a frame with a marker in place of mutations: the mutations are the changes of the
    /// transaction that the node has, in the first index that contains them.
    fn marked_frame(&mut self, frame: &Frame) {
        for (marker, open) in &self.marked {
            let Some(range) = marker.range_of(frame.vbucket) else { continue };
            if frame.to <= range.after || frame.from >= range.to {
                continue;
            }
            assert_eq!((frame.from, frame.to), (range.after, range.to), "passed as a whole");
            assert!(frame.body.is_empty(), "nothing is sent twice");
            let Some(index) = self.joined.keys().next() else { continue };
            let contents = self.contents.entry(*index).or_default();
            for (id, keys) in open.changes.values() {
                if vbucket_of(id, self.at.vbuckets()) == frame.vbucket {
                    contents.remove(id);
                    if !keys.is_empty() {
                        contents.insert(id.clone(), keys.clone());
                    }
                }
            }
        }
    }

    fn body(&mut self, body: &UncommittedChanges) {
        assert!(self.begun);
        let open = self.open.entry(body.transaction).or_default();
        if body.from.0 == 0 {
            *open = OpenBodies { begun: open.begun + 1, ..OpenBodies::default() };
        }
        assert_eq!(open.place, body.from.0, "no gap and no overlap");
        assert!(body.to > body.from, "the place grows");
        open.place = body.to.0;
        open.digest = open.digest.with_changes(body);
        for change in KeyVersionsReader::new(&body.body) {
            let change = change.expect("well formed");
            let place = body.from.0 + change.seqno_minus_base;
            assert!(place > body.from.0 && place <= body.to.0, "inside the message");
            let state = change.indexes().next().expect("an index");
            assert!(self.joined.contains_key(&state.index), "only joined indexes");
            let mut keys = Contents::new();
            apply(&mut keys, &change, &state);
            let keys = keys.remove(change.id).unwrap_or_default();
            open.changes.insert(place, (change.id.to_owned(), keys));
        }
    }

    /// Handles messages until the node has reached a place of a transaction.
    pub async fn reach_in(&mut self, transaction: TransactionId, place: u64) {
        while self.open.get(&transaction).is_none_or(|open| open.place < place) {
            self.step().await.expect("the stream goes on");
        }
    }

    /// Handles messages until this many transactions have ended.
    pub async fn reach_ends(&mut self, count: usize) {
        while self.ended.len() < count {
            self.step().await.expect("the stream goes on");
        }
    }

    /// Handles messages until the stream has reached a cut.
    pub async fn reach(&mut self, cut: &Cut) {
        while !self.at.reaches(cut) || !self.begun {
            self.step().await.expect("the stream goes on");
        }
    }
}

/// Applies the state of one document.
pub fn apply(contents: &mut Contents, mutation: &KeyVersions<'_>, state: &IndexKeys<'_>) {
    contents.remove(mutation.id);
    for entry in state.entries() {
        let mut key = entry.key;
        let value = proto::value::key::decode_part(&mut key, false).expect("well formed");
        contents.entry(mutation.id.to_owned()).or_default().push(value);
    }
}
