//! The entries that documents have in slices (their *states*), looked up for many documents
//! together, and the difference of two such states.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::Result;
use proto::model::ids::SliceNo;
use xxhash_rust::xxh3::xxh3_64;

use crate::read::lookup::{FoundState, StateQuery, look_up};
use crate::read::slice_fragments::SliceFragments;
use crate::rows::packed;

/// The fragments in which documents are looked up, by slice.
pub type BackFragments = BTreeMap<SliceNo, Arc<SliceFragments>>;

/// A document's id, and the slices in which its entries are looked up.
pub type SlicesOfDocument<'a> = (&'a [u8], Vec<SliceNo>);

/// The entries of documents, as a look-up has found them.
pub struct FoundStates {
    /// The packed entries by document and slice, as ranges of `bytes`.
    found: Vec<FoundState>,
    bytes: Vec<u8>,
}

impl FoundStates {
    /// Looks up the entries of the documents in `asked` with the function `look_up`.
    pub fn find(
        asked: &[SlicesOfDocument<'_>],
        look_up: impl FnOnce(Vec<StateQuery<'_>>, &mut Vec<FoundState>, &mut Vec<u8>) -> Result<()>,
    ) -> Result<Self> {
        let (mut found, mut bytes) = (Vec::new(), Vec::new());
        look_up(queries(asked), &mut found, &mut bytes)?;
        found.sort_unstable_by_key(|found| (found.document, found.slice));
        Ok(Self { found, bytes })
    }

    /// Looks up the entries of documents in fragments.
    pub fn look_up(slices: &BackFragments, asked: &[SlicesOfDocument<'_>]) -> Result<Self> {
        Self::find(asked, |queries, found, bytes| look_up(slices, queries, found, bytes))
    }

    /// Returns the packed entries of document number `n` in a slice; empty if it has none in the
    /// slice.
    pub fn state_of(&self, n: usize, slice: SliceNo) -> &[u8] {
        let place = (n as u32, slice);
        let at = self.found.binary_search_by_key(&place, |found| (found.document, found.slice));
        at.map_or(&[], |at| &self.bytes[self.found[at].state.clone()])
    }
}

/// Returns a query for each document and each of its slices.
fn queries<'a>(asked: &'a [SlicesOfDocument<'a>]) -> Vec<StateQuery<'a>> {
    let of_document = |(n, (id, slices)): (usize, &'a SlicesOfDocument<'a>)| {
        let (document, hash) = (n as u32, xxh3_64(id));
        slices.iter().map(move |slice| StateQuery { document, hash, slice: *slice, id })
    };
    asked.iter().enumerate().flat_map(of_document).collect()
}

/// Returns the keys of packed entries, ascending.
pub fn keys(state: &[u8]) -> impl Iterator<Item = &[u8]> {
    packed::entries(state).map(|entry| entry.key)
}

/// Returns the keys of an ascending list that are not among the packed entries `state`.
pub fn keys_not_in<'a>(
    keys_of: impl Iterator<Item = &'a [u8]>,
    state: &'a [u8],
) -> impl Iterator<Item = &'a [u8]> {
    let mut others = keys(state).peekable();
    keys_of.filter(move |key| {
        while others.next_if(|other| other < key).is_some() {}
        others.peek() != Some(key)
    })
}
