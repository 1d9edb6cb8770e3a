//! The driver, which applies a history to the store and to the model, and compares them.
//!
//! The driver plays the environment of a storage engine: the source, the coordinator that numbers
//! epochs and moves the horizon, the service that builds indexes, and the machine that crashes. The
//! driver also records the epochs that the store reports as durable, and checks that they are not
//! lost; [`super::recover`] contains the driver's work after a crash.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::Error;
use proto::env::sim::{SimFs, Turns, world};
use proto::env::{Env, Task};
use proto::lock::lock;
use proto::model::cut::{Cut, EpochMark};
use proto::model::ids::{Epoch, LocalIndexId};
use storage::{EpochBatch, SliceStore, StoredIndex};
use tokio::time::timeout;

use super::check::Held;
use super::compare::{Depth, Finding, Verdict};
use super::history::{Op, choose};
use super::model::Model;
use super::plan::Plan;
use super::shape::{Build, Edit, Known, Shape};
use super::source::{Source, VBUCKETS, pack_documents};
use super::{BUCKET, NODE, open_store};

/// The time limit of a step, in simulated time.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// A history in progress.
pub struct Driver {
    /// The plan of the history.
    pub plan: Plan,
    pub(super) env: Env,
    pub(super) fs: SimFs,
    /// The scheduler of blocking work; `None` if blocking work runs at once.
    pub(super) turns: Option<Turns>,
    /// The calls that run concurrently with the history, until the store is closed.
    pub(super) beside: Vec<Task>,
    /// The first error of a concurrent call.
    pub(super) beside_failed: Arc<Mutex<Option<Error>>>,
    pub(super) dir: PathBuf,
    pub(super) store: Option<Arc<dyn SliceStore>>,
    pub(super) model: Model,
    pub(super) source: Source,
    /// The indexes that the store has or is building.
    pub indexes: BTreeMap<LocalIndexId, Known>,
    /// Indexes that were dropped, or whose build was interrupted by a restart; the stream may still carry them.
    pub gone: Vec<Known>,
    /// All epochs of the current branch, ascending.
    pub marks: Vec<EpochMark>,
    /// The newest horizon in an epoch.
    pub horizon: Epoch,
    /// The rollback points below the horizon.
    pub points: Vec<Epoch>,
    epoch_next: u64,
    /// The newest epoch that the store has reported as durable.
    pub(super) durable: Epoch,
    pub(super) held: Vec<Held>,
    /// The generator of the choice of steps.
    chooser: fastrand::Rng,
    /// The generator of the details of steps and comparisons.
    pub(super) random: fastrand::Rng,
    /// The steps up to now, for the report.
    pub trace: Arc<Mutex<Vec<String>>>,
    /// The number of times that the store was reopened.
    pub recoveries: u32,
    /// The number of epochs that were applied at the second attempt.
    pub tried_again: u64,
    /// The number of reopenings that a crash or a fault caused.
    faults: u32,
}

/// Returns the finding for a failed call that no fault excuses.
pub(super) fn failed(error: Error) -> Finding {
    Finding::Failed(error)
}

impl Driver {
    /// Returns a history with an empty store.
    pub fn new(plan: Plan) -> Result<Self, Finding> {
        let (mut env, _, fs) = world(plan.seed);
        let turns = plan.interleaved.then(|| Turns::new(plan.seed));
        if let Some(turns) = &turns {
            env.spawner = turns.spawner();
        }
        if let Some(at) = plan.crash_at {
            fs.crash_at(at);
        }
        if let Some(at) = plan.fail_at {
            fs.fail_at(at);
        }
        let mut driver = Self {
            env,
            fs,
            turns,
            beside: Vec::new(),
            beside_failed: Arc::default(),
            dir: PathBuf::from("/node"),
            store: None,
            model: Model::new(NODE),
            source: Source::default(),
            indexes: BTreeMap::new(),
            gone: Vec::new(),
            marks: Vec::new(),
            horizon: Epoch(0),
            points: Vec::new(),
            epoch_next: 1,
            durable: Epoch(0),
            held: Vec::new(),
            chooser: fastrand::Rng::with_seed(plan.seed),
            random: fastrand::Rng::with_seed(plan.seed ^ 0xc0ffee),
            trace: Arc::default(),
            recoveries: 0,
            tried_again: 0,
            faults: 0,
            plan,
        };
        match open_store(&driver.env, &driver.dir, driver.plan.memory_bytes) {
            Ok(store) => driver.store = Some(store),
            Err(error) if !driver.is_excused() => return Err(failed(error)),
            Err(_) => {}
        }
        Ok(driver)
    }

