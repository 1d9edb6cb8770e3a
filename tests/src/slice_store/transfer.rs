//! A test in which a slice moves between two stores while both apply epochs. At every epoch that
//! the target can then answer, its copy must equal a model of the documents, after any crash,
//! failure or change during the move, and with any distance between the two nodes' epochs.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proto::env::sim::Turns;
use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::ids::{Epoch, NodeId, Seqno, SliceNo, VbucketId, Vbuuid};
use proto::model::index::IndexInfo;
use proto::model::topology::IndexTopology;
use proto::rpc::export::FilePiece;
use storage::{
    EpochBatch, Export, Grouping, PartRange, ReceivedFiles, SliceStore, VbucketMutations,
};

use super::BUCKET;
use super::shape::{Known, Shape};
use super::side::{Documents, INDEX, Rows, Side, packed, rows_at};

const SOURCE: NodeId = NodeId(7);
const TARGET: NodeId = NodeId(8);
/// The number of epochs of a run.
const EPOCHS: u64 = 40;
/// The distance of the horizon from the newest epoch, in epochs.
const KEPT: u64 = 6;

/// A run with one move.
pub struct MoveRun {
    /// The scheduler of blocking work; `None` if blocking work runs at once.
    turns: Option<Turns>,
    random: fastrand::Rng,
    known: Known,
    info: Arc<IndexInfo>,
    moved: SliceNo,
    source: Side,
    target: Side,
    /// The batch of epoch n, at index n - 1.
    batches: Vec<EpochBatch>,
    /// The contents of each document, each with the epoch from which it counts.
    documents: Documents,
    seqno: u64,
    received: Option<ReceivedFiles>,
    installed: Option<u64>,
    /// The reason of the last refused installation.
    refused: Option<String>,
    /// The number of injected faults.
    pub faults: u32,
    /// The number of comparisons of the moved slice on the target.
    pub compared: u64,
}

impl MoveRun {
    /// Returns a run with two nodes; the second may have other slices of the index.
    pub async fn new(seed: u64) -> Self {
        Self::with_turns(seed, None).await
    }

    /// Returns a run with two nodes whose blocking work is interleaved.
    pub async fn interleaved(seed: u64) -> Self {
        Self::with_turns(seed, Some(Turns::new(seed))).await
    }

