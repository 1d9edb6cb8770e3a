//! The traffic between the source, the indexers and the followers of the catalog.

use std::rc::Rc;
use std::sync::Arc;

use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::ids::{Epoch, LocalIndexId, MoveId, VbucketId};
use proto::model::moves::{MovePhase, MoveStage};
use proto::model::topology::TopologyProvider;
use proto::rpc::mutation::StreamMessage;

use super::indexer::Indexer;
use super::store::Copy;
use super::world::{BUCKET, Event, INDEXERS, Watcher, World};

impl World {
    /// Writes a statement, and schedules the next one.
    pub fn source_writes(&mut self) {
        let ms = self.random.u64(40..500);
        self.after(ms, Event::Write);
        let known = self.source.catalog.buckets.contains_key(&BUCKET);
        if known && !self.broken.over && self.source.down_until_ms <= self.now_ms {
            self.source.write(&mut self.random);
        }
    }

    /// Sends a SYNC, which may arrive late, repeatedly or never.
    pub fn source_syncs(&mut self) {
        let ms = self.random.u64(60..160);
        self.after(ms, Event::SourceSync);
        let known = self.source.catalog.buckets.contains_key(&BUCKET);
        if known && self.source.down_until_ms <= self.now_ms {
            let copies = 1 + usize::from(self.random.u32(..10) == 0);
            for _ in 0..copies {
                let cut = self.source.durable().clone();
                self.send(Event::Sync(cut));
            }
        }
        for at in 0..self.members.len() {
            let boot = self.members[at].boot;
            self.after(1, Event::Enquire { at, boot });
        }
    }

    /// Delivers a heartbeat or a report of an indexer or the router.
    pub fn beat(&mut self, watcher: Watcher) {
        let ms = self.random.u64(300..700);
        self.after(ms, Event::Beat(watcher));
        match watcher {
            Watcher::Router => {
                let heartbeat = self.router.heartbeat();
                self.send(Event::Heartbeat(heartbeat));
            }
            Watcher::Indexer(at) if self.indexers[at].up => {
                let full = !self.broken.over && self.random.u32(..20) == 0;
                self.indexers[at].reported_bytes = if full { 1 << 20 } else { 0 };
                let heartbeat = self.indexers[at].heartbeat();
                self.send(Event::Heartbeat(heartbeat));
            }
            _ => {}
        }
    }

    /// Delivers the catalog (and epochs, to the source) from a member that may lag.
    pub fn watch(&mut self, watcher: Watcher) {
        let ms = self.random.u64(40..260) + self.delay_ms();
        self.after(ms, Event::Watch(watcher));
        let at = self.random.usize(..self.members.len());
        if self.is_cut(crate::raft::MEMBERS[at]) {
            return;
        }
        let Some(running) = &self.members[at].running else { return };
        let view = running.replica.view();
        let catalog = Arc::clone(&view.catalog);
        match watcher {
            Watcher::Source if self.source.down_until_ms <= self.now_ms => {
                if catalog.cas > self.source.catalog.cas {
                    self.source.catalog = catalog;
                }
                if let Some(bucket) = view.state.bucket(BUCKET) {
                    let known = self.source.newest_epoch();
                    bucket.epochs.after(known).for_each(|mark| self.source.add_epoch(mark));
                }
            }
            Watcher::Router if catalog.cas > self.router.catalog.cas => {
                self.router.catalog = catalog;
            }
            Watcher::Indexer(to) => {
                drop(view);
                let indexer = &mut self.indexers[to];
                if indexer.up && catalog.cas > indexer.catalog.cas {
                    indexer.take_catalog(catalog);
                    self.start_copies(to);
                    self.roll_back_if_dead(to);
                    self.report_changes(to);
                }
            }
            _ => {}
        }
    }

    /// Ends the stream of an indexer whose newest epoch is dead, and rolls the indexer back;
    /// returns true if it was.
    fn roll_back_if_dead(&mut self, at: usize) -> bool {
        let must = self.indexers[at].connected && self.indexers[at].must_roll_back();
        if must {
            self.disconnect(at);
        }
        must
    }

    fn disconnect(&mut self, at: usize) {
        self.indexers[at].connected = false;
        self.source.streams.remove(&INDEXERS[at]);
        let ms = self.random.u64(20..150);
        self.after(ms, Event::Connect(at));
    }

    /// Opens a stream for an indexer.
    pub fn connect(&mut self, at: usize) {
        let indexer = &mut self.indexers[at];
        if !indexer.up || indexer.connected {
            return;
        }
        if !indexer.catalog.buckets.contains_key(&BUCKET) {
            return self.after(100, Event::Connect(at));
        }
        for mark in indexer.go_back() {
            self.judge_all(at, &mark);
        }
        let (from, last_epoch) = self.indexers[at].subscribe();
        let session = self.indexers[at].session;
        let ms = self.delay_ms();
        self.after(ms, Event::Subscribe { at, session, from, last_epoch });
        self.report_changes(at);
    }