    /// The number of file operations so far.
    pub fn operations(&self) -> u64 {
        self.fs.operations()
    }

    /// Runs the history to its end, then compares everything, before and after a restart.
    pub async fn run(&mut self) -> Verdict {
        if self.store.is_none() {
            self.recover(None).await?;
        }
        let (mut step, mut end) = (0, self.plan.steps);
        while step < end {
            let op = choose(self, &mut self.chooser.clone());
            self.chooser.u64(..);
            self.note(format!("{step}: {op:?}"));
            let done = match timeout(PATIENCE, self.perform(&op)).await {
                Ok(done) => done,
                Err(_) => self.timed_out(),
            };
            let faults = self.faults;
            self.or_recover(done, Some(&op)).await?;
            // The step is done, in the model too, when work beside it fails.
            let beside = self.check_beside().and_then(|()| self.check_counters());
            self.or_recover(beside, None).await?;
            for _ in 0..self.random.u8(0..6) {
                tokio::task::yield_now().await;
            }
            if step % self.plan.check_every == 0 {
                let depth = if self.random.u8(0..4) == 0 { Depth::Whole } else { Depth::Glance };
                let same = self.check(depth);
                self.or_recover(same, None).await?;
            }
            if self.faults > faults {
                end = end.min(step + self.plan.steps_after_fault);
            }
            step += 1;
        }
        let same = self.check(Depth::Whole);
        self.or_recover(same, None).await?;
        self.note("the last restart".to_owned());
        let opened = self.recover(None).await;
        self.or_recover(opened, None).await
    }

    /// Returns the finding for a call that does not return in time. A store may wait if its machine
    /// is down; otherwise it hangs.
    pub(super) fn timed_out(&self) -> Verdict {
        let message = format!("no answer for {} s", PATIENCE.as_secs());
        if self.is_excused() {
            return Err(failed(Error::unavailable(message)));
        }
        wrong(message)
    }

    pub(super) fn note(&self, line: String) {
        lock(&self.trace).push(line);
    }

    /// True if calls may fail, which is from a crash or a fault until the store is reopened.
    pub(super) fn is_excused(&self) -> bool {
        self.fs.is_crashed() || self.plan.fail_at.is_some_and(|at| self.fs.operations() >= at)
    }

    /// Recovers if the verdict is an error that the simulated machine has caused.
    async fn or_recover(&mut self, verdict: Verdict, pending: Option<&Op>) -> Verdict {
        match verdict {
            Err(Finding::Failed(error)) if self.is_excused() => {
                self.note(format!("{error}: the store is opened again"));
                self.faults += 1;
                if !self.fs.is_crashed() {
                    self.check_after_fault(pending)?;
                }
                self.recover(pending).await
            }
            verdict => verdict,
        }
    }

    /// The store; absent only during a recovery.
    pub(super) fn store(&self) -> Arc<dyn SliceStore> {
        Arc::clone(self.store.as_ref().expect("the store is open"))
    }

    /// The newest floor of all indexes.
    pub fn floor_max(&self) -> Epoch {
        let floors = self.model.indexes().into_iter().chain(self.store().indexes());
        floors.filter_map(|index| index.floor).max().unwrap_or_default()
    }