    async fn with_turns(seed: u64, turns: Option<Turns>) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let shape = Shape::random(INDEX, &mut random);
        let moved = SliceNo(random.u16(0..shape.slices));
        let shared = random.bool() && shape.slices > 1;
        let info = shape.info();
        let place = |slice: u16| match shared && SliceNo(slice) != moved {
            true => vec![SOURCE, TARGET],
            false => vec![SOURCE],
        };
        let placement = (0..shape.slices).map(place).collect();
        let topology = Arc::new(IndexTopology { placement, ..(*info.topology).clone() });
        let info = Arc::new(IndexInfo { topology, ..(*info).clone() });
        let known = Known { shape, edits: Vec::new(), build: None };
        let mut target = Side::new(seed ^ 1, TARGET, turns.as_ref());
        if !shared {
            target.first = random.u64(2..20);
        }
        let mut story = Self {
            source: Side::new(seed, SOURCE, turns.as_ref()),
            turns,
            target,
            known,
            info,
            moved,
            batches: Vec::new(),
            documents: BTreeMap::new(),
            seqno: 0,
            received: None,
            installed: None,
            refused: None,
            faults: 0,
            compared: 0,
            random,
        };
        story.begin(shared).await;
        story
    }

    async fn begin(&mut self, shared: bool) {
        for n in 0..self.random.u64(0..60) {
            self.documents.insert(format!("d{n}"), vec![(1, Some(self.random.u64(..)))]);
        }
        self.seqno = self.documents.len() as u64;
        let documents: Vec<_> =
            self.documents.iter().map(|(id, of)| (0, id.as_str(), of[0].1)).collect();
        let snapshot = packed(&self.known, &documents);
        self.batches.push(self.batch(1, 0, Bytes::new()));
        let built = if shared { vec![&self.source, &self.target] } else { vec![&self.source] };
        for side in built {
            // The two nodes may group the columns differently.
            let grouping = if self.random.bool() { Grouping::Together } else { Grouping::Apart };
            let store = side.store();
            store.begin_build(Arc::clone(&self.info), grouping).await.expect("begin");
            store.begin_backfill(INDEX).await.expect("begin");
            store.backfill(INDEX, snapshot.clone()).await.expect("backfill");
            store.apply(self.batches[0].clone()).await.expect("apply");
            store.finish_build(INDEX, &self.batches[0].mark).await.expect("finish");
        }
    }

    fn batch(&self, epoch: u64, after: u64, body: Bytes) -> EpochBatch {
        let position = Position { vbuuid: Vbuuid(9), seqno: Seqno(self.seqno) };
        let mark = EpochMark {
            bucket: BUCKET,
            epoch: Epoch(epoch),
            parent: Epoch(epoch - 1),
            cut: Arc::new(Cut::zero(1).with(&[(VbucketId(0), position)])),
            horizon: Epoch(epoch.saturating_sub(KEPT)),
            points: Arc::default(),
        };
        let (after, to) = (Seqno(after), Seqno(self.seqno));
        EpochBatch {
            mark,
            pieces: vec![VbucketMutations { body, base: Seqno(0), after, to }],
            commits: Vec::new(),
        }
    }

    /// Runs the move to its end.
    pub async fn run(&mut self) -> Result<(), String> {
        while (self.batches.len() as u64) < EPOCHS || self.installed.is_none() {
            if self.batches.len() as u64 > 4 * EPOCHS {
                return Err(format!("the slice is never installed: {:?}", self.refused));
            }
            self.write();
            let newest = self.batches.len() as u64;
            self.source.follow(&self.batches, newest).await.map_err(|e| format!("source: {e}"))?;
            self.follow_behind(newest).await?;
            self.disturb().await;
            if self.installed.is_none() {
                self.try_to_move().await?;
            }
            self.compare().await?;
        }
        let newest = self.batches.len() as u64;
        // An armed fault that has not struck yet is taken back: the end is judged on a disk that works.
        self.target.fs.disarm_faults();
        self.target.crash(self.turns.as_ref()).await;
        self.check_kept()?;
        self.target.follow(&self.batches, newest).await.map_err(|e| format!("target: {e}"))?;
        self.compare().await?;
        self.check_counts()
    }

    /// Checks that after a restart each slice has its exact count, even one that arrived without a
    /// count.
    fn check_counts(&self) -> Result<(), String> {
        for progress in self.target.store().progress() {
            let slice = progress.slice.slice;
            let expected = self.expected(slice, self.target.applied()).len() as u64;
            if progress.entries != expected {
                return Err(format!(
                    "slice {slice} has {expected} entries, {} are told",
                    progress.entries
                ));
            }
        }
        Ok(())
    }

    /// Writes an epoch.
    fn write(&mut self) {
        let epoch = self.batches.len() as u64 + 1;
        let after = self.seqno;
        let mut changes = BTreeMap::new();
        for _ in 0..self.random.usize(0..25) {
            let content = (self.random.u8(0..5) > 0).then(|| self.random.u64(..));
            changes.insert(format!("d{}", self.random.u64(0..80)), content);
        }
        let mut documents = Vec::new();
        for (id, content) in &changes {
            self.seqno += 1;
            documents.push((self.seqno, id.as_str(), *content));
        }
        let body = packed(&self.known, &documents);
        self.batches.push(self.batch(epoch, after, body));
        for (id, content) in changes {
            self.documents.entry(id).or_default().push((epoch, content));
        }
    }

    /// Applies epochs on the target up to a random one before the newest.
    async fn follow_behind(&mut self, newest: u64) -> Result<(), String> {
        let to = newest.saturating_sub(self.random.u64(0..4)).max(self.target.applied());
        if to < self.target.first {
            return Ok(());
        }
        if let Err(error) = self.target.follow(&self.batches, to).await {
            self.recover(&error.to_string()).await?;
        }
        Ok(())
    }

    /// Recovers the target after a fault, from its files.
    async fn recover(&mut self, why: &str) -> Result<(), String> {
        self.faults += 1;
        self.received = None;
        self.target.crash(self.turns.as_ref()).await;
        self.check_kept().map_err(|error| format!("{error}, after {why}"))
    }

    fn check_kept(&mut self) -> Result<(), String> {
        match (self.installed, self.target.has(self.moved)) {
            (Some(at), false) => Err(format!("the slice, installed at {at}, is gone")),
            // The fault struck after the installation was durable.
            (None, true) => {
                self.installed = Some(self.target.applied());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn disturb(&mut self) {
        match self.random.u8(0..24) {
            0 => self.source.store().flush().await.expect("flush"),
            1 => self.source.store().compact().await.expect("compact"),
            2 => self.source.crash(self.turns.as_ref()).await,
            3 => drop(self.target.store().flush().await),
            4 => drop(self.target.store().compact().await),
            5 => self.recover("a crash").await.expect("the durable epochs are present"),
            6 => {
                let at = self.target.fs.operations() + self.random.u64(1..40);
                self.target.fs.fail_at(at);
            }
            7 => drop(self.received.take()),
            _ => {}
        }
        let newest = self.batches.len() as u64;
        self.source.follow(&self.batches, newest).await.expect("the source goes on");
    }

    async fn try_to_move(&mut self) -> Result<(), String> {
        let epoch = self.target.applied();
        if epoch < self.target.first || self.random.u8(0..3) == 0 {
            return Ok(());
        }
        let slice = INDEX.slice(self.moved);
        let export =
            self.source.store().export_slice(slice).await.map_err(|e| format!("export: {e}"))?;
        let mut received = match self.received.take() {
            Some(received) => received,
            None => self.target.store().begin_receiving(SOURCE),
        };
        if let Err(error) = received.begin_round(export.head.clone()).await {
            return self.recover(&error.to_string()).await;
        }
        let Some(mut received) = self.send(&export, received).await? else { return Ok(()) };
        if let Err(error) = received.sync().await {
            drop(received);
            return self.recover(&error.to_string()).await;
        }
        if !received.is_complete() {
            return Err("all was sent and something is missing".into());
        }
        if self.random.bool() {
            // Another round is needed first.
            self.received = Some(received);
            return Ok(());
        }
        let mark = self.batches[epoch as usize - 1].mark.clone();
        let info = Arc::clone(&self.info);
        match self.target.store().install_slice(received, slice, info, &mark).await {
            Ok(()) => self.installed = Some(epoch),
            Err(refused) => {
                self.refused = Some(refused.error.to_string());
                self.received = Some(refused.received);
                // The source may be too far ahead; any other error is the armed fault.
                if refused.error.code != proto::ErrorCode::Unavailable {
                    drop(self.received.take());
                    self.recover(&refused.error.to_string()).await?;
                }
            }
        }
        Ok(())
    }

    /// Sends the files that the target lacks, several pieces at once; `None` if a fault has
    /// interrupted this.
    async fn send(
        &mut self,
        export: &Export,
        mut received: ReceivedFiles,
    ) -> Result<Option<ReceivedFiles>, String> {
        let mut wanted = Vec::new();
        let have = received.complete_files();
        for (file, len) in export.head.files.iter().filter(|(file, _)| !have.contains(file)) {
            let (file, mut offset) = (*file, 0);
            while offset < *len {
                let bytes = (*len - offset).min(self.random.u64(1..9_000));
                wanted.push(PartRange { file, offset, bytes: bytes as usize });
                offset += bytes;
            }
        }
        while !wanted.is_empty() {
            let rest = wanted.split_off(wanted.len().min(self.random.usize(1..6)));
            let mut pieces = export.read(wanted).await.map_err(|error| error.to_string())?;
            wanted = rest;
            let is_changed = self.random.u8(0..100) == 0 && self.faults < 8;
            if is_changed {
                let changed = self.random.usize(0..pieces.len());
                let piece: &mut FilePiece = &mut pieces[changed];
                let mut bytes = piece.bytes.to_vec();
                let at = self.random.usize(0..bytes.len());
                bytes[at] ^= 4;
                piece.bytes = bytes.into();
                self.faults += 1;
            }
            match (received.store_pieces(pieces).await, is_changed) {
                (Ok(()), true) => return Err("a changed piece was taken".into()),
                (Ok(()), false) => {}
                (Err(error), true) if error.code == proto::ErrorCode::Unavailable => {
                    self.received = Some(received);
                    return Ok(None);
                }
                (Err(error), _) => {
                    drop(received);
                    self.recover(&error.to_string()).await?;
                    return Ok(None);
                }
            }
        }
        Ok(Some(received))
    }

    /// The entries of a slice at an epoch, computed from the documents.
    fn expected(&self, slice: SliceNo, epoch: u64) -> Rows {
        rows_at(&self.known, &self.documents, slice, epoch)
    }

    /// Compares every slice of the target with the model at all epochs that the target can answer.
    async fn compare(&mut self) -> Result<(), String> {
        // An armed fault may have struck during the loading.
        if let Err(error) = self.target.store().wait_loaded(INDEX).await {
            return self.recover(&error.to_string()).await;
        }
        for stored in self.target.store().indexes() {
            for (slice, floor) in &stored.slices {
                for epoch in floor.0.max(1)..=self.target.applied() {
                    let place = format!("slice {slice} at epoch {epoch}, floor {floor}");
                    let found = match self.target.shown(*slice, epoch) {
                        Ok(found) => found,
                        Err(error) if error.code == proto::ErrorCode::Io => {
                            return self.recover(&error.to_string()).await;
                        }
                        // A merge has raised the floor just now.
                        Err(error)
                            if error.code == proto::ErrorCode::SnapshotTooOld
                                && self.target.floor(*slice) > epoch =>
                        {
                            continue;
                        }
                        Err(error) => return Err(format!("{place}: {error}")),
                    };
                    if *slice == self.moved {
                        self.compared += 1;
                    }
                    let expected = self.expected(*slice, epoch);
                    if found != expected {
                        return Err(format!(
                            "{place}: {} rows, not {}; installed at {:?}",
                            found.len(),
                            expected.len(),
                            self.installed
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}
