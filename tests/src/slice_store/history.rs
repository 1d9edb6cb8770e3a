//! The choice of a history's next step, from the seed and the present state. Only valid steps are
//! chosen: a build is finished when an epoch covers its snapshot, and a rollback returns to an
//! epoch that every index can still answer, or to a rollback point.

use proto::model::ids::{Epoch, Generation, IndexId, LocalIndexId, SliceNo};
use storage::Grouping;

use super::driver::Driver;
use super::shape::{Edit, Known, Shape, any_grouping};

/// The maximum number of indexes at a time.
const INDEXES_MAX: usize = 4;
/// The maximum number of slices of an index; an index with so many is not cloned or split.
const SLICES_MAX: usize = 6;

/// One step of a history.
#[derive(Clone, Debug)]
pub enum Op {
    /// The source writes or removes documents.
    Write {
        /// The number of documents.
        documents: usize,
    },
    /// An epoch is made and applied.
    Epoch {
        /// True for a cut at the source's head; false for a cut before it.
        all: bool,
        /// True if the epoch's parent is not the last applied epoch, as if an epoch had been
        /// missed.
        gap: bool,
        /// The horizon of the epoch.
        horizon: Epoch,
    },
    /// Begins the build of an index.
    BeginBuild(Box<Shape>),
    /// A backfill snapshot is taken.
    BeginBackfill(LocalIndexId),
    /// This number of documents of the snapshot is delivered.
    Backfill(LocalIndexId, usize),
    /// The build ends.
    FinishBuild(LocalIndexId),
    /// The index is dropped.
    DropIndex(LocalIndexId),
    /// A slice is split, cloned or dropped.
    Edit(LocalIndexId, Edit),
    /// The columns of an index are regrouped.
    Regroup(LocalIndexId, Grouping),
    /// A rollback.
    Truncate(Epoch),
    /// Memory is flushed.
    Flush,
    /// Fragments are merged.
    Compact,
    /// The process restarts.
    Restart,
    /// A snapshot is taken for a later comparison.
    Hold(LocalIndexId, Epoch),
    /// Held snapshots are released.
    Release,
    /// Waits until the newest epoch is durable.
    WaitDurable,
}

/// Returns a step that begins or advances a build.
pub fn choose(driver: &Driver, random: &mut fastrand::Rng) -> Op {
    if driver.indexes.is_empty() {
        return begin_build(driver, random);
    }
    match random.u32(0..100) {
        0..26 => Op::Write { documents: random.usize(1..=driver.plan.write_max) },
        26..54 => epoch(driver, random),
        54..74 => build(driver, random),
        74..81 => Op::Flush,
        81..84 => Op::Compact,
        84..88 => edit(driver, random),
        88..91 => Op::Regroup(any_index(driver, random).shape.id, any_grouping(random)),
        91 => Op::Restart,
        92..94 => truncate(driver, random),
        94..96 => hold(driver, random),
        96 => Op::Release,
        97 if driver.indexes.len() > 1 => Op::DropIndex(any_index(driver, random).shape.id),
        _ => Op::WaitDurable,
    }
}

fn any_index<'a>(driver: &'a Driver, random: &mut fastrand::Rng) -> &'a Known {
    let at = random.usize(0..driver.indexes.len());
    driver.indexes.values().nth(at).expect("there is an index")
}

fn epoch(driver: &Driver, random: &mut fastrand::Rng) -> Op {
    let known: Vec<Epoch> =
        driver.marks.iter().map(|m| m.epoch).filter(|e| *e >= driver.horizon).collect();
    let horizon = match known.len() {
        0 => Epoch(0),
        n if n > 20 => known[random.usize(n / 2..n)],
        n if random.u8(0..6) == 0 => known[random.usize(0..n)],
        _ => driver.horizon,
    };
    Op::Epoch { all: random.bool(), gap: random.u8(0..40) == 0, horizon }
}

