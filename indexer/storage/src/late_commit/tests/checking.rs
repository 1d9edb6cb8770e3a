//! Reads of views, compared with the expected documents.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proto::ErrorCode;
use proto::model::ids::{LocalIndexId, SliceNo};
use proto::rpc::rows::RowBlockBuilder;
use proto::rpc::scan::KeyRange;

use super::testing::*;
use crate::read::rows::{Bounds, Rows};
use crate::read::snapshot::Snapshot;

/// Documents by id.
pub type Documents = BTreeMap<String, State>;
type Row = (Vec<u8>, Vec<u8>);

/// A source of small numbers that are drawn from one large number.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, below: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    pub fn id(&mut self) -> String {
        // Some ids are prefixes of others.
        "d".repeat(1 + self.roll(9) as usize)
    }

    pub fn state(&mut self) -> State {
        let entries = self.roll(4);
        (0..entries)
            .map(|_| ((self.roll(4) as u8, self.roll(3) as u8), self.roll(2) as u8))
            .collect()
    }

    pub fn slices(&mut self) -> Vec<SliceNo> {
        let chosen = 1 + self.roll(7);
        (0..SLICES).filter(|slice| chosen >> slice & 1 == 1).map(SliceNo).collect()
    }

    pub fn range(&mut self) -> KeyRange {
        let mut bound = |open: u64| {
            (self.roll(open) > 0)
                .then(|| Bytes::from(entry_key(self.roll(4) as u8, self.roll(3) as u8)))
        };
        let (low, high) = (bound(2).unwrap_or_default(), bound(2));
        let high = high.filter(|high| *high > low);
        KeyRange { low, high }
    }
}

/// A snapshot with the rows that every read of it must return.
pub struct Held {
    pub snapshot: Arc<dyn Snapshot>,
    pub index: LocalIndexId,
    pub expected: Documents,
}

/// Reads a view in several ways and compares the rows.
pub fn check(view: &Held, dice: &mut Dice) {
    let (slices, range) = (dice.slices(), dice.range());
    let (reverse, include) = (dice.roll(2) == 0, dice.roll(2) == 0);
    let mut expected: Vec<Row> = Vec::new();
    for (id, state) in &view.expected {
        let rows = rows_of(view.index, id, state).into_iter();
        let wanted =
            rows.filter(|(slice, entry, _)| slices.contains(slice) && range.contains(entry));
        expected.extend(wanted.map(|row| (row.1, if include { row.2 } else { Vec::new() })));
    }
    expected.sort();
    if reverse {
        expected.reverse();
    }
    let snapshot = &view.snapshot;
    let found = parked(&**snapshot, &slices, &range, reverse, include, dice);
    assert_eq!(found, expected, "in pieces, {slices:?} {range:?} reverse {reverse}");
    for snapshot in [Arc::clone(snapshot), snapshot.without_waiting()] {
        let found = snapshot.rows(&slices, &range, reverse, include).and_then(all);
        let is_absent = |error: &proto::Error| error.code == ErrorCode::NotInMemory;
        if !found.as_ref().is_err_and(is_absent) {
            assert_eq!(found.unwrap(), expected, "row by row");
        }
    }
    let mut rows = snapshot.rows(&slices, &range, reverse, false).unwrap();
    let mut counted = 0;
    loop {
        let walked = rows.count(1 + dice.roll(9)).unwrap();
        counted += walked.rows;
        if walked.is_end {
            break;
        }
    }
    assert_eq!(counted, expected.len() as u64, "counted");
}

/// Reads all rows of a walk, one by one.
fn all(mut rows: Box<dyn Rows>) -> proto::Result<Vec<Row>> {
    let mut found = Vec::new();
    while rows.next()? {
        found.push((rows.entry().to_vec(), rows.include().to_vec()));
    }
    assert!(!rows.put_next_entry(&mut Vec::new()), "nothing is behind the last");
    Ok(found)
}

/// Packs the rows of a walk that is parked or continued after each piece.
fn parked(
    snapshot: &dyn Snapshot,
    slices: &[SliceNo],
    range: &KeyRange,
    reverse: bool,
    include: bool,
    dice: &mut Dice,
) -> Vec<Row> {
    let (mut found, mut range) = (Vec::<Row>::new(), range.clone());
    let mut rows = snapshot.rows(slices, &range, reverse, include).unwrap();
    loop {
        let mut block = RowBlockBuilder::with_capacity(64);
        let looks = 2 * slices.len() as u64 + 1 + dice.roll(5);
        let bounds = Bounds { bytes: 1 << 20, rows: 1 + dice.roll(6), looks };
        let walked = rows.pack(&mut block, bounds).unwrap();
        let block = block.finish();
        let packed = block.iter().map(|row| (row.entry.to_vec(), row.include.to_vec()));
        found.extend(packed);
        let mut next = Vec::new();
        assert!(!walked.is_end || !rows.put_next_entry(&mut Vec::new()));
        if walked.is_end || !rows.put_next_entry(&mut next) {
            return found;
        }
        if dice.roll(2) == 0 {
            continue;
        }
        // As a parked scan does: it begins again with the next entry, unless it has shown it.
        let is_shown = found.last().is_some_and(|last| last.0 == next);
        match (reverse, is_shown) {
            (true, true) => range.high = Some(next.into()),
            (true, false) => range.high = Some([&next[..], &[0]].concat().into()),
            (false, true) => range.low = [&next[..], &[0]].concat().into(),
            (false, false) => range.low = next.into(),
        }
        rows = snapshot.rows(slices, &range, reverse, include).unwrap();
    }
}
