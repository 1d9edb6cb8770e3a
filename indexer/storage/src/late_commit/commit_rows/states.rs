//! States of documents that are looked up together, and the difference of two states.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::Result;
use proto::model::ids::SliceNo;
use xxhash_rust::xxh3::xxh3_64;

use crate::read::lookup::{FoundState, StateQuery, look_up};
use crate::read::slice_fragments::SliceFragments;
use crate::rows::packed;

/// The fragments in which documents are looked up.
pub type LookedUp = BTreeMap<SliceNo, Arc<SliceFragments>>;

/// A document's id, and the slices in which its states are looked up.
pub type SlicesOfDocument<'a> = (&'a [u8], Vec<SliceNo>);

/// States of documents by slice.
pub struct States {
    /// The states by document and slice.
    found: Vec<FoundState>,
    bytes: Vec<u8>,
}

impl States {
    /// Looks up the states of the documents in `asked` with the function `look_up`.
    pub fn find(
        asked: &[SlicesOfDocument<'_>],
        look_up: impl FnOnce(Vec<StateQuery<'_>>, &mut Vec<FoundState>, &mut Vec<u8>) -> Result<()>,
    ) -> Result<Self> {
        let (mut found, mut bytes) = (Vec::new(), Vec::new());
        look_up(queries(asked), &mut found, &mut bytes)?;
        found.sort_unstable_by_key(|found| (found.document, found.slice));
        Ok(Self { found, bytes })
    }

    /// Looks up the states of documents in fragments.
    pub fn look_up(slices: &LookedUp, asked: &[SlicesOfDocument<'_>]) -> Result<Self> {
        Self::find(asked, |queries, found, bytes| look_up(slices, queries, found, bytes))
    }

    /// Returns the state of the n-th document in a slice; empty if the document has no entries
    /// there.
    pub fn of(&self, n: usize, slice: SliceNo) -> &[u8] {
        let place = (n as u32, slice);
        let at = self.found.binary_search_by_key(&place, |found| (found.document, found.slice));
        at.map_or(&[], |at| &self.bytes[self.found[at].state.clone()])
    }
}

fn queries<'a>(asked: &'a [SlicesOfDocument<'a>]) -> Vec<StateQuery<'a>> {
    let of_document = |(n, (id, slices)): (usize, &'a SlicesOfDocument<'a>)| {
        let (document, hash) = (n as u32, xxh3_64(id));
        slices.iter().map(move |slice| StateQuery { document, hash, slice: *slice, id })
    };
    asked.iter().enumerate().flat_map(of_document).collect()
}

/// Returns the keys of a state's entries, ascending.
pub fn keys(state: &[u8]) -> impl Iterator<Item = &[u8]> {
    packed::entries(state).map(|entry| entry.key)
}

/// Returns the keys of an ascending list that are not in a state.
pub fn without<'a>(
    keys_of: impl Iterator<Item = &'a [u8]>,
    state: &'a [u8],
) -> impl Iterator<Item = &'a [u8]> {
    let mut others = keys(state).peekable();
    keys_of.filter(move |key| {
        while others.next_if(|other| other < key).is_some() {}
        others.peek() != Some(key)
    })
}
