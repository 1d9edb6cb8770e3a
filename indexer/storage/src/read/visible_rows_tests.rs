//! Tests of merges against a naive model: a map from (slice, entry) to versions.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use proptest::prelude::*;
use proto::model::ids::{Epoch, SliceNo};
use proto::rpc::scan::KeyRange;

use super::*;
use crate::maintain::rewrite::Rewrite;
use crate::read::rows::Bounds;
use crate::read::visible_rows::VisibleRows;
use crate::retention::RetainedEpochs;
use crate::rows::row::RowVersion;
use crate::rows::table_builder::TableBuilder;
use crate::tables::table::Table;

/// Key, id, epoch, tombstone flag, value. The model puts the length before a key, so that keys are
/// self-delimiting.
type Row = (Vec<u8>, Vec<u8>, u64, bool, u8);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let text = |len| proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'b')], len);
    let key = (0..3usize, text(0..12)).prop_map(|(shared, mut rest)| {
        rest.truncate(12);
        let mut key = b"common beginning"[..16 - 8 * (shared / 2)].to_vec();
        key.extend_from_slice(&rest);
        key.push(0);
        key
    });
    let row = (key, text(0..3), 0..20u64, any::<bool>(), any::<u8>());
    proptest::collection::vec(row, 0..80)
}

fn table(rows: &[Row]) -> Option<Arc<Table>> {
    table_of(SliceNo(3), rows)
}

fn table_of(slice: SliceNo, rows: &[Row]) -> Option<Arc<Table>> {
    let mut sorted: Vec<_> = rows.iter().collect();
    sorted.sort_by_key(|row| ([&row.0[..], &row.1[..]].concat(), std::cmp::Reverse(row.2)));
    sorted.dedup_by_key(|row| (row.0.clone(), row.1.clone(), row.2));
    let mut builder = TableBuilder::default();
    for (key, id, epoch, tombstone, value) in sorted {
        let row = RowVersion {
            slice,
            key,
            id,
            value: &[*value],
            epoch: Epoch(*epoch),
            tombstone: *tombstone,
        };
        builder.push(&row).expect("in memory");
    }
    builder.finish().expect("in memory").map(Arc::new)
}

/// For each entry and epoch: the tombstone flag and the value.
type Model = BTreeMap<Vec<u8>, BTreeMap<u64, (bool, u8)>>;

/// Returns one table for each part, and the model of all rows. Each (entry, epoch) is in one table
/// only.
fn tables(parts: &[Vec<Row>]) -> (Vec<Arc<Table>>, Model) {
    let mut model = Model::new();
    let mut tables = Vec::new();
    for part in parts {
        let mut fresh = Vec::new();
        for row in part {
            let versions = model.entry([&row.0[..], &row.1[..]].concat()).or_default();
            if let Entry::Vacant(unknown) = versions.entry(row.2) {
                unknown.insert((row.3, row.4));
                fresh.push(row.clone());
            }
        }
        tables.extend(table(&fresh));
    }
    (tables, model)
}

fn shown(mut rows: VisibleRows) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    while rows.next().expect("in memory") {
        found.push((rows.entry().to_vec(), rows.include().to_vec()));
    }
    found
}

/// Returns the rows of a walk, packed in the wire format in blocks of `bytes_max` bytes, `rows_max`
/// rows at a time.
fn packed(mut rows: VisibleRows, bytes_max: usize, rows_max: u64) -> Vec<Vec<u8>> {
    let mut block = proto::rpc::rows::RowBlockBuilder::default();
    let (mut found, mut more) = (Vec::new(), true);
    while more {
        more =
            !rows.pack(&mut block, Bounds::of_rows(bytes_max, rows_max)).expect("in memory").is_end;
        let block = block.finish();
        assert!(u64::from(block.rows) <= rows_max);
        block.validate().expect("a block that can be read");
        found.extend(block.iter().map(|row| row.entry.to_vec()));
    }
    found
}