    /// Judges each copy of an indexer.
    fn judge_all(&mut self, at: usize, mark: &EpochMark) {
        for (slice, copy) in &self.indexers[at].copies {
            if copy.floor.is_some() {
                self.judge.shows(&self.source.history, *slice, copy, mark);
            }
        }
    }

    /// Delivers a subscription to the source, which may refuse it.
    pub fn subscribe(&mut self, at: usize, session: u64, from: Option<Cut>, last_epoch: Epoch) {
        let node = INDEXERS[at];
        if self.indexers[at].session != session {
            return;
        }
        let down = self.source.down_until_ms > self.now_ms
            || !self.source.catalog.buckets.contains_key(&BUCKET);
        if !down && self.source.subscribe(node, session, from, last_epoch) {
            return;
        }
        let ms = self.delay_ms();
        self.after(ms, Event::StreamEnd { at, session, misplaced: !down });
    }

    /// Handles the end of a stream, or a refusal.
    pub fn stream_end(&mut self, at: usize, session: u64, misplaced: bool) {
        let indexer = &mut self.indexers[at];
        if !indexer.up || indexer.session != session || !indexer.connected {
            return;
        }
        if misplaced {
            indexer.refused();
        }
        self.disconnect(at);
    }

    /// Ends all streams, because the source has lost mutations or was restarted.
    pub fn end_streams(&mut self) {
        for at in 0..INDEXERS.len() {
            let session = self.indexers[at].session;
            let ms = self.delay_ms();
            self.after(ms, Event::StreamEnd { at, session, misplaced: false });
        }
    }

    /// Sends new messages of the source, some of which may be lost or repeated.
    pub fn pump(&mut self, at: usize) {
        let ms = self.random.u64(40..160);
        self.after(ms, Event::Pump(at));
        let node = INDEXERS[at];
        if self.source.down_until_ms > self.now_ms || !self.source.streams.contains_key(&node) {
            return;
        }
        let mut messages = self.source.next(node, BUCKET);
        let damaged = self.broken.loss > 0 && self.damage(&mut messages);
        let arrives_ms = self.now_ms + self.delay_ms();
        let Some(stream) = self.source.streams.get_mut(&node) else { return };
        // Messages arrive in order, whatever the delays of the link.
        stream.arrives_ms = arrives_ms.max(stream.arrives_ms);
        let (session, ms) = (stream.session, stream.arrives_ms - self.now_ms);
        if damaged {
            // A link that has lost a message breaks soon.
            let ms = ms + self.random.u64(1..2_000);
            self.after(ms, Event::StreamEnd { at, session, misplaced: false });
        }
        if !messages.is_empty() {
            self.after(ms, Event::Stream { at, session, messages });
        }
    }

    /// Removes and repeats messages; true if one was removed.
    fn damage(&mut self, messages: &mut Vec<StreamMessage>) -> bool {
        let (loss, random) = (self.broken.loss, &mut self.random);
        let mut lost = false;
        messages.retain_mut(|message| match message {
            StreamMessage::Frames(frames) => {
                let sent = frames.len();
                frames.retain(|_| random.u32(..100) >= loss);
                lost |= frames.len() < sent;
                if random.u32(..100) < loss {
                    frames.extend(frames.first().cloned());
                }
                true
            }
            StreamMessage::Epoch(_) => {
                let arrives = random.u32(..100) >= loss;
                lost |= !arrives;
                arrives
            }
            _ => true,
        });
        if random.u32(..400) < loss {
            // A stream has one projector, so that this message ends it.
            let end = StreamMessage::StreamEnd { vbucket: VbucketId(0), at: Position::default() };
            messages.push(end);
        }
        lost
    }

    /// Delivers messages of a stream.
    pub fn stream(&mut self, at: usize, session: u64, messages: Vec<StreamMessage>) {
        for message in messages {
            let indexer = &mut self.indexers[at];
            if !indexer.up || !indexer.connected || indexer.session != session {
                return;
            }
            let Ok(applied) = indexer.message(message) else {
                self.disconnect(at);
                break;
            };
            if let Some(mark) = applied.last() {
                self.judge_all(at, mark);
            }
            self.install_arrived(at);
            if self.roll_back_if_dead(at) {
                break;
            }
        }
        self.fetch_snapshots(at);
        self.report_changes(at);
    }

    fn fetch_snapshots(&mut self, at: usize) {
        for (index, number) in std::mem::take(&mut self.indexers[at].to_fetch) {
            let ms = self.delay_ms();
            self.after(ms, Event::Fetch { at, index, number });
        }
    }

    /// Takes a snapshot at the source for a build.
    pub fn fetch(&mut self, at: usize, index: LocalIndexId, number: u64) {
        let down = self.source.down_until_ms > self.now_ms;
        if down || self.random.u32(..100) < self.broken.loss {
            return self.after(300, Event::Fetch { at, index, number });
        }
        let snapshot = (self.source.durable().clone(), self.source.history.documents().collect());
        let ms = self.random.u64(5..600);
        self.after(ms, Event::Fetched { at, index, number, snapshot });
    }

