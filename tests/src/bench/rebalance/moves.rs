//! Moves slices and measures each stage.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proto::model::ids::{MoveId, NodeId, SliceNo};
use proto::model::index::IndexInfo;
use proto::model::moves::{MovePhase, MoveProgress, MoveStage, PlannedMove};
use proto::rpc::api::CoordinatorApi;
use proto::rpc::command::{Command, Outcome as Said, StartMoves};

use super::super::Outcome;
use super::loopback::{INDEXER, Loopback};
use super::{INDEXERS, SLICES};

/// The interval between two checks of the progress of a move.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// The time without file writes after which the compactions of the load are assumed to be finished.
const QUIET: Duration = Duration::from_secs(1);
/// The divisor of the sent bytes that gives the maximum size of the file parts that were not sent.
const OWN_PARTS: u64 = 8;
/// The time limit of each stage of a move.
const PATIENCE: Duration = Duration::from_secs(60);

/// The measurements of one move of a slice.
#[derive(Default)]
pub struct Moved {
    /// The bytes of the files that the target has written.
    pub bytes: u64,
    /// The time until the target had all bytes.
    pub copy: Duration,
    /// The time from there to the change of the topology.
    pub to_done: Duration,
    /// The time of `cp` for the files of the move.
    pub cp: Duration,
    /// The time of `cp` with a sync of each file.
    pub cp_synced: Duration,
    /// True if `cp` was measured for this move.
    is_compared: bool,
}

/// The runner of moves, which moves slices from node to node.
pub struct Mover<'a> {
    cluster: &'a Loopback,
    /// The directory for the copies that `cp` makes.
    scratch: PathBuf,
    next: u16,
    /// The number of finished moves.
    pub count: u64,
}

#[allow(clippy::disallowed_methods, reason = "the bench measures real time and real files")]
impl<'a> Mover<'a> {
    /// Returns a runner for the only index of a cluster.
    pub fn new(cluster: &'a Loopback, scratch: PathBuf) -> Outcome<Self> {
        std::fs::create_dir_all(&scratch)?;
        Ok(Self { cluster, scratch, next: 0, count: 0 })
    }

    /// Runs `count` moves. As soon as the target has the files of a move, `cp` copies them.
    pub async fn copies(&mut self, count: usize) -> Outcome<Vec<Moved>> {
        self.settle().await?;
        let mut all = Vec::new();
        for _ in 0..count {
            all.extend(Some(self.move_next(true).await?).filter(|moved| moved.is_compared));
        }
        if all.is_empty() { Err("no move had files to compare".into()) } else { Ok(all) }
    }

    /// Waits until no node has written or removed a file for [`QUIET`].
    async fn settle(&self) -> Outcome<()> {
        let (mut before, mut since) = (self.files()?, Instant::now());
        let begun = Instant::now();
        while since.elapsed() < QUIET && begun.elapsed() < PATIENCE {
            tokio::time::sleep(QUIET / 10).await;
            let now = self.files()?;
            if now != before {
                (before, since) = (now, Instant::now());
            }
        }
        Ok(())
    }

    /// Returns the fragment files of all nodes.
    fn files(&self) -> Outcome<BTreeSet<PathBuf>> {
        let mut all = BTreeSet::new();
        for node in (INDEXER..INDEXER + INDEXERS).map(NodeId) {
            all.append(&mut names(&self.cluster.fragments(node))?);
        }
        Ok(all)
    }

    /// Moves slices one after another for a time.
    pub async fn keep_moving(&mut self, time: Duration) -> Outcome<Vec<Moved>> {
        let until = Instant::now() + time;
        let mut all = Vec::new();
        while Instant::now() < until {
            all.push(self.move_next(false).await?);
        }
        Ok(all)
    }