/// Returns a step that begins a build.
fn build(driver: &Driver, random: &mut fastrand::Rng) -> Op {
    let building: Vec<&Known> = driver.indexes.values().filter(|i| i.build.is_some()).collect();
    if building.is_empty() {
        let room = driver.indexes.len() < INDEXES_MAX;
        return if room { begin_build(driver, random) } else { epoch(driver, random) };
    }
    let known = building[random.usize(0..building.len())];
    let id = known.shape.id;
    // Sometimes a build or its snapshot is restarted.
    match (random.u8(0..30), &known.build) {
        (0, _) => Op::BeginBuild(Box::new(known.shape.clone())),
        (1, _) => Op::BeginBackfill(id),
        (_, Some(build)) if build.cut.is_none() => Op::BeginBackfill(id),
        (_, Some(build)) if !build.left.is_empty() => {
            Op::Backfill(id, random.usize(1..=build.left.len()))
        }
        (_, Some(_)) if driver.covers_build(known) => Op::FinishBuild(id),
        _ => Op::Epoch { all: true, gap: false, horizon: driver.horizon },
    }
}

/// Returns a step that begins the build of a new index or of a dropped one. The latter may keep its
/// generation, like a slice that leaves a node and returns.
fn begin_build(driver: &Driver, random: &mut fastrand::Rng) -> Op {
    let gone = driver.gone.iter().filter(|known| !driver.indexes.contains_key(&known.shape.id));
    if let Some(known) = gone.last().filter(|_| random.bool()) {
        let id = known.shape.id;
        let generation = Generation(id.generation.0 + random.u32(0..2));
        let id = LocalIndexId { generation, ..id };
        if !driver.indexes.contains_key(&id) {
            return Op::BeginBuild(Box::new(Shape::random(id, random)));
        }
    }
    let newest = driver.indexes.values().chain(&driver.gone).map(|known| known.shape.id).max();
    let id = match newest.unwrap_or_default() {
        // Every other index has two generations.
        LocalIndexId { index, generation: Generation(0) } if index.0 % 2 == 1 => {
            LocalIndexId { index, generation: Generation(1) }
        }
        LocalIndexId { index, .. } => {
            LocalIndexId { index: IndexId(index.0 + 1), generation: Generation(0) }
        }
    };
    Op::BeginBuild(Box::new(Shape::random(id, random)))
}

/// Returns a random built index; `None` if there is none.
fn any_built<'a>(driver: &'a Driver, random: &mut fastrand::Rng) -> Option<&'a Known> {
    let built: Vec<_> = driver.indexes.values().filter(|i| i.build.is_none()).collect();
    if built.is_empty() { None } else { Some(built[random.usize(0..built.len())]) }
}

fn edit(driver: &Driver, random: &mut fastrand::Rng) -> Op {
    let Some(known) = any_built(driver, random) else { return Op::Flush };
    let (id, slices) = (known.shape.id, known.slices());
    let slice = slices[random.usize(0..slices.len())];
    // Slice numbers are never reused; the numbers of edits are above those of all shapes.
    let fresh = SliceNo(100 + 2 * known.edits.len() as u16);
    match random.u8(0..4) {
        0 if slices.len() > 1 => Op::Edit(id, Edit::Drop { slice }),
        1 if slices.len() < SLICES_MAX => Op::Edit(id, Edit::Clone { slice, to: fresh }),
        _ if slices.len() < SLICES_MAX => {
            let mut at = known.shape.key(random.u64(..));
            if random.bool() {
                at.extend_from_slice(driver.plan.id(random).as_bytes());
            }
            let high = SliceNo(fresh.0 + 1);
            Op::Edit(id, Edit::Split { slice, at, low: fresh, high })
        }
        _ => Op::Compact,
    }
}

fn truncate(driver: &Driver, random: &mut fastrand::Rng) -> Op {
    let building = driver.indexes.values().any(|known| known.build.is_some());
    let floor = driver.floor_max();
    let born = driver.first_epoch_max();
    let reachable = |epoch: &Epoch| {
        let point = *epoch >= born && driver.points.contains(epoch);
        point || *epoch >= floor.max(driver.horizon)
    };
    let targets: Vec<Epoch> =
        driver.marks.iter().map(|mark| mark.epoch).filter(reachable).collect();
    match targets.len() {
        0 => Op::Release,
        _ if building => Op::Release,
        n => Op::Truncate(targets[random.usize(0..n)]),
    }
}

fn hold(driver: &Driver, random: &mut fastrand::Rng) -> Op {
    let newest = driver.marks.last().map_or(Epoch(0), |mark| mark.epoch);
    let epoch = match random.bool() || driver.marks.is_empty() {
        true => newest,
        false => driver.marks[random.usize(0..driver.marks.len())].epoch,
    };
    Op::Hold(any_index(driver, random).shape.id, epoch)
}
