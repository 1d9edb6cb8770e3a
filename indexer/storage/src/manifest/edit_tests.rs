//! Tests of edits of lists: the fragments that are read afterwards, and the edits that are refused.

use proto::ErrorCode;
use proto::model::ids::{Epoch, SliceNo};

use super::testing::manifest;
use super::*;
use crate::file_id::FileId;
use crate::rows::columns::Columns;

const ENTRIES: Columns = Columns(Columns::ENTRY.0 | Columns::INCLUDE.0);

fn slice(n: u16) -> SliceNo {
    SliceNo(n)
}

fn epochs(from: u64, to: u64) -> EpochRange {
    EpochRange { from: Epoch(from), to: Epoch(to) }
}

/// Returns a manifest with the slices 0 and 1 and the fragments 1, 2 and 3 of the epochs 1–10,
/// 11–20 and 21–30; fragment 4 is of the back index.
fn with_fragments() -> IndexManifest {
    let mut manifest = manifest();
    manifest.flushed = Epoch(30);
    for n in 0..2 {
        manifest.slices.insert(slice(n), SliceLists::new(&[ENTRIES, Columns::BACK]));
    }
    let both = [slice(0), slice(1)];
    for n in 1..=3 {
        let range = epochs(n * 10 - 9, n * 10);
        manifest.add(FileId(n), &both, ENTRIES, range, ListPosition::Newest).unwrap();
    }
    manifest.add(FileId(4), &both, Columns::BACK, epochs(1, 30), ListPosition::Newest).unwrap();
    manifest.check().unwrap();
    manifest
}

fn items(manifest: &IndexManifest, n: u16) -> &[ListItem] {
    &manifest.slices[&slice(n)].group(ENTRIES).unwrap().items
}

fn files(manifest: &IndexManifest, n: u16) -> Vec<u64> {
    items(manifest, n).iter().map(|item| item.file.0).collect()
}

/// Returns the fragments in which a read finds an entry.
fn holding(manifest: &IndexManifest, n: u16, entry: &[u8]) -> Vec<u64> {
    let holds = items(manifest, n).iter().filter(|item| item.range.contains(entry));
    holds.map(|item| item.file.0).collect()
}

/// The output of a merge of some items.
fn merged(file: u64, inputs: &[ListItem]) -> Vec<ListItem> {
    vec![ListItem { file: FileId(file), ..inputs[0].clone() }]
}

#[test]
fn a_fragment_goes_to_each_group_that_has_one_of_its_columns() {
    let mut manifest = with_fragments();
    manifest
        .add(FileId(5), &[slice(0)], Columns::ALL, EpochRange::ALL, ListPosition::Newest)
        .unwrap();
    let groups = &manifest.slices[&slice(0)].groups;
    assert_eq!(groups[0].items.last().unwrap().columns, ENTRIES);
    assert_eq!(groups[1].items.last().unwrap().columns, Columns::BACK);
    assert_eq!(files(&manifest, 1), [1, 2, 3], "the other slice is not concerned");
    manifest.add(FileId(6), &[slice(1)], ENTRIES, EpochRange::ALL, ListPosition::Oldest).unwrap();
    assert_eq!(files(&manifest, 1), [6, 1, 2, 3], "the fragments of a backfill come first");
    let before = manifest.clone();
    let unknown = manifest.add(
        FileId(7),
        &[slice(0), slice(9)],
        ENTRIES,
        EpochRange::ALL,
        ListPosition::Newest,
    );
    assert_eq!(unknown.unwrap_err().code, ErrorCode::SliceMoved);
    assert_eq!(manifest, before, "all or nothing");
}

#[test]
fn a_merge_replaces_exactly_what_it_has_read() {
    let mut manifest = with_fragments();
    let inputs = items(&manifest, 0)[1..3].to_vec();
    assert!(manifest.replace(slice(0), ENTRIES, &inputs, merged(9, &inputs)).unwrap());
    assert_eq!(files(&manifest, 0), [1, 9]);
    assert_eq!(files(&manifest, 1), [1, 2, 3]);
    assert!(!manifest.replace(slice(0), ENTRIES, &inputs, merged(10, &inputs)).unwrap());
    let all = items(&manifest, 0).to_vec();
    assert!(manifest.replace(slice(0), ENTRIES, &all, Vec::new()).unwrap());
    assert!(items(&manifest, 0).is_empty(), "all that it read was erased");
}

