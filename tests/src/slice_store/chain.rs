//! A test in which slices move repeatedly between three stores, A → B → C → A, while all stores
//! apply epochs, with rollbacks between the moves. After each installation and each rollback,
//! before any further epoch, every copy must equal a model of the documents at every live epoch
//! down to the copy's floor, and must refuse dead epochs.
//!
//! In half of the runs documents are only inserted, so that no later version hides a row that a
//! rollback has left or a move has duplicated.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use proto::env::sim::Turns;
use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::ids::{Epoch, NodeId, Seqno, SliceNo, VbucketId, Vbuuid};
use proto::model::index::IndexInfo;
use proto::model::topology::IndexTopology;
use proto::{Error, ErrorCode};
use storage::{EpochBatch, Grouping, PartRange, ReceivedFiles, SliceStore, VbucketMutations};

use super::shape::{Known, Shape};
use super::side::{Documents, INDEX, Side, packed, rows_at};
use super::{BUCKET, simulated_time};

const NODES: [NodeId; 3] = [NodeId(7), NodeId(8), NodeId(9)];
/// The number of steps of a run.
const STEPS: u32 = 70;
/// The distance of the horizon from the newest epoch, in live epochs.
const KEPT: usize = 6;

/// The counts of events in runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// The number of installations.
    pub moves: u64,
    /// The number of installations of a slice that its source had received by a move.
    pub moves_on: u64,
    /// The number of rollbacks.
    pub rollbacks: u64,
    /// The number of crashes.
    pub crashes: u64,
    /// The number of comparisons of a copy at one epoch.
    pub compared: u64,
    /// The number of refused reads of dead epochs.
    pub refused: u64,
}

impl std::ops::AddAssign for Effects {
    fn add_assign(&mut self, other: Self) {
        self.moves += other.moves;
        self.moves_on += other.moves_on;
        self.rollbacks += other.rollbacks;
        self.crashes += other.crashes;
        self.compared += other.compared;
        self.refused += other.refused;
    }
}

/// Runs a seed; `interleaved` has the meaning of [`super::plan::Plan::interleaved`].
pub fn run(seed: u64, interleaved: bool) -> Result<Effects, String> {
    simulated_time()?.block_on(async {
        let turns = interleaved.then(|| Turns::new(seed));
        let mut story = Chain::new(seed, turns).await?;
        let kind = if interleaved { "interleaved chain" } else { "chain" };
        story
            .run()
            .await
            .map_err(|error| format!("{kind}: {error}\n{}", story.trace.join("\n")))?;
        Ok(story.effects)
    })
}

/// A slice that is being moved.
struct Journey {
    slice: SliceNo,
    from: usize,
    to: usize,
    received: ReceivedFiles,
}

/// A run of the test.
struct Chain {
    /// The scheduler of blocking work; `None` if blocking work runs at once.
    turns: Option<Turns>,
    random: fastrand::Rng,
    known: Known,
    info: Arc<IndexInfo>,
    nodes: Vec<Side>,
    /// The batch of each live epoch.
    batches: BTreeMap<u64, EpochBatch>,
    dead: BTreeSet<u64>,
    /// The first epoch that each node has applied.
    began: [u64; NODES.len()],
    epoch_next: u64,
    /// The newest horizon in an epoch.
    horizon: u64,
    documents: Documents,
    seqno: u64,
    branch: u64,
    only_inserts: bool,
    journey: Option<Journey>,
    /// The copies that a node has received from another node.
    received: BTreeSet<(usize, SliceNo)>,
    /// The steps up to now, for the report.
    trace: Vec<String>,
    effects: Effects,
}

impl Chain {
    /// Returns a run of a seed, in which the first node has built the index and the others are
    /// empty.
    async fn new(seed: u64, turns: Option<Turns>) -> Result<Self, String> {
        let mut random = fastrand::Rng::with_seed(seed ^ 0xc4a1);
        let shape = Shape::random(INDEX, &mut random);
        let placement = vec![vec![NODES[0]]; usize::from(shape.slices)];
        let info = shape.info();
        let topology = Arc::new(IndexTopology { placement, ..(*info.topology).clone() });
        let info = Arc::new(IndexInfo { topology, ..(*info).clone() });
        let side = |(n, node): (u64, NodeId)| Side::new(seed ^ n, node, turns.as_ref());
        let mut story = Self {
            nodes: (0..).zip(NODES).map(side).collect(),
            turns,
            known: Known { shape, edits: Vec::new(), build: None },
            info,
            batches: BTreeMap::new(),
            dead: BTreeSet::new(),
            began: [1; NODES.len()],
            epoch_next: 1,
            horizon: 0,
            documents: Documents::new(),
            seqno: 0,
            branch: 1,
            only_inserts: random.bool(),
            journey: None,
            received: BTreeSet::new(),
            trace: Vec::new(),
            effects: Effects::default(),
            random,
        };
        story.build().await.map_err(|error| format!("building: {error}"))?;
        Ok(story)
    }

