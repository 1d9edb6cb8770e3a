//! Tests of columns that move between groups while fragments are merged, against a plain map, and
//! of histories that return wrong values without the restrictions of fragments.

use std::collections::BTreeMap;

use proto::env::Random as _;
use proto::env::real::SeededRandom;
use proto::model::ids::SliceNo;
use proto::rpc::scan::KeyRange;

use super::file::{ManifestKind, decode, encode};
use super::testing::manifest;
use super::*;
use crate::file_id::FileId;
use crate::rows::columns::Columns;

const A: Columns = Columns(1);
const B: Columns = Columns(2);
const C: Columns = Columns(4);
const D: Columns = Columns(8);
const SLICE: SliceNo = SliceNo(0);

fn of(columns: &[Columns]) -> Columns {
    columns.iter().fold(Columns::NONE, |all, column| all.union(*column))
}

/// The state of a key in a fragment's column: a value or a deletion.
type Cells = BTreeMap<(Columns, u8), Option<u32>>;

/// One slice: its lists, and the content of all files.
struct Table {
    manifest: IndexManifest,
    files: BTreeMap<FileId, Cells>,
}

impl Table {
    fn new(groups: &[Columns]) -> Self {
        let mut manifest = manifest();
        manifest.slices.insert(SLICE, SliceLists::new(groups));
        Self { manifest, files: BTreeMap::new() }
    }

    fn lists(&self) -> &SliceLists {
        &self.manifest.slices[&SLICE]
    }

    fn next_file(&self) -> FileId {
        FileId(self.files.len() as u64 + 1)
    }

    /// Adds a flushed fragment with these cells; returns its number.
    fn insert(&mut self, cells: Cells) -> FileId {
        let file = self.next_file();
        let columns = of(&cells.keys().map(|(column, _)| *column).collect::<Vec<_>>());
        self.files.insert(file, cells);
        self.manifest.add(file, &[SLICE], columns, EpochRange::ALL, ListPosition::Newest).unwrap();
        file
    }

    /// Writes the same value into each of `columns` of key 0, and flushes.
    fn put(&mut self, columns: &[Columns], value: u32) -> FileId {
        self.insert(columns.iter().map(|column| ((*column, 0), Some(value))).collect())
    }

    /// Merges the range `piece` of a group's list; tombstones are dropped if nothing older is in
    /// the list.
    fn compact(&mut self, group: Columns, piece: std::ops::Range<usize>) {
        let inputs = self.lists().group(group).unwrap().items[piece.clone()].to_vec();
        let mut cells = Cells::new();
        for item in &inputs {
            let counts =
                self.files[&item.file].iter().filter(|((c, _), _)| item.columns.contains(*c));
            cells.extend(counts.map(|(place, value)| (*place, *value)));
        }
        if piece.start == 0 {
            cells.retain(|_, value| value.is_some());
        }
        let file = self.next_file();
        let columns = of(&inputs.iter().map(|item| item.columns).collect::<Vec<_>>());
        let output = ListItem {
            file,
            rows_of: SLICE,
            range: KeyRange::all(),
            columns,
            epochs: EpochRange::ALL,
        };
        self.files.insert(file, cells);
        assert!(self.manifest.replace(SLICE, group, &inputs, vec![output]).unwrap());
    }

    fn save_and_load(&mut self) {
        let bytes = encode(ManifestKind::Index, 0, &self.manifest).unwrap();
        self.manifest = decode(ManifestKind::Index, &bytes).unwrap();
        self.manifest.check().unwrap();
    }

    fn read(&self, column: Columns, key: u8) -> Option<u32> {
        let items = &self.lists().group_of(column)?.items;
        let mut cells = items
            .iter()
            .rev()
            .filter(|item| item.columns.contains(column))
            .filter_map(|item| self.files[&item.file].get(&(column, key)));
        *cells.next()?
    }

    /// The files of a group's list.
    fn group(&self, columns: &[Columns]) -> Vec<u64> {
        let group = self.lists().group(of(columns)).unwrap();
        group.items.iter().map(|item| item.file.0).collect()
    }
}

#[test]
fn merges_keep_fragment_order() {
    let mut table = Table::new(&[of(&[A, B]), of(&[C, D])]);
    table.put(&[A, C], 1);
    table.put(&[A, B], 2);
    table.put(&[C, D], 3);
    assert_eq!(table.group(&[A, B]), [1, 2]);
    assert_eq!(table.group(&[C, D]), [1, 3]);
    table.manifest.regroup(&[of(&[A, B, C]), D]).unwrap();
    assert_eq!(table.group(&[A, B, C]), [1, 2, 3]);
    assert_eq!(table.group(&[D]), [3]);
    table.compact(of(&[A, B, C]), 0..3);
    for saved in [false, true] {
        if saved {
            table.save_and_load();
        }
        table.manifest.regroup(&[A, of(&[B, C, D])]).unwrap();
        assert_eq!(table.read(C, 0), Some(3), "4 holds the newest c; of 3 only d counts");
        assert_eq!(table.read(D, 0), Some(3));
        assert_eq!((table.read(A, 0), table.read(B, 0)), (Some(2), Some(2)));
    }
}