    /// Returns the newest of the indexes' first epochs, including those that the horizon has
    /// passed.
    pub fn first_epoch_max(&self) -> Epoch {
        let floors = self.model.indexes().into_iter().filter_map(|index| index.floor);
        let gaps = self.marks.windows(2).filter(|pair| pair[1].parent != pair[0].epoch);
        floors.chain(gaps.map(|pair| pair[1].epoch)).max().unwrap_or_default()
    }

    /// True if the newest epoch covers a build's snapshot.
    pub fn covers_build(&self, known: &Known) -> bool {
        let (Some(mark), Some(build)) = (self.marks.last(), &known.build) else { return false };
        build.cut.as_ref().is_some_and(|cut| {
            cut.iter().all(|(vbucket, at)| mark.cut.get(vbucket).seqno >= at.seqno)
        })
    }

    async fn perform(&mut self, op: &Op) -> Verdict {
        match op {
            Op::Write { documents } => self.write(*documents),
            Op::Epoch { all, gap, horizon } => {
                self.cut(*all, *gap, *horizon);
                let mark = self.marks.last().cloned().expect("just cut");
                let batch = self.batch(&mark);
                self.apply(&batch).await?;
                self.model.apply(batch).await.map_err(failed)?;
            }
            Op::BeginBuild(shape) => self.begin_build(shape).await?,
            Op::BeginBackfill(id) => self.begin_backfill(*id).await?,
            Op::Backfill(id, documents) => self.backfill(*id, *documents).await?,
            Op::FinishBuild(id) => {
                let (mark, known) = (self.marks.last().expect("an epoch"), &self.indexes[id]);
                self.store().finish_build(known.shape.id, mark).await.map_err(failed)?;
                self.model_finish(*id).await?;
            }
            Op::DropIndex(id) => {
                self.store().drop_index(*id).await.map_err(failed)?;
                self.model_drop(*id).await?;
            }
            Op::Edit(id, edit) => {
                apply_edit(&*self.store(), *id, edit).await.map_err(failed)?;
                self.model_edit(*id, edit).await?;
            }
            Op::Flush | Op::Compact if self.is_beside() => self.run_beside(op),
            Op::Regroup(id, grouping) => {
                self.store().regroup(*id, *grouping).await.map_err(failed)?;
            }
            Op::Truncate(epoch) => {
                let mark = self.mark(*epoch).expect("a kept epoch").clone();
                for StoredIndex { info, slices, .. } in self.store().indexes() {
                    let mut slices = slices.iter().map(|(slice, _)| info.local_id().slice(*slice));
                    let unable = slices.find(|slice| !self.store().can_roll_back(*slice, *epoch));
                    if let Some(slice) = unable {
                        return wrong(format!("slice {slice} cannot go back to {epoch}"));
                    }
                }
                self.store().roll_back(&mark, Epoch(0)).await.map_err(failed)?;
                self.model_truncate(&mark).await?;
            }
            Op::Flush => {
                let committed = self.store().counters(BUCKET).committed;
                self.store().flush().await.map_err(failed)?;
                let stable = self.store().counters(BUCKET).stable;
                if stable < committed {
                    return wrong(format!("flushed {committed}, stable is {stable}"));
                }
            }
            Op::Compact => self.store().compact().await.map_err(failed)?,
            Op::Restart => self.recover(None).await?,
            Op::Hold(id, epoch) => self.hold(*id, *epoch),
            Op::Release => self.held.clear(),
            Op::WaitDurable => self.wait_durable().await?,
        }
        Ok(())
    }