    async fn build(&mut self) -> proto::Result<()> {
        for n in 0..self.random.u64(0..40) {
            self.documents.insert(format!("first{n}"), vec![(1, Some(self.random.u64(..)))]);
        }
        self.seqno = self.documents.len() as u64;
        let documents: Vec<_> =
            self.documents.iter().map(|(id, of)| (0, id.as_str(), of[0].1)).collect();
        let snapshot = packed(&self.known, &documents);
        let first = self.batch(0, 0, Bytes::new());
        let grouping = if self.random.bool() { Grouping::Together } else { Grouping::Apart };
        let store = self.nodes[0].store();
        store.begin_build(Arc::clone(&self.info), grouping).await?;
        store.begin_backfill(INDEX).await?;
        store.backfill(INDEX, snapshot).await?;
        store.apply(first.clone()).await?;
        store.finish_build(INDEX, &first.mark).await?;
        self.batches.insert(1, first);
        self.epoch_next = 2;
        Ok(())
    }

    /// Returns the batch of the next epoch.
    fn batch(&self, parent: u64, after: u64, body: Bytes) -> EpochBatch {
        let position = Position { vbuuid: Vbuuid(self.branch), seqno: Seqno(self.seqno) };
        let mark = EpochMark {
            bucket: BUCKET,
            epoch: Epoch(self.epoch_next),
            parent: Epoch(parent),
            cut: Arc::new(Cut::zero(1).with(&[(VbucketId(0), position)])),
            horizon: Epoch(self.horizon),
            points: Arc::default(),
        };
        let (after, to) = (Seqno(after), Seqno(self.seqno));
        EpochBatch {
            mark,
            pieces: vec![VbucketMutations { body, base: Seqno(0), after, to }],
            commits: Vec::new(),
        }
    }

    fn newest(&self) -> u64 {
        self.batches.last_key_value().map_or(0, |(epoch, _)| *epoch)
    }

    /// Runs all steps.
    async fn run(&mut self) -> Result<(), String> {
        for step in 0..STEPS {
            self.step().await.map_err(|error| format!("step {step}: {error}"))?;
        }
        for node in 0..self.nodes.len() {
            self.crash(node).await;
        }
        self.follow(0).await?;
        self.compare().await?;
        self.check_counts()
    }

    async fn step(&mut self) -> Result<(), String> {
        match self.random.u8(0..20) {
            0..8 => {
                self.write();
                self.follow(3).await
            }
            8..14 => self.travel().await,
            14..16 => self.roll_back().await,
            16 => self.drop_a_copy().await,
            _ => {
                let node = self.random.usize(0..self.nodes.len());
                match self.random.u8(0..4) {
                    0 => self.crash(node).await,
                    1 => self.nodes[node].store().compact().await.map_err(|e| e.to_string())?,
                    _ => self.nodes[node].store().flush().await.map_err(|e| e.to_string())?,
                }
                self.follow(2).await?;
                self.compare().await
            }
        }
    }

    /// Writes an epoch.
    fn write(&mut self) {
        let (after, epoch) = (self.seqno, self.epoch_next);
        let mut changes = BTreeMap::new();
        for n in 0..self.random.u64(0..20) {
            let (id, content) = match self.only_inserts {
                true => (format!("e{epoch}-{n}"), Some(self.random.u64(..))),
                false => {
                    let content = (self.random.u8(0..5) > 0).then(|| self.random.u64(..));
                    (format!("d{}", self.random.u64(0..60)), content)
                }
            };
            changes.insert(id, content);
        }
        let mut documents = Vec::new();
        for (id, content) in &changes {
            self.seqno += 1;
            documents.push((self.seqno, id.as_str(), *content));
        }
        let body = packed(&self.known, &documents);
        let horizon = self.batches.keys().rev().nth(KEPT).copied();
        self.horizon = self.horizon.max(horizon.unwrap_or(0));
        let batch = self.batch(self.newest(), after, body);
        self.trace.push(format!("epoch {epoch} after {}", batch.mark.parent));
        self.batches.insert(epoch, batch);
        for (id, content) in changes {
            self.documents.entry(id).or_default().push((epoch, content));
        }
        // Not all numbers are used: an epoch of another bucket has them.
        self.epoch_next += 1 + self.random.u64(0..4) / 3;
    }