#[test]
fn a_merge_is_discarded_when_its_inputs_have_changed() {
    type Change = fn(&mut IndexManifest);
    let changes: [(&str, Change); 6] = [
        ("split", |m| m.split(slice(0), b"m", slice(0), slice(5)).unwrap()),
        ("drop", |m| m.drop_slice(slice(0)).unwrap()),
        ("roll-back into an input", |m| m.roll_back_to(Epoch(15)).unwrap()),
        ("roll-back of an input", |m| m.roll_back_to(Epoch(10)).unwrap()),
        ("moved columns", |m| {
            m.regroup(&[Columns::ENTRY, Columns::INCLUDE, Columns::BACK]).unwrap()
        }),
        ("another merge", |m| {
            let inputs = items(m, 0)[..2].to_vec();
            assert!(m.replace(slice(0), ENTRIES, &inputs, merged(8, &inputs)).unwrap());
        }),
    ];
    for (name, change) in changes {
        let mut manifest = with_fragments();
        let inputs = items(&manifest, 0)[1..3].to_vec();
        change(&mut manifest);
        let before = manifest.clone();
        assert!(
            !manifest.replace(slice(0), ENTRIES, &inputs, merged(9, &inputs)).unwrap(),
            "{name}"
        );
        assert_eq!(manifest, before, "{name}");
    }
    let mut manifest = with_fragments();
    let inputs = items(&manifest, 0)[..2].to_vec();
    manifest.add(FileId(8), &[slice(0)], ENTRIES, EpochRange::ALL, ListPosition::Newest).unwrap();
    assert!(manifest.replace(slice(0), ENTRIES, &inputs, merged(9, &inputs)).unwrap());
    assert_eq!(files(&manifest, 0), [9, 3, 8], "a flush meanwhile does not matter");
}

#[test]
fn each_entry_counts_in_one_half_of_a_split_slice() {
    let mut manifest = with_fragments();
    let named = manifest.files();
    manifest.split(slice(0), b"m", slice(2), slice(3)).unwrap();
    manifest.split(slice(3), b"t", slice(3), slice(4)).unwrap();
    manifest.check().unwrap();
    assert_eq!(manifest.files(), named, "nothing is copied");
    assert!(!manifest.slices.contains_key(&slice(0)));
    for (entry, home) in [(&b"a"[..], 2), (b"lz", 2), (b"m", 3), (b"szz", 3), (b"t", 4), (b"z", 4)]
    {
        for n in [2, 3, 4] {
            let expected: &[u64] = if n == home { &[1, 2, 3] } else { &[] };
            assert_eq!(holding(&manifest, n, entry), expected, "{entry:?} in slice {n}");
        }
    }
    assert!(items(&manifest, 4).iter().all(|item| item.rows_of == slice(0)));
    let back = manifest.slices[&slice(4)].group(Columns::BACK).unwrap();
    assert_eq!(&back.items[0].range.low[..], b"t", "the back index has the same restriction");
    manifest.add(FileId(9), &[slice(4)], ENTRIES, EpochRange::ALL, ListPosition::Newest).unwrap();
    assert_eq!(items(&manifest, 4)[3].rows_of, slice(4));
    manifest.split(slice(2), b"x", slice(5), slice(6)).unwrap();
    assert!(files(&manifest, 6).is_empty(), "beyond the end of its slice nothing is left");
    manifest.check().unwrap();
}

#[test]
fn clones_share_files_until_the_last_is_dropped() {
    let mut manifest = with_fragments();
    manifest.entries.insert(slice(0), 17);
    manifest.clone_slice(slice(0), slice(2)).unwrap();
    assert_eq!(manifest.entries[&slice(2)], 17);
    assert_eq!(manifest.slices[&slice(0)], manifest.slices[&slice(2)]);
    for n in 0..3 {
        assert_eq!(manifest.files().len(), 4);
        manifest.drop_slice(slice(n)).unwrap();
    }
    assert!(manifest.files().is_empty() && manifest.entries.is_empty());
}

#[test]
fn a_rollback_restricts_items_that_span_the_epoch_and_drops_later_ones() {
    let mut manifest = with_fragments();
    manifest.roll_back_to(Epoch(15)).unwrap();
    assert_eq!(manifest.flushed, Epoch(15));
    let kept: Vec<_> = items(&manifest, 0).iter().map(|item| (item.file.0, item.epochs)).collect();
    assert_eq!(kept, [(1, epochs(1, 10)), (2, epochs(11, 15))]);
    manifest.add(FileId(5), &[slice(0)], ENTRIES, epochs(31, 40), ListPosition::Newest).unwrap();
    assert_eq!(files(&manifest, 0), [1, 2, 5], "new epochs count above those that are dead");
    let before = manifest.clone();
    assert_eq!(manifest.roll_back_to(Epoch(4)).unwrap_err().code, ErrorCode::InvalidParameter);
    assert_eq!(manifest, before, "below the floor there is nothing to go back to");
}

#[test]
fn edits_of_absent_or_existing_slices_change_nothing() {
    let mut manifest = with_fragments();
    let before = manifest.clone();
    let codes = [
        manifest.split(slice(9), b"m", slice(2), slice(3)).unwrap_err().code,
        manifest.clone_slice(slice(9), slice(2)).unwrap_err().code,
        manifest.drop_slice(slice(9)).unwrap_err().code,
    ];
    assert_eq!(codes, [ErrorCode::SliceMoved; 3]);
    let codes = [
        manifest.split(slice(0), b"m", slice(1), slice(3)).unwrap_err().code,
        manifest.split(slice(0), b"m", slice(3), slice(3)).unwrap_err().code,
        manifest.clone_slice(slice(0), slice(1)).unwrap_err().code,
    ];
    assert_eq!(codes, [ErrorCode::Exists; 3]);
    assert_eq!(manifest, before);
}