    /// Applies an epoch to the store. If the store fails, the epoch is applied again to the open
    /// store.
    async fn apply(&mut self, batch: &EpochBatch) -> Verdict {
        let applied = self.store().apply(batch.clone()).await;
        let tries_again = self.plan.tries_again && self.is_excused() && !self.fs.is_crashed();
        let applied = match applied {
            Err(error) if tries_again => {
                self.note(format!("{error}: the epoch is applied again"));
                let again = self.store().apply(batch.clone()).await;
                if again.is_ok() {
                    // The fault is over, so nothing excuses a difference.
                    (self.plan.fail_at, self.tried_again) = (None, self.tried_again + 1);
                }
                again
            }
            applied => applied,
        };
        applied.map_err(failed)
    }

    /// Decides at random whether a call runs concurrently with the history.
    fn is_beside(&mut self) -> bool {
        self.plan.interleaved && self.random.bool()
    }

    /// Starts a call for which the history does not wait.
    fn run_beside(&mut self, op: &Op) {
        let (store, failed) = (self.store(), Arc::clone(&self.beside_failed));
        let compacts = matches!(op, Op::Compact);
        let call = async move {
            let done = if compacts { store.compact().await } else { store.flush().await };
            if let Err(error) = done {
                lock(&failed).get_or_insert(error);
            }
        };
        self.beside.push(self.env.spawn_request("beside", call));
    }

    /// Returns the failure of a concurrent call, if there was one.
    fn check_beside(&self) -> Verdict {
        if let Some(turns) = &self.turns {
            turns.resume_panic();
        }
        match lock(&self.beside_failed).take() {
            Some(error) => Err(failed(error)),
            None => Ok(()),
        }
    }

    fn write(&mut self, documents: usize) {
        for _ in 0..documents {
            let id = self.plan.id(&mut self.random);
            let removed = self.random.u8(0..5) == 0;
            let content = (!removed).then(|| self.random.u64(0..40));
            self.source.write(id, content);
        }
    }

    /// Makes an epoch from the streams.
    fn cut(&mut self, all: bool, gap: bool, horizon: Epoch) {
        let (before, parent) = match self.marks.last() {
            Some(mark) => ((*mark.cut).clone(), mark.epoch),
            None => (Cut::zero(VBUCKETS), Epoch(0)),
        };
        let missed = Epoch(self.epoch_next);
        self.choose_points(horizon);
        self.epoch_next += u64::from(gap) + self.random.u64(0..4) / 3;
        let cut = match all {
            true => self.source.head(),
            false => self.source.cut_after(&before, &mut self.random),
        };
        self.marks.push(EpochMark {
            bucket: BUCKET,
            epoch: Epoch(self.epoch_next),
            parent: if gap { missed } else { parent },
            cut: Arc::new(cut),
            horizon,
            points: Arc::new(self.points.clone()),
        });
        self.epoch_next += 1;
        self.horizon = horizon;
    }

    /// Keeps some of the epochs below the new horizon as rollback points and gives up the others.
    fn choose_points(&mut self, horizon: Epoch) {
        let passed = self.marks.iter().map(|mark| mark.epoch);
        let passed = passed.filter(|epoch| self.horizon <= *epoch && *epoch < horizon);
        let candidates: Vec<Epoch> = passed.collect();
        self.points.retain(|_| self.random.u8(0..12) > 0);
        self.points.extend(candidates.into_iter().filter(|_| self.random.u8(0..4) == 0));
    }

    /// Returns the mutations of an epoch from the streams, for the present slices.
    pub(super) fn batch(&mut self, mark: &EpochMark) -> EpochBatch {
        let at = self.marks.iter().position(|known| known.epoch == mark.epoch);
        let before = at.and_then(|at| at.checked_sub(1)).map(|at| &self.marks[at]);
        let from = before.map_or_else(|| Cut::zero(VBUCKETS), |before| (*before.cut).clone());
        let indexes = self.indexes.values().chain(&self.gone);
        let pieces = self.source.pieces(&from, &mark.cut, indexes, &mut self.random);
        EpochBatch { mark: mark.clone(), pieces, commits: Vec::new() }
    }

    pub(super) fn mark(&self, epoch: Epoch) -> Option<&EpochMark> {
        self.marks.iter().find(|mark| mark.epoch == epoch)
    }

