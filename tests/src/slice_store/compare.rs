//! Functions that read the store and the model and report differences.

use std::sync::Arc;

use proto::error::ErrorKind;
use proto::model::ids::{Epoch, SliceNo};
use proto::rpc::rows::RowBlockBuilder;
use proto::rpc::scan::KeyRange;
use proto::{Error, ErrorCode};
use storage::{Bounds, Rows, SliceStore, Snapshot};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::shape::Known;

/// The result of a comparison or of a step of a history.
pub type Verdict = Result<(), Finding>;

/// The reason why a history ends early.
#[derive(Clone, Debug)]
pub enum Finding {
    /// A wrong answer of the store, with a description.
    Wrong(String),
    /// An error of a call or of a read.
    Failed(Error),
}

impl Finding {
    /// Adds a description of the place to the finding.
    pub fn at(self, place: &str) -> Self {
        match self {
            Self::Wrong(what) => Self::Wrong(format!("{place}: {what}")),
            Self::Failed(mut error) => {
                error.message = format!("{place}: {}", error.message);
                Self::Failed(error)
            }
        }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Wrong(what) => write!(f, "wrong: {what}"),
            Self::Failed(error) => write!(f, "failed: {error} ({:?})", error.code),
        }
    }
}

fn wrong(what: String) -> Verdict {
    Err(Finding::Wrong(what))
}

/// An entry and its included values.
type Row = (Vec<u8>, Vec<u8>);

/// The way in which a snapshot is read.
#[derive(Debug)]
struct Read {
    slices: Vec<SliceNo>,
    range: KeyRange,
    reverse: bool,
    include: bool,
    /// The number of rows of the blocks that [`Rows::pack`] fills; `None` to read entry by entry.
    block_rows: Option<u64>,
}

impl Read {
    fn all(slices: &[SliceNo]) -> Self {
        Self {
            slices: slices.to_vec(),
            range: KeyRange::all(),
            reverse: false,
            include: true,
            block_rows: None,
        }
    }

    fn random(known: &Known, slices: &[SliceNo], random: &mut fastrand::Rng) -> Self {
        let one_in = |of: u8, random: &mut fastrand::Rng| random.u8(0..of) == 0;
        let picked: Vec<SliceNo> = slices.iter().copied().filter(|_| !one_in(3, random)).collect();
        let bound = |random: &mut fastrand::Rng| {
            let mut bound = known.shape.key(random.u64(..));
            match random.u8(0..4) {
                0 => bound.truncate(random.usize(0..=bound.len())),
                1 => bound.extend_from_slice(format!("d{}", random.u8(0..20)).as_bytes()),
                2 => bound = proto::value::key::successor(&bound).unwrap_or_default(),
                _ => {}
            }
            bytes::Bytes::from(bound)
        };
        let low = if one_in(3, random) { Default::default() } else { bound(random) };
        let high = if one_in(3, random) { None } else { Some(bound(random)) };
        Self {
            slices: picked,
            range: KeyRange { low, high },
            reverse: random.bool(),
            include: random.bool(),
            block_rows: random.bool().then(|| random.u64(1..9)),
        }
    }

    fn rows(&self, snapshot: &dyn Snapshot) -> proto::Result<Vec<Row>> {
        let mut rows = snapshot.rows(&self.slices, &self.range, self.reverse, self.include)?;
        match self.block_rows {
            Some(block_rows) => pack(&mut *rows, block_rows),
            None => walk(&mut *rows),
        }
    }
}

fn walk(rows: &mut dyn Rows) -> proto::Result<Vec<Row>> {
    let mut found = Vec::new();
    while rows.next()? {
        found.push((rows.entry().to_vec(), rows.include().to_vec()));
    }
    Ok(found)
}

fn pack(rows: &mut dyn Rows, block_rows: u64) -> proto::Result<Vec<Row>> {
    let (mut found, mut block) = (Vec::new(), RowBlockBuilder::default());
    loop {
        let walked = rows.pack(&mut block, Bounds::of_rows(600, block_rows))?;
        let packed = block.finish();
        packed.validate()?;
        found.extend(packed.iter().map(|row| (row.entry.to_vec(), row.include.to_vec())));
        if walked.is_end {
            return Ok(found);
        }
    }
}

/// The extent of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// One full scan and one other read.
    Glance,
    /// Each slice in both directions, its checksum, and several ranges.
    Whole,
}

