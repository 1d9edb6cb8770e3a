//! Tests of blocks: rows are read back, and damage is refused.

use proptest::prelude::*;
use proto::model::ids::SliceNo;

use super::*;
use crate::rows::block_builder::BlockBuilder;
use crate::rows::row::RowVersion;

type Row = (Vec<u8>, Vec<u8>, Vec<u8>, u64, bool);

fn build(rows: &[Row]) -> Block {
    let mut builder = BlockBuilder::default();
    for (key, id, value, epoch, tombstone) in rows {
        let (epoch, tombstone, slice) = (Epoch(*epoch), *tombstone, SliceNo(0));
        builder.push(&RowVersion { slice, key, id, value, epoch, tombstone });
    }
    let expected = builder.size();
    let bytes = builder.finish();
    assert!(bytes.len() <= expected + 64 + 2 * rows.len(), "{} of {expected}", bytes.len());
    Block::parse(bytes.into()).expect("the rows are read back")
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let bytes = |len| proptest::collection::vec(prop_oneof![Just(0u8), Just(7), any::<u8>()], len);
    let epoch = prop_oneof![0..4u64, 1000..1300u64, any::<u64>()];
    let row = (bytes(0..12), bytes(0..9), bytes(0..5), epoch, any::<bool>());
    proptest::collection::vec(row, 1..60).prop_map(|mut rows| {
        rows.sort_by_key(|row| [&row.0[..], &row.1[..]].concat());
        rows
    })
}

proptest! {
    #[test]
    fn every_row_comes_back_and_is_found(rows in rows(), bound: Vec<u8>, skip in 0..6usize) {
        let block = build(&rows);
        prop_assert_eq!(block.rows() as usize, rows.len());
        let mut heads = Vec::new();
        let fast = block.heads(skip);
        for (n, (key, id, value, epoch, tombstone)) in rows.iter().enumerate() {
            let n = n as u32;
            let (mut entry, mut found) = (Vec::new(), Vec::new());
            block.put_entry(n, &mut entry);
            block.put_value(n, &mut found);
            prop_assert_eq!(&entry, &[&key[..], &id[..]].concat());
            prop_assert_eq!(&found, value);
            prop_assert_eq!((block.epoch(n).0, block.is_tombstone(n)), (*epoch, *tombstone));
            prop_assert_eq!(block.compare(n, &bound), entry[..].cmp(&bound));
            prop_assert_eq!((block.entry_len(n), block.key_len(n)), (entry.len(), key.len()));
            heads.push(block.head(&fast, n));
            prop_assert_eq!(heads[n as usize], head_of(&[&entry[skip.min(entry.len())..]]));
        }
        let expected = rows.partition_point(|row| [&row.0[..], &row.1[..]].concat() < bound);
        prop_assert_eq!(block.lower_bound(&bound) as usize, expected);
    }

    #[test]
    fn damaged_blocks_are_errors_or_readable_and_never_panic(
        rows in rows(), at: prop::sample::Index, bit in 0..8u8, cut: prop::sample::Index,
    ) {
        let mut bytes = build(&rows).bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let torn = bytes[..cut.index(bytes.len())].to_vec();
        for bytes in [bytes, torn] {
            if let Ok(block) = Block::parse(bytes.into()) {
                let heads = block.heads(3);
                for row in 0..block.rows() {
                    let mut out = Vec::new();
                    block.put_entry(row, &mut out);
                    block.put_value(row, &mut out);
                    let _ = (block.epoch(row), block.is_tombstone(row), block.head(&heads, row));
                }
            }
        }
    }
}

#[test]
fn common_beginnings_and_equal_epochs_cost_nothing_per_row() {
    let rows: Vec<Row> = (0..200u64)
        .map(|n| (n.to_be_bytes().to_vec(), format!("user{n:012}").into(), Vec::new(), 5, false))
        .collect();
    let block = build(&rows);
    assert_eq!(block.bytes().len(), HEADER_BYTES + 7 + 13 + 200 * (1 + 3));
}