    async fn begin_build(&mut self, shape: &Shape) -> Verdict {
        let (info, grouping) = (shape.info(), shape.grouping);
        self.store().begin_build(Arc::clone(&info), grouping).await.map_err(failed)?;
        self.model.begin_build(info, grouping).await.map_err(failed)?;
        self.gone.retain(|known| known.shape.id != shape.id);
        let build = Some(Build::default());
        let known = Known { shape: shape.clone(), edits: Vec::new(), build };
        self.indexes.insert(shape.id, known);
        Ok(())
    }

    async fn begin_backfill(&mut self, id: LocalIndexId) -> Verdict {
        let known = self.indexes.get_mut(&id).expect("an index");
        let cut = self.source.head();
        let left = self.source.documents(&cut).into_iter().collect();
        known.build = Some(Build { cut: Some(cut), left });
        self.store().begin_backfill(id).await.map_err(failed)?;
        self.model.begin_backfill(id).await.map_err(failed)
    }

    async fn backfill(&mut self, id: LocalIndexId, documents: usize) -> Verdict {
        let known = &self.indexes[&id];
        let Some(build) = &known.build else { return Ok(()) };
        // Documents are taken from the end: a store must not rely on the order of a backfill stream.
        let left = build.left.len() - documents;
        let body = pack_documents(known, &build.left[left..]);
        self.store().backfill(id, body.clone()).await.map_err(failed)?;
        self.model.backfill(id, body).await.map_err(failed)?;
        let build = self.indexes.get_mut(&id).and_then(|known| known.build.as_mut());
        build.expect("the build").left.truncate(left);
        Ok(())
    }

    pub(super) async fn model_finish(&mut self, id: LocalIndexId) -> Verdict {
        let mark = self.marks.last().expect("an epoch");
        let known = self.indexes.get_mut(&id).expect("an index");
        known.build = None;
        self.model.finish_build(id, mark).await.map_err(failed)
    }

    pub(super) async fn model_drop(&mut self, id: LocalIndexId) -> Verdict {
        self.gone.extend(self.indexes.remove(&id));
        self.model.drop_index(id).await.map_err(failed)
    }

    pub(super) async fn model_edit(&mut self, id: LocalIndexId, edit: &Edit) -> Verdict {
        let known = self.indexes.get_mut(&id).expect("an index");
        known.edits.push(edit.clone());
        apply_edit(&self.model, id, edit).await.map_err(failed)
    }

    pub(super) async fn model_truncate(&mut self, mark: &EpochMark) -> Verdict {
        self.source.rewind(&mark.cut);
        self.marks.retain(|kept| kept.epoch <= mark.epoch);
        self.points.retain(|point| *point < mark.epoch);
        self.horizon = self.horizon.min(mark.epoch);
        self.durable = mark.epoch;
        self.model.roll_back(mark, Epoch(0)).await.map_err(failed)
    }

    async fn wait_durable(&mut self) -> Verdict {
        let Some(mark) = self.marks.last() else { return Ok(()) };
        self.store().wait_durable(BUCKET, mark.epoch).await.map_err(failed)?;
        let durable = self.store().counters(BUCKET).durable;
        if durable < mark.epoch {
            return wrong(format!("waited for {} and durable is {durable}", mark.epoch));
        }
        Ok(())
    }
}

pub(super) fn wrong(what: String) -> Verdict {
    Err(Finding::Wrong(what))
}

async fn apply_edit(store: &dyn SliceStore, index: LocalIndexId, edit: &Edit) -> proto::Result<()> {
    let of = |slice| index.slice(slice);
    match edit {
        Edit::Split { slice, at, low, high } => store.split(of(*slice), at, *low, *high).await,
        Edit::Clone { slice, to } => store.clone_slice(of(*slice), *to).await,
        Edit::Drop { slice } => store.drop_slice(of(*slice)).await,
    }
}
