//! Tests that tables cut rows into blocks and find them again.

use std::cmp::Ordering;

use proto::model::ids::{Epoch, SliceNo};

use super::*;
use crate::rows::row::RowVersion;
use crate::rows::table_builder::TableBuilder;

pub(crate) fn table(rows: &[(u16, u64)]) -> Table {
    let mut builder = TableBuilder::default();
    for (slice, key) in rows {
        let key = [b"shared".to_vec(), key.to_be_bytes().to_vec()].concat();
        let (slice, epoch) = (SliceNo(*slice), Epoch(3));
        let row =
            RowVersion { slice, key: &key, id: b"identity", value: b"", epoch, tombstone: false };
        builder.push(&row).unwrap();
    }
    builder.finish().unwrap().expect("rows")
}

#[test]
fn sections_are_cut_by_slice_and_the_sparse_index_finds_each_block() {
    let rows: Vec<_> = (0..5000).map(|n| (1, n << 32)).chain([(2, 7)]).collect();
    let table = table(&rows);
    assert_eq!(table.stats.rows, 5001);
    let sections = table.index.sections();
    assert_eq!((sections[0].rows, sections[1].rows), (5000, 1));
    assert_eq!(sections[1].end_block, table.index.blocks());
    assert!(sections[0].end_block > 4);
    assert!(table.index.beginning(0).len() >= b"shared".len());
    for block in sections[0].first_block..sections[0].end_block {
        let first = table.index.first_entry(block).to_vec();
        assert_eq!(table.index.lower_bound(0, &first), block);
        assert_eq!(table.index.lower_bound(0, &[&first[..], b"x"].concat()), block + 1);
        assert_eq!(table.block(block).unwrap().compare(0, &first), Ordering::Equal);
    }
    assert_eq!(table.index.lower_bound(0, b""), 0);
    assert_eq!(table.index.lower_bound(0, b"zzz"), sections[0].end_block);
    assert_eq!(table.index.lower_bound(0, b"aaa"), 0);
}