    /// Applies epochs on each node, up to at most `behind_max` epochs before the newest.
    async fn follow(&mut self, behind_max: usize) -> Result<(), String> {
        for (node, began) in self.nodes.iter().zip(&mut self.began) {
            let behind = self.random.usize(0..=behind_max);
            let Some(to) = self.batches.keys().rev().nth(behind).copied() else { continue };
            // A node without a slice begins at the present.
            let applied = node.applied();
            let from = if applied == 0 { to } else { applied + 1 };
            if applied == 0 {
                *began = to;
            }
            if from > to {
                continue;
            }
            self.trace.push(format!("node {} applies {from} to {to}", node.node));
            for (_, batch) in self.batches.range(from..=to) {
                let applied = node.store().apply(batch.clone()).await;
                applied.map_err(|error| format!("node {}: {error}", node.node))?;
            }
        }
        Ok(())
    }

    async fn crash(&mut self, node: usize) {
        if self.journey.as_ref().is_some_and(|journey| journey.to == node) {
            self.journey = None;
        }
        let before = self.nodes[node].applied();
        self.nodes[node].crash(self.turns.as_ref()).await;
        let side = &self.nodes[node];
        let line = format!("node {} crashes at {before}, is at {}", side.node, side.applied());
        self.trace.push(line);
        self.effects.crashes += 1;
    }

    /// Returns the nodes with a copy of a slice.
    fn holders(&self, slice: SliceNo) -> Vec<usize> {
        (0..self.nodes.len()).filter(|node| self.nodes[*node].has(slice)).collect()
    }

    /// Advances the move in progress by one round, or starts another move.
    async fn travel(&mut self) -> Result<(), String> {
        let mut journey = match self.journey.take() {
            Some(journey) => journey,
            None => {
                let slice = SliceNo(self.random.u16(0..self.known.shape.slices));
                let holders = self.holders(slice);
                let free: Vec<usize> = (0..3).filter(|node| !holders.contains(node)).collect();
                if holders.is_empty() || free.is_empty() {
                    return Ok(());
                }
                let from = holders[self.random.usize(0..holders.len())];
                let to = free[self.random.usize(0..free.len())];
                let received = self.nodes[to].store().begin_receiving(self.nodes[from].node);
                Journey { slice, from, to, received }
            }
        };
        let (source, target) = (&self.nodes[journey.from], &self.nodes[journey.to]);
        let at = target.applied();
        if at == 0 || !source.has(journey.slice) {
            return Ok(());
        }
        let slice = INDEX.slice(journey.slice);
        let export =
            source.store().export_slice(slice).await.map_err(|e| format!("export: {e}"))?;
        journey
            .received
            .begin_round(export.head.clone())
            .await
            .map_err(|e| format!("begin: {e}"))?;
        let have = journey.received.complete_files();
        for (file, len) in export.head.files.iter().filter(|(file, _)| !have.contains(file)) {
            let (file, mut offset) = (*file, 0);
            while offset < *len {
                let bytes = (*len - offset).min(20_000);
                let piece = PartRange { file, offset, bytes: bytes as usize };
                let read = export.read(vec![piece]).await.map_err(|e| format!("read: {e}"))?;
                journey.received.store_pieces(read).await.map_err(|e| format!("pieces: {e}"))?;
                offset += bytes;
            }
        }
        journey.received.sync().await.map_err(|e| format!("sync: {e}"))?;
        if self.random.u8(0..3) == 0 {
            // Another round is needed first, perhaps after a rollback.
            self.journey = Some(journey);
            return Ok(());
        }
        self.install(journey, at).await
    }

    async fn install(&mut self, journey: Journey, at: u64) -> Result<(), String> {
        let Journey { slice, from, to, received } = journey;
        let Some(batch) = self.batches.get(&at) else { return Ok(()) };
        let (store, info) = (self.nodes[to].store(), Arc::clone(&self.info));
        match store.install_slice(received, INDEX.slice(slice), info, &batch.mark).await {
            Ok(()) => {
                self.trace.push(format!("slice {slice} from {from} to {to} at {at}"));
                self.effects.moves += 1;
                self.effects.moves_on += u64::from(self.received.contains(&(from, slice)));
                self.received.insert((to, slice));
                if self.random.bool() {
                    self.drop_copy(from, slice).await?;
                }
                self.compare().await
            }
            // The source's files do not have the target's epoch, or have no longer.
            Err(refused) if refused.error.code == ErrorCode::Unavailable => {
                let received = refused.received;
                self.journey = Some(Journey { slice, from, to, received });
                Ok(())
            }
            Err(refused) => Err(format!("install: {}", refused.error)),
        }
    }