#[test]
fn an_entry_that_a_merge_has_deleted_never_reappears() {
    let mut table = Table::new(&[of(&[A, B]), of(&[C, D])]);
    table.put(&[A, C], 1);
    table.put(&[A, B], 2);
    table.put(&[C, D], 3);
    table.insert(BTreeMap::from([((C, 0), None)]));
    assert_eq!(table.read(C, 0), None);
    table.manifest.regroup(&[of(&[A, B, C]), D]).unwrap();
    table.compact(of(&[A, B, C]), 0..4);
    assert_eq!(table.files[&FileId(5)].len(), 2, "the erasure is gone with what it erased");
    for saved in [false, true] {
        if saved {
            table.save_and_load();
        }
        table.manifest.regroup(&[A, of(&[B, C, D])]).unwrap();
        assert_eq!(table.read(C, 0), None, "3 must not show c again");
        assert_eq!(table.read(D, 0), Some(3));
    }
}

#[test]
fn columns_without_a_group_are_gone_for_good() {
    let mut table = Table::new(&[of(&[A, B])]);
    table.put(&[A, B], 1);
    table.manifest.regroup(&[A]).unwrap();
    table.manifest.regroup(&[A, B]).unwrap();
    assert_eq!((table.read(A, 0), table.read(B, 0)), (Some(1), None));
}

#[test]
fn groups_that_share_a_column_or_have_none_are_refused() {
    let mut table = Table::new(&[of(&[A, B])]);
    table.put(&[A, B], 1);
    for groups in [&[A, of(&[A, B])][..], &[Columns::NONE]] {
        assert!(table.manifest.regroup(groups).is_err());
    }
    assert_eq!(table.group(&[A, B]), [1], "a refused change changes nothing");
}

#[test]
fn lists_that_disagree_about_the_order_are_damage() {
    let mut table = Table::new(&[A, B]);
    table.put(&[A, B], 1);
    table.put(&[A, B], 2);
    table.manifest.check().unwrap();
    let lists = table.manifest.slices.get_mut(&SLICE).unwrap();
    lists.groups[1].items.reverse();
    assert_eq!(table.manifest.check().unwrap_err().code, proto::ErrorCode::Corrupt);
    assert!(table.manifest.regroup(&[of(&[A, B])]).is_err());
}

/// Random numbers from a seed.
struct Random(SeededRandom);

impl Random {
    fn new(seed: u64) -> Self {
        Self(SeededRandom::new(seed))
    }

    fn below(&mut self, n: usize) -> usize {
        (self.0.next_u64() % n as u64) as usize
    }

    /// A random division of the columns into groups.
    fn groups(&mut self) -> Vec<Columns> {
        let mut groups = vec![Columns::NONE; 4];
        for column in [A, B, C, D] {
            let group = self.below(4);
            groups[group] = groups[group].union(column);
        }
        groups.retain(|group| !group.is_empty());
        groups
    }
}

#[test]
fn any_history_of_merges_and_moves_reads_as_a_plain_map() {
    const KEYS: u8 = 3;
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let mut table = Table::new(&random.groups());
        let mut map = Cells::new();
        for step in 0..60 {
            match random.below(8) {
                0..=2 => {
                    let mut cells = Cells::new();
                    for _ in 0..=random.below(4) {
                        let column = [A, B, C, D][random.below(4)];
                        let value = (random.below(3) > 0).then_some(step);
                        cells.insert((column, random.below(KEYS.into()) as u8), value);
                    }
                    map.extend(cells.clone());
                    table.insert(cells);
                }
                3..=5 => {
                    let groups = &table.lists().groups;
                    let group = &groups[random.below(groups.len())];
                    let (columns, len) = (group.columns, group.items.len());
                    if len > 0 {
                        let from = random.below(len);
                        table.compact(columns, from..from + 1 + random.below(len - from));
                    }
                }
                6 => table.manifest.regroup(&random.groups()).unwrap(),
                _ => table.save_and_load(),
            }
            table.manifest.check().unwrap();
            for column in [A, B, C, D] {
                for key in 0..KEYS {
                    let expected = map.get(&(column, key)).copied().flatten();
                    assert_eq!(table.read(column, key), expected, "seed {seed}, step {step}");
                }
            }
        }
    }
}
