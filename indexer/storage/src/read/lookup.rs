//! Look-up of many documents at once in the fragments of the back index.
//!
//! Documents are looked up in the order of the fragments, slice by slice and by id, so that each
//! block is read once. A fragment is skipped for a document if its filter excludes the document.
//! Newer fragments are read first, so the first state found (the entries of a document in a slice)
//! is the newest. Versions of a document can straddle two blocks. For that reason the search
//! begins at the last block whose first row precedes the document, and finds the newest version
//! first.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use proto::Result;
use proto::model::ids::SliceNo;

use crate::read::slice_fragments::SliceFragments;
use crate::read::source::Source;
use crate::rows::block::Block;
use crate::rows::packed;

/// A query for the entries that a document has in a slice.
#[derive(Clone, Copy, Debug)]
pub struct StateQuery<'a> {
    /// Position of the document among the documents of the look-up.
    pub document: u32,
    /// Hash of the document's id.
    pub hash: u64,
    /// The slice to search.
    pub slice: SliceNo,
    /// The document's id.
    pub id: &'a [u8],
}

/// The entries of a document in a slice, as a look-up has found them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundState {
    /// Position of the document among the documents of the look-up.
    pub document: u32,
    /// The slice that the state belongs to.
    pub slice: SliceNo,
    /// The place of the packed entries in the buffer of the look-up.
    pub state: Range<usize>,
}

impl FoundState {
    /// Appends packed entries to the buffer `states`, and returns the found value with their
    /// place.
    pub fn put(document: u32, slice: SliceNo, state: &[u8], states: &mut Vec<u8>) -> Self {
        let from = states.len();
        states.extend_from_slice(state);
        Self { document, slice, state: from..states.len() }
    }
}

/// Looks up the newest entries of some documents in the fragments of the back index. Appends the
/// packed entries to `states`, and their places to `found`. A document that is in no fragment is
/// omitted.
pub fn look_up(
    slices: &BTreeMap<SliceNo, Arc<SliceFragments>>,
    wanted: Vec<StateQuery<'_>>,
    found: &mut Vec<FoundState>,
    states: &mut Vec<u8>,
) -> Result<()> {
    if slices.values().all(|fragments| fragments.back.is_empty()) {
        return Ok(());
    }
    // Almost every document is either new or in one fragment. So the filters are tested first, each for all documents.
    let mut asked: Vec<LookupQuery<'_>> =
        wanted.into_iter().map(|wanted| LookupQuery { wanted, fragments: 0 }).collect();
    asked.sort_unstable_by_key(|asked| asked.wanted.slice);
    for of_slice in asked.chunk_by_mut(|left, right| left.wanted.slice == right.wanted.slice) {
        for (n, source) in back_fragments(slices, of_slice).iter().enumerate() {
            for asked in &mut *of_slice {
                asked.fragments |=
                    u64::from(may_contain(source, asked.wanted.hash)) << fragment_bit(n);
            }
        }
    }
    asked.retain(|asked| asked.fragments != 0);
    asked.sort_unstable_by(
        |LookupQuery { wanted: left, .. }, LookupQuery { wanted: right, .. }| {
            left.slice.cmp(&right.slice).then_with(|| left.id.cmp(right.id))
        },
    );
    for of_slice in asked.chunk_by_mut(|left, right| left.wanted.slice == right.wanted.slice) {
        for (n, source) in back_fragments(slices, of_slice).iter().enumerate().rev() {
            let mut reader = BackReader::new(source);
            for asked in
                of_slice.iter_mut().filter(|asked| asked.fragments >> fragment_bit(n) & 1 == 1)
            {
                let StateQuery { document, slice, id, .. } = asked.wanted;
                if let Some(state) = reader.newest(id, states)? {
                    found.push(FoundState { document, slice, state });
                    asked.fragments = 0;
                }
            }
        }
    }
    Ok(())
}

/// Returns true if a source of the back index has a record of a document.
pub fn has_record(source: &Source, id: &[u8]) -> Result<bool> {
    Ok(BackReader::new(source).newest(id, &mut Vec::new())?.is_some())
}

/// A query, with one bit for each fragment of its slice whose filter says that the document may be
/// in it.
struct LookupQuery<'a> {
    wanted: StateQuery<'a>,
    fragments: u64,
}

/// Returns the back-index fragments of the slice that all of these queries concern.
fn back_fragments<'a>(
    slices: &'a BTreeMap<SliceNo, Arc<SliceFragments>>,
    of_slice: &[LookupQuery<'_>],
) -> &'a [Source] {
    let slice = of_slice.first().and_then(|asked| slices.get(&asked.wanted.slice));
    slice.map_or(&[], |fragments| &fragments.back)
}

/// Returns the number of the bit for the fragment at a position of a list. All fragments from the
/// 64th on share the last bit, which only causes unnecessary reads.
fn fragment_bit(fragment: usize) -> usize {
    fragment.min(63)
}