/// Compares two snapshots of an index.
pub fn snapshots(
    real: &dyn Snapshot,
    model: &dyn Snapshot,
    known: &Known,
    slices: &[SliceNo],
    depth: Depth,
    random: &mut fastrand::Rng,
) -> Verdict {
    let mut reads = vec![Read::all(slices)];
    if depth == Depth::Whole {
        for slice in slices {
            reads.push(Read::all(&[*slice]));
            reads.push(Read { reverse: true, ..Read::all(&[*slice]) });
        }
        reads.push(Read { reverse: true, include: false, ..Read::all(slices) });
    }
    for _ in 0..if depth == Depth::Whole { 6 } else { 1 } {
        reads.push(Read::random(known, slices, random));
    }
    for read in &reads {
        let expected = read.rows(model).map_err(Finding::Failed)?;
        let found = read.rows(real).map_err(Finding::Failed)?;
        same_rows(&found, &expected).map_err(|finding| finding.at(&format!("{read:?}")))?;
    }
    for slice in slices {
        if depth == Depth::Whole {
            let found = real.checksum(*slice).map_err(Finding::Failed)?;
            let rows = Read::all(&[*slice]).rows(model).map_err(Finding::Failed)?;
            let expected = checksum(&rows);
            if found != expected {
                return wrong(format!(
                    "checksum of slice {slice}: {found:?}, expected {expected:?}"
                ));
            }
        }
    }
    Ok(())
}

/// Returns the checksum and the number of a slice's rows. [`Snapshot::checksum`] is not used, since
/// it is under test.
fn checksum(rows: &[Row]) -> (u64, u64) {
    let hash = |(entry, include): &Row| xxh3_64_with_seed(include, xxh3_64(entry));
    let sum = rows.iter().map(hash).fold(0u64, u64::wrapping_add);
    (sum, rows.len() as u64)
}

fn same_rows(found: &[Row], expected: &[Row]) -> Verdict {
    if found == expected {
        return Ok(());
    }
    let at = found.iter().zip(expected).take_while(|(found, expected)| found == expected).count();
    let show = |row: Option<&Row>| match row {
        Some((entry, include)) => {
            let tail = entry.len().saturating_sub(60);
            let include = &include[..include.len().min(20)];
            format!("…{} + {}", entry[tail..].escape_ascii(), include.escape_ascii())
        }
        None => "the end".to_owned(),
    };
    wrong(format!(
        "row {at}: {}, expected {} ({} rows, expected {})",
        show(found.get(at)),
        show(expected.get(at)),
        found.len(),
        expected.len()
    ))
}

/// The two stores to compare, and the epochs that they must answer.
pub struct Pair<'a> {
    /// The store under test.
    pub real: &'a Arc<dyn SliceStore>,
    /// The model, whose answers are the expected ones.
    pub model: &'a dyn SliceStore,
    /// The epoch below which the store may answer that an epoch is too old.
    pub horizon: Epoch,
}

impl Pair<'_> {
    /// Compares an index at an epoch. If the model answers that the epoch is too old, not applied
    /// or absent, the store must give this answer too.
    pub fn at(
        &self,
        known: &Known,
        epoch: Epoch,
        depth: Depth,
        random: &mut fastrand::Rng,
    ) -> Verdict {
        let id = known.shape.id;
        let place = format!("index {id} at epoch {epoch}");
        let model = self.model.snapshot(id, epoch);
        match (self.real.snapshot(id, epoch), model) {
            (Ok(real), Ok(model)) => {
                let slices = known.slices();
                snapshots(&*real, &*model, known, &slices, depth, random)
                    .map_err(|finding| finding.at(&place))
            }
            (Err(error), Ok(_))
                if error.code == ErrorCode::SnapshotTooOld && epoch < self.horizon =>
            {
                Ok(())
            }
            (Err(real), Err(model)) if real.code == model.code => Ok(()),
            (Err(real), Ok(_)) if real.code.kind() == ErrorKind::Operator => {
                Err(Finding::Failed(real).at(&place))
            }
            (real, model) => {
                let say = |answer: proto::Result<Arc<dyn Snapshot>>| match answer {
                    Ok(_) => "a snapshot".to_owned(),
                    Err(error) => format!("{:?} ({error})", error.code),
                };
                wrong(format!("{place}: {}, expected {}", say(real), say(model)))
            }
        }
    }

    /// Compares the lists of indexes and slices, and their floors, which the horizon may have
    /// raised in the store.
    pub fn inventory(&self) -> Verdict {
        let list = |store: &dyn SliceStore| -> Vec<_> {
            let built = store.progress().into_iter().filter(|slice| slice.floor.is_some());
            let mut list: Vec<_> = built.map(|slice| (slice.slice, slice.floor)).collect();
            list.sort();
            list
        };
        let (real, model) = (list(&**self.real), list(self.model));
        let names = |list: &[(_, _)]| list.iter().map(|(slice, _)| *slice).collect::<Vec<_>>();
        if names(&real) != names(&model) {
            return wrong(format!("slices: {real:?}, expected {model:?}"));
        }
        for ((slice, real), (_, model)) in real.iter().zip(&model) {
            if real < model || *real > (*model).max(Some(self.horizon)) {
                return wrong(format!(
                    "floor of {slice}: {real:?}, expected {model:?}, horizon {}",
                    self.horizon
                ));
            }
        }
        let floors = self.real.indexes().into_iter().filter(|index| index.floor.is_some());
        let (real, model) = (floors.count(), self.model.indexes());
        let built = model.iter().filter(|index| index.floor.is_some()).count();
        if real != built {
            return wrong(format!("{real} built indexes, expected {built}"));
        }
        Ok(())
    }
}
