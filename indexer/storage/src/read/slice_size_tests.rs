use std::collections::BTreeMap;

use proto::model::ids::{Epoch, SliceNo};
use proto::value::Value;
use proto::value::key::encode_part;

use super::*;
use crate::rows::row::RowVersion;
use crate::rows::table_builder::TableBuilder;
use crate::tables::table::Table;

const SLICE: SliceNo = SliceNo(1);

fn part(n: i64) -> Vec<u8> {
    let mut part = Vec::new();
    encode_part(&Value::int(n), false, &mut part);
    part
}

/// A table with these values in key order, each with a different id.
fn table(values: impl IntoIterator<Item = i64>) -> Arc<Table> {
    let mut builder = TableBuilder::default();
    for (n, value) in values.into_iter().enumerate() {
        let (key, id) = (part(value), format!("document-{n:08}"));
        // Equal values take no space.
        let different = (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        let row = RowVersion {
            slice: SLICE,
            key: &key,
            id: id.as_bytes(),
            value: &different.repeat(12),
            epoch: Epoch(3),
            tombstone: false,
        };
        builder.push(&row).unwrap();
    }
    Arc::new(builder.finish().unwrap().expect("rows"))
}

/// Returns a version whose slice has one table.
fn version(source: Source) -> IndexVersion {
    let fragments = SliceFragments { forward: vec![source], ..SliceFragments::default() };
    IndexVersion {
        slices: BTreeMap::from([(SLICE, Arc::new(fragments))]),
        ..IndexVersion::default()
    }
}

fn middle_of(source: Source) -> Option<i64> {
    let found = slice_split_point(&version(source), SLICE)?;
    match proto::value::key::decode_part(&mut &found[..], false).unwrap() {
        Value::Number(number) => number.as_i64(),
        other => panic!("{other:?} is no number"),
    }
}

fn range(low: i64, high: i64) -> KeyRange {
    KeyRange { low: part(low).into(), high: Some(part(high).into()) }
}

#[test]
fn the_middle_has_half_of_the_entries_before_it() {
    let table = table(0..1_000);
    let middle = middle_of(Source::of_slice(&table, SLICE)).unwrap();
    assert!((400..600).contains(&middle), "{middle}");
    let upper = Source::of_slice(&table, SLICE).restrict_to_range(&range(600, 1_000));
    let middle = middle_of(upper).unwrap();
    assert!((750..850).contains(&middle), "the middle of the range: {middle}");
}

#[test]
fn a_value_with_many_entries_is_on_one_side_as_a_whole() {
    let values = |first: i64, same: i64, last: i64| {
        let same = (0..same).map(|_| 5);
        (0..first).map(move |n| n - first).chain(same).chain((0..last).map(|n| 100 + n))
    };
    let middle = |first, same, last| {
        let table = table(values(first, same, last));
        middle_of(Source::of_slice(&table, SLICE))
    };
    assert_eq!(middle(400, 600, 0), Some(5), "those before it are apart");
    let found = middle(0, 600, 400).unwrap();
    assert!((100..130).contains(&found), "those behind it are apart: {found}");
    assert_eq!(middle(10, 990, 0), None, "a split would move next to nothing");
    assert_eq!(middle(0, 1_000, 0), None);
    assert_eq!(middle(20, 0, 0), None, "there are too few blocks");
}

#[test]
fn parts_add_up_to_the_slice() {
    let table = table(0..1_000);
    let bytes = |source: Source| {
        let version = version(source);
        slice_size(&version, SLICE, &version.slices[&SLICE]).bytes()
    };
    let whole = Source::of_slice(&table, SLICE);
    let all = bytes(whole.clone());
    assert_eq!(all, table.index.sections()[0].bytes);
    let parts = [range(0, 300), range(300, 301), range(301, 5_000)];
    let parts = parts.map(|range| bytes(whole.clone().restrict_to_range(&range)));
    assert!(all - parts.iter().sum::<u64>() < 3, "{parts:?} of {all}");
    assert!((all / 4..all / 3).contains(&parts[0]), "{parts:?} of {all}");
}

/// A slice with a share of the entries gets an equal share of the back index in its size.
#[test]
fn a_restricted_back_index_counts_in_part() {
    let table = table(0..1_000);
    let whole = Source::of_slice(&table, SLICE);
    let half = range(0, 500);
    let back = |keys: KeyRange| Source { keys, ..whole.clone() };
    let bytes = |forward: Source, back: Source| {
        let fragments = SliceFragments { forward: vec![forward], included: None, back: vec![back] };
        slice_size(&IndexVersion::default(), SLICE, &fragments).bytes()
    };
    let other = table_of_back();
    let other = |keys: KeyRange| Source { table: Arc::clone(&other), ..back(keys) };
    let all = bytes(whole.clone(), other(KeyRange::all()));
    let part = bytes(whole.clone().restrict_to_range(&half), other(half.clone()));
    assert!((all * 2 / 5..all * 3 / 5).contains(&part), "{part} of {all}");
}

fn table_of_back() -> Arc<Table> {
    table(0..500)
}