/// Returns true if the source may have rows of a document, according to the filter of its
/// fragment.
fn may_contain(source: &Source, hash: u64) -> bool {
    source.table.fragment().is_none_or(|fragment| fragment.may_contain(hash))
}

/// A reader of one fragment of the back index. It has its last block ready for the next read.
struct BackReader<'a> {
    source: &'a Source,
    section: Option<usize>,
    last: Option<(u32, Arc<Block>)>,
}

impl<'a> BackReader<'a> {
    fn new(source: &'a Source) -> Self {
        Self { source, section: source.table.index.section(source.rows_of), last: None }
    }

    /// Returns a block, from memory if it was read last.
    fn block(&mut self, block: u32) -> Result<Arc<Block>> {
        match &self.last {
            Some((last, found)) if *last == block => Ok(Arc::clone(found)),
            _ => {
                let found = self.source.table.block_from(block, self.source.blocks)?;
                self.last = Some((block, Arc::clone(&found)));
                Ok(found)
            }
        }
    }

    /// Appends the newest packed entries of a document to `states` and returns their place; `None`
    /// if the fragment has no record of the document.
    fn newest(&mut self, id: &[u8], states: &mut Vec<u8>) -> Result<Option<Range<usize>>> {
        let Some(section) = self.section else { return Ok(None) };
        let index = &self.source.table.index;
        let bounds = &index.sections()[section];
        let mut at = index.lower_bound(section, id).saturating_sub(1).max(bounds.first_block);
        let mut block = self.block(at)?;
        let mut row = block.lower_bound(id);
        loop {
            if row == block.rows() {
                at += 1;
                if at >= bounds.end_block {
                    return Ok(None);
                }
                block = self.block(at)?;
                row = 0;
            }
            if !block.compare(row, id).is_eq() {
                return Ok(None);
            }
            if self.source.epochs.contains(&block.epoch(row)) {
                let (from, keys) = (states.len(), &self.source.keys);
                block.put_value(row, states);
                if !keys.low.is_empty() || keys.high.is_some() {
                    let state = states.split_off(from);
                    packed::put_range(states, &state, id, keys);
                }
                return Ok(Some(from..states.len()));
            }
            row += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proto::model::ids::Epoch;
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;
    use crate::rows::row::RowVersion;
    use crate::rows::table_builder::TableBuilder;

    /// Returns a table in which the document "m" has so many versions that they straddle blocks.
    fn many_versions() -> Source {
        let mut builder = TableBuilder::default();
        let value = [7u8; 300];
        let mut push = |id: &[u8], epoch: u64| {
            let mut state = Vec::new();
            let key = [&epoch.to_be_bytes()[..], &value].concat();
            packed::put(&mut state, packed::PackedEntry { key: &key, include_hash: None });
            let row = RowVersion {
                slice: SliceNo(1),
                key: id,
                id: b"",
                value: &state,
                epoch: Epoch(epoch),
                tombstone: false,
            };
            builder.push(&row).unwrap();
        };
        push(b"a", 1);
        (1..200).rev().for_each(|epoch| push(b"m", epoch));
        push(b"z", 1);
        let table = builder.finish().unwrap().expect("rows");
        assert!(table.index.blocks() > 3, "the versions straddle blocks");
        Source::of_slice(&Arc::new(table), SliceNo(1))
    }

    fn epochs_found(source: Source, ids: &[&str]) -> Vec<(u32, u64)> {
        let fragments = SliceFragments { back: vec![source], ..SliceFragments::default() };
        let slices = BTreeMap::from([(SliceNo(1), Arc::new(fragments))]);
        let wanted = ids.iter().enumerate().map(|(n, id)| StateQuery {
            document: n as u32,
            hash: xxh3_64(id.as_bytes()),
            slice: SliceNo(1),
            id: id.as_bytes(),
        });
        let (mut found, mut states) = (Vec::new(), Vec::new());
        look_up(&slices, wanted.collect(), &mut found, &mut states).unwrap();
        let epoch = |found: &FoundState| {
            let state = &states[found.state.clone()];
            let key = packed::entries(state).next().map(|entry| entry.key.to_vec());
            let head = key.map(|key| crate::rows::bytes::head_of(&[&key]));
            (found.document, head.unwrap_or_default())
        };
        found.iter().map(epoch).collect()
    }

    #[test]
    fn of_versions_that_straddle_blocks_the_newest_is_found() {
        let ids = ["z", "m", "nobody", "a"];
        assert_eq!(epochs_found(many_versions(), &ids), [(3, 1), (1, 199), (0, 1)]);
    }

    #[test]
    fn excluded_epochs_are_ignored() {
        let source = Source { epochs: Epoch(0)..=Epoch(57), ..many_versions() };
        assert_eq!(epochs_found(source, &["m"]), [(0, 57)]);
    }
}