    async fn drop_copy(&mut self, node: usize, slice: SliceNo) -> Result<(), String> {
        self.received.remove(&(node, slice));
        self.trace.push(format!("node {} drops slice {slice}", self.nodes[node].node));
        let store = self.nodes[node].store();
        let here = store.indexes().first().map_or(0, |index| index.slices.len());
        let dropped = match here {
            1 => store.drop_index(INDEX).await,
            _ => store.drop_slice(INDEX.slice(slice)).await,
        };
        dropped.map_err(|error| format!("drop: {error}"))
    }

    /// Drops one of several copies of a slice.
    async fn drop_a_copy(&mut self) -> Result<(), String> {
        let slice = SliceNo(self.random.u16(0..self.known.shape.slices));
        let holders = self.holders(slice);
        if holders.len() < 2 {
            return Ok(());
        }
        let node = holders[self.random.usize(0..holders.len())];
        self.drop_copy(node, slice).await?;
        self.compare().await
    }

    /// Rolls all nodes back to a live epoch that is not below a horizon, if every copy can roll
    /// back to it.
    async fn roll_back(&mut self) -> Result<(), String> {
        let back = self.random.usize(1..5);
        let to = self.batches.keys().rev().nth(back).copied();
        let Some(to) = to.filter(|to| *to >= self.horizon) else { return Ok(()) };
        let is_able = |node: &Side, slice| {
            node.store().can_roll_back(INDEX.slice(slice), Epoch(to)) || !node.has(slice)
        };
        let slices: Vec<SliceNo> = (0..self.known.shape.slices).map(SliceNo).collect();
        let mut beyond = self.nodes.iter().filter(|node| node.applied() > to);
        if !beyond.all(|node| slices.iter().all(|slice| is_able(node, *slice))) {
            return Ok(());
        }
        let newest = self.epoch_next - 1;
        let mark = self.batches[&to].mark.clone();
        for node in self.nodes.iter().filter(|node| node.applied() > to) {
            let done = node.store().roll_back(&mark, Epoch(newest)).await;
            done.map_err(|error| format!("node {} back to {to}: {error}", node.node))?;
            self.trace.push(format!("node {} goes back to {to}, {newest} is dead", node.node));
        }
        self.dead.extend(self.batches.split_off(&(to + 1)).into_keys());
        self.seqno = mark.cut.get(VbucketId(0)).seqno.0;
        self.branch += 1;
        for versions in self.documents.values_mut() {
            versions.retain(|(since, _)| *since <= to);
        }
        self.effects.rollbacks += 1;
        self.compare().await
    }

    /// Compares every copy with the model at all epochs that the copy can answer.
    async fn compare(&mut self) -> Result<(), String> {
        if let Some(turns) = &self.turns {
            turns.resume_panic();
        }
        for (node, began) in self.nodes.iter().zip(&self.began) {
            for stored in node.store().indexes() {
                node.store().wait_loaded(INDEX).await.map_err(|error| error.to_string())?;
                for (slice, floor) in &stored.slices {
                    let place = |epoch| {
                        format!("slice {slice} on node {} at {epoch}, floor {floor}", node.node)
                    };
                    let known = self.batches.range(floor.0..=node.applied());
                    for epoch in known.map(|(epoch, _)| *epoch) {
                        let shown = node.shown(*slice, epoch);
                        let is_too_old = |error: &Error| error.code == ErrorCode::SnapshotTooOld;
                        if shown.as_ref().is_err_and(is_too_old) && node.floor(*slice) > epoch {
                            // A merge has raised it just now.
                            continue;
                        }
                        let found = shown.map_err(|e| format!("{}: {e}", place(epoch)))?;
                        let expected = rows_at(&self.known, &self.documents, *slice, epoch);
                        self.effects.compared += 1;
                        if found != expected {
                            let (rows, of) = (found.len(), expected.len());
                            return Err(format!("{}: {rows} rows, not {of}", place(epoch)));
                        }
                    }
                    // A node learns of earlier dead epochs only from the catalog.
                    for epoch in self.dead.range(*began..=node.applied().max(*began)) {
                        if node.shown(*slice, *epoch).is_ok() {
                            return Err(format!("{} is dead and answered", place(*epoch)));
                        }
                        self.effects.refused += 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks that after a restart each slice has its exact count.
    fn check_counts(&self) -> Result<(), String> {
        for node in &self.nodes {
            for progress in node.store().progress() {
                let slice = progress.slice.slice;
                let expected = rows_at(&self.known, &self.documents, slice, node.applied()).len();
                if progress.entries != expected as u64 {
                    let (node, found) = (node.node, progress.entries);
                    return Err(format!(
                        "slice {slice} on node {node} has {expected} entries, {found} are told"
                    ));
                }
            }
        }
        Ok(())
    }
}