    /// Delivers a snapshot.
    pub fn fetched(
        &mut self,
        at: usize,
        index: LocalIndexId,
        number: u64,
        snapshot: (Cut, Vec<(u16, u32)>),
    ) {
        let indexer = &mut self.indexers[at];
        indexer.fetched(index, number, snapshot);
        if let Some(mark) = indexer.applied.clone() {
            self.judge_all(at, &mark);
        }
        self.fetch_snapshots(at);
        self.report_changes(at);
    }

    /// Reports changes to the router, and sometimes to the leader.
    fn report_changes(&mut self, at: usize) {
        if !std::mem::take(&mut self.indexers[at].news) {
            return;
        }
        let (report, ms) = (self.indexers[at].report(), self.delay_ms());
        self.after(ms, Event::Report(report));
        if self.random.u32(..4) == 0 {
            let heartbeat = self.indexers[at].heartbeat();
            self.send(Event::Heartbeat(heartbeat));
        }
    }

    /// Starts the copies of new moves, which complete later.
    fn start_copies(&mut self, at: usize) {
        let mut begun = Vec::new();
        for ((index, id), incoming) in &mut self.indexers[at].incoming {
            if incoming.phase == MovePhase::Copying && !std::mem::replace(&mut incoming.begun, true)
            {
                begun.push((*index, *id));
            }
        }
        for (index, id) in begun {
            let ms = self.random.u64(20..1_500);
            self.after(ms, Event::Copied { at, index, id });
        }
    }

    /// Completes the copy of a move at its target.
    pub fn copied(&mut self, at: usize, index: LocalIndexId, id: MoveId) {
        if let Some(incoming) = self.indexers[at].incoming.get_mut(&(index, id)) {
            (incoming.phase, incoming.begun) = (MovePhase::Copied, false);
            self.install_arrived(at);
            let heartbeat = self.indexers[at].heartbeat();
            self.send(Event::Heartbeat(heartbeat));
            self.report_changes(at);
        }
    }

    /// Makes copied slices readable whose mutations are in the stream from the newest epoch on.
    fn install_arrived(&mut self, at: usize) {
        let indexer = &self.indexers[at];
        let Some(mark) = indexer.applied.clone().filter(|_| indexer.up) else { return };
        let mut arrived = Vec::new();
        for ((index, id), incoming) in &indexer.incoming {
            let Some(fed) = indexer.fed.get(index) else { continue };
            let known = fed.info.moves.iter().any(|m| m.id == *id);
            let covered = fed.since.get(&incoming.slice.slice).is_some_and(|s| mark.cut.reaches(s));
            if incoming.phase != MovePhase::Copied || !known || !covered {
                continue;
            }
            let sources = fed.info.topology.replicas(incoming.slice.slice);
            let source = self.indexers.iter().filter(|other| sources.contains(&other.id));
            let copy = source.filter_map(|other| export(other, *index, *id, &mark)).next();
            if let Some(mut copy) = copy {
                copy.info = Arc::clone(&fed.info);
                arrived.push((*index, *id, incoming.slice, copy));
            }
        }
        for (index, id, slice, copy) in arrived {
            self.judge.shows(&self.source.history, slice, &copy, &mark);
            let indexer = &mut self.indexers[at];
            indexer.copies.insert(slice, Rc::new(copy));
            if let Some(incoming) = indexer.incoming.get_mut(&(index, id)) {
                incoming.phase = MovePhase::Installed;
            }
            indexer.news = true;
            indexer.save();
        }
    }

    /// Makes an indexer's data durable and drops unneeded versions.
    pub fn upkeep(&mut self, at: usize) {
        let ms = self.random.u64(300..1_500);
        self.after(ms, Event::Upkeep(at));
        let indexer = &mut self.indexers[at];
        if !indexer.up {
            return;
        }
        if let Some(mark) = indexer.applied.clone()
            && self.random.bool()
        {
            indexer.copies.values_mut().for_each(|copy| Rc::make_mut(copy).compact(&mark));
            indexer.news = true;
        }
        indexer.save();
        self.start_copies(at);
        self.install_arrived(at);
        self.fetch_snapshots(at);
        self.report_changes(at);
    }
}

/// Returns the copy for the target of a move, with all entries up to an epoch; `None` unless the
/// source has applied the epoch and knows the move.
fn export(source: &Indexer, index: LocalIndexId, id: MoveId, mark: &EpochMark) -> Option<Copy> {
    let info = source.catalog.local_index(index).filter(|_| source.up)?;
    let known = info.moves.iter().find(|m| m.id == id && m.stage == MoveStage::Catchup)?;
    let copy = source.copies.get(&index.slice(known.slice))?;
    let answers = copy.floor.is_some_and(|floor| floor <= mark.epoch);
    if !answers || source.applied_epoch() < mark.epoch || source.must_roll_back() {
        return None;
    }
    let mut copy = Copy::clone(copy);
    copy.go_back(mark.epoch);
    Some(copy)
}