proptest! {
    /// Tables in which each row is visible, one or several, are read without comparing versions.
    #[test]
    fn slices_without_old_versions_are_walked_like_any_others(
        rows in rows(),
        is_plain in proptest::array::uniform4(any::<bool>()),
        epoch in 5..25u64,
        reverse: bool,
    ) {
        let slice_of = |row: &Row| (row.0.len() + 3 * row.1.len()) % 4;
        let mut model = Model::new();
        let mut parts: [Vec<Row>; 4] = Default::default();
        for mut row in rows {
            let part = slice_of(&row);
            let versions = model.entry([&row.0[..], &row.1[..]].concat()).or_default();
            if is_plain[part] {
                (row.2, row.3) = (row.2.min(5), false);
            }
            let is_known = if is_plain[part] { !versions.is_empty() } else { versions.contains_key(&row.2) };
            if !is_known {
                versions.insert(row.2, (row.3, row.4));
                parts[part].push(row);
            }
        }
        let mut expected: Vec<Vec<u8>> = model
            .iter()
            .filter(|(_, versions)| {
                versions.range(..=epoch).next_back().is_some_and(|(_, (tombstone, _))| !tombstone)
            })
            .map(|(entry, _)| entry.clone())
            .collect();
        if reverse {
            expected.reverse();
        }
        let slices = (0..4).map(SliceNo).zip(&parts);
        let tables: Vec<_> =
            slices.filter_map(|(slice, rows)| Some((slice, table_of(slice, rows)?))).collect();
        let visible = |with_values| {
            let sources = tables.iter().map(|(slice, table)| Source::of_slice(table, *slice));
            VisibleRows::new(sources, Epoch(epoch), reverse, with_values).unwrap()
        };
        if is_plain == [true; 4] {
            prop_assert!(visible(false).shows_all);
        }
        prop_assert_eq!(&packed(visible(false), 100, 7), &expected);
        let with_values = shown(visible(true));
        prop_assert_eq!(with_values.iter().map(|(entry, _)| entry.clone()).collect::<Vec<_>>(), expected);
        for (entry, value) in with_values {
            let newest = model[&entry].range(..=epoch).next_back();
            prop_assert_eq!(newest.map(|(_, (_, value))| vec![*value]), Some(value));
        }
    }
}

#[test]
fn rows_of_one_length_are_packed_a_block_at_a_time_and_as_they_are() {
    let rows: Vec<Row> = (0..3000u64)
        .map(|n| {
            (
                n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec(),
                b"id".to_vec(),
                1,
                false,
                0,
            )
        })
        .collect();
    let table = table(&rows).expect("rows");
    let source = || [Source::of_slice(&table, SliceNo(3))];
    for (bytes_max, rows_max) in [(1, 7), (1000, 1 << 40), (1 << 20, 333)] {
        let visible = VisibleRows::new(source(), Epoch(9), false, false).unwrap();
        let expected = shown(VisibleRows::new(source(), Epoch(9), false, false).unwrap());
        let expected: Vec<_> = expected.into_iter().map(|(entry, _)| entry).collect();
        assert_eq!(packed(visible, bytes_max, rows_max), expected);
    }
}

proptest! {
    #[test]
    fn a_merge_agrees_with_a_map(
        parts in proptest::collection::vec(rows(), 0..6),
        epoch in 0..22u64,
        reverse: bool,
        low in prop_oneof![Just(Vec::new()), rows().prop_map(|r| r.first().map_or(vec![], |r| r.0.clone()))],
        high in proptest::option::of(rows().prop_map(|r| r.last().map_or(vec![], |r| r.0.clone()))),
    ) {
        let (tables, model) = tables(&parts);
        let range = KeyRange { low: low.into(), high: high.map(Into::into) };
        let sources = tables.iter().map(|t| Source::of_slice(t, SliceNo(3)).restrict_to_range(&range));
        let found = shown(VisibleRows::new(sources, Epoch(epoch), reverse, true).unwrap());
        let mut expected: Vec<_> = model.iter().filter_map(|(entry, versions)| {
            let (_, (tombstone, value)) = versions.range(..=epoch).next_back()?;
            (!tombstone && range.contains(entry)).then(|| (entry.clone(), vec![*value]))
        }).collect();
        if reverse {
            expected.reverse();
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_rewrite_keeps_visible_rows(
        parts in proptest::collection::vec(rows(), 1..6),
        from in 0..5usize,
        len in 1..5usize,
        horizon in 0..20u64,
    ) {
        // Each part has newer epochs than the parts before, like the lists of slices.
        let parts: Vec<Vec<Row>> = parts.into_iter().enumerate().map(|(n, part)| {
            part.into_iter().map(|r| (r.0, r.1, r.2 + 20 * n as u64, r.3, r.4)).collect()
        }).collect();
        let (before, _) = tables(&parts);
        let from = from.min(before.len());
        let until = (from + len).min(before.len());
        let retained = RetainedEpochs { horizon: Epoch(horizon * parts.len() as u64), points: vec![] };
        let rewrite = Rewrite { retained: retained.clone(), back: false };
        let mut out = TableBuilder::default();
        let inputs = before[from..until].iter().map(|t| Source::of_slice(t, SliceNo(3))).collect();
        rewrite.rewrite_slice(SliceNo(3), inputs, from == 0, &mut out).unwrap();
        let mut after = before[..from].to_vec();
        after.extend(out.finish().unwrap().map(Arc::new));
        after.extend_from_slice(&before[until..]);
        for epoch in retained.horizon.0..20 * parts.len() as u64 + 1 {
            let at = |tables: &[Arc<Table>]| {
                let sources = tables.iter().map(|t| Source::of_slice(t, SliceNo(3)));
                shown(VisibleRows::new(sources, Epoch(epoch), false, true).unwrap())
            };
            prop_assert_eq!(at(&before), at(&after), "at epoch {}", epoch);
        }
    }
}