    /// Moves the next slice from its node to the following one. With `compare`, measures `cp` of
    /// the copied files too, unless other files were written in the meantime.
    async fn move_next(&mut self, compare: bool) -> Outcome<Moved> {
        let slice = SliceNo(self.next % SLICES);
        self.next += 1;
        self.count += 1;
        let to = self.until("scans have left the target", async |info: &IndexInfo| {
            let from = info.topology.placement[usize::from(slice.0)][0];
            let to = NodeId(INDEXER + (from.0 - INDEXER + 1) % INDEXERS);
            let left = info.moves.iter().any(|m| m.slice == slice && m.from == Some(to));
            (!left).then_some(to)
        });
        let to = to.await?;
        let before = self.files()?;
        let id = self.begin(slice, to).await?;
        let stage = |info: &IndexInfo| info.moves.iter().find(|m| m.id == id).map(|m| m.stage);
        let pending = self.until("pending", async |info: &IndexInfo| {
            stage(info).filter(|stage| *stage > MoveStage::Start).map(|_| Instant::now())
        });
        let pending = pending.await?;
        let copied = self.until("copied", async |_: &IndexInfo| {
            let progress = self.progress(id, to).await?;
            (progress.phase > MovePhase::Copying).then(|| (Instant::now(), progress.bytes))
        });
        let (copied, bytes) = copied.await?;
        let mut moved = Moved { copy: copied - pending, ..Moved::default() };
        if compare {
            let new: Vec<PathBuf> = self.files()?.difference(&before).cloned().collect();
            self.cp(&new, bytes, &mut moved)?;
        }
        let done = self.until("done", async |info: &IndexInfo| {
            let placed = info.topology.placement[usize::from(slice.0)] == [to];
            placed.then(Instant::now)
        });
        let done = done.await?;
        moved.to_done = done - copied;
        Ok(moved)
    }

    async fn begin(&self, slice: SliceNo, to: NodeId) -> Outcome<MoveId> {
        let info = self.index()?;
        let planned = PlannedMove {
            index: info.id,
            generation: info.generation,
            slice,
            from: info.topology.placement[usize::from(slice.0)].first().copied(),
            to: Some(to),
            reason: "measured".into(),
        };
        let command = Command::StartMoves(StartMoves { moves: vec![planned] });
        match self.cluster.coordinator.propose(command.into()).await?.outcome {
            Said::Moves(ids) if ids.len() == 1 => Ok(ids[0]),
            said => Err(format!("slice {slice} does not move: {said:?}").into()),
        }
    }

    fn index(&self) -> Outcome<IndexInfo> {
        let catalog = self.cluster.router.catalog();
        let index = catalog.indexes.values().next().ok_or("there is no index")?;
        Ok(IndexInfo::clone(index))
    }

    async fn progress(&self, id: MoveId, target: NodeId) -> Option<MoveProgress> {
        let status = self.cluster.coordinator.status().await.ok()?;
        let node = status.nodes.into_iter().find(|node| node.node == target)?;
        node.moves.into_iter().find(|progress| progress.id == id)
    }

    /// Calls `look` repeatedly until it returns a value; an error after the time limit.
    async fn until<T>(
        &self,
        what: &str,
        mut look: impl AsyncFnMut(&IndexInfo) -> Option<T>,
    ) -> Outcome<T> {
        let begun = Instant::now();
        loop {
            let info = self.index()?;
            if let Some(found) = look(&info).await {
                return Ok(found);
            }
            if begun.elapsed() > PATIENCE {
                let ended = &self.cluster.router.catalog().ended_moves;
                let last = ended.last();
                return Err(format!("not within {PATIENCE:?}: {what}; last ended: {last:?}").into());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Measures `cp` of these files if they belong to the move, which has sent `sent` bytes. Each
    /// file has an index and a filter in addition to the sent blocks.
    fn cp(&self, files: &[PathBuf], sent: u64, moved: &mut Moved) -> Outcome<()> {
        let lengths = files.iter().map(|file| Ok(std::fs::metadata(file)?.len()));
        moved.bytes = lengths.sum::<Outcome<u64>>()?;
        if moved.bytes < sent || moved.bytes - sent > sent / OWN_PARTS {
            return Ok(());
        }
        let begun = Instant::now();
        let status = std::process::Command::new("cp").args(files).arg(&self.scratch).status()?;
        moved.cp = begun.elapsed();
        if !status.success() {
            return Err(format!("cp ended with {status}").into());
        }
        let copies = names(&self.scratch)?;
        for copy in &copies {
            std::fs::File::open(copy)?.sync_all()?;
        }
        std::fs::File::open(&self.scratch)?.sync_all()?;
        moved.cp_synced = begun.elapsed();
        moved.is_compared = true;
        Ok(copies.iter().try_for_each(std::fs::remove_file)?)
    }
}

#[allow(clippy::disallowed_methods, reason = "the bench looks at real files")]
fn names(dir: &Path) -> Outcome<BTreeSet<PathBuf>> {
    Ok(std::fs::read_dir(dir)?.map(|found| Ok(found?.path())).collect::<std::io::Result<_>>()?)
}
