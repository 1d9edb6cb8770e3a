//! The fragments of a slice, as readers see them.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::ids::SliceNo;
use proto::rpc::scan::KeyRange;
use proto::{Error, ErrorCode, Result};

use crate::file_id::FileId;
use crate::manifest::index_manifest::IndexManifest;
use crate::manifest::lists::ListItem;
use crate::read::source::Source;
use crate::rows::columns::Columns;
use crate::tables::table::{BlocksFrom, Table};

/// The rule for listed fragments that are not open when a version is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnopenedPolicy {
    /// The fragments are left out, because the index is being loaded.
    LeftOut,
    /// The fragments are missing, which is an error.
    Missing,
}

/// The fragments of a slice, by kind of rows; each list has the oldest fragment first.
#[derive(Clone, Debug, Default)]
pub struct SliceFragments {
    /// Fragments of entries.
    pub forward: Vec<Source>,
    /// Fragments of entries with included values. `None` if the fragments in `forward` contain the
    /// values.
    pub included: Option<Vec<Source>>,
    /// Fragments of the back index.
    pub back: Vec<Source>,
}

impl SliceFragments {
    /// Returns the fragments to read for entries, with or without included values (see
    /// [`crate::files::group_writer`]).
    pub fn rows(&self, include: bool) -> &[Source] {
        match &self.included {
            Some(included) if include => included,
            _ => &self.forward,
        }
    }

    /// Returns the length of the longest of the lists.
    pub fn longest(&self) -> usize {
        self.rows(false).len().max(self.rows(true).len()).max(self.back.len())
    }

    /// Returns all fragments, each once.
    pub fn all(&self) -> impl Iterator<Item = &Source> {
        let is_forward = |source: &Source| {
            self.forward.iter().any(|other| Arc::ptr_eq(&other.table, &source.table))
        };
        let apart = self.included.iter().flatten().filter(move |source| !is_forward(source));
        self.forward.iter().chain(apart).chain(&self.back)
    }
}

/// Returns the fragments of all slices of a manifest, with their open tables from `tables`.
pub fn slice_fragments(
    manifest: &IndexManifest,
    tables: &BTreeMap<FileId, Arc<Table>>,
    unopened: UnopenedPolicy,
) -> Result<BTreeMap<SliceNo, Arc<SliceFragments>>> {
    let mut slices = BTreeMap::new();
    for (slice, lists) in &manifest.slices {
        let mut fragments = SliceFragments::default();
        let (mut included, mut apart) = (Vec::new(), false);
        for group in &lists.groups {
            for item in &group.items {
                let Some(table) = tables.get(&item.file) else {
                    if unopened == UnopenedPolicy::LeftOut {
                        continue;
                    }
                    let text =
                        format!("the manifest names fragment {}, which is missing", item.file);
                    return Err(Error::new(ErrorCode::Corrupt, text));
                };
                let source = source_of(table, *slice, item);
                if item.columns.contains(Columns::BACK) {
                    fragments.back.push(source);
                    continue;
                }
                let has_entries = item.columns.contains(Columns::ENTRY);
                let has_values = item.columns.intersects(Columns::INCLUDE);
                apart |= has_entries != has_values;
                included.extend(has_values.then(|| source.clone()));
                fragments.forward.extend(has_entries.then_some(source));
            }
        }
        fragments.included = apart.then_some(included);
        slices.insert(*slice, Arc::new(fragments));
    }
    Ok(slices)
}

/// Returns the source that reads an item of a slice's list; `table` is its open fragment.
pub fn source_of(table: &Arc<Table>, slice: SliceNo, item: &ListItem) -> Source {
    // The range of a back fragment restricts the entries inside the states, not the documents.
    let (range, keys) = match item.columns.contains(Columns::BACK) {
        true => (KeyRange::all(), item.range.clone()),
        false => (item.range.clone(), KeyRange::all()),
    };
    let epochs = item.epochs.from..=item.epochs.to;
    let (table, rows_of) = (Arc::clone(table), item.rows_of);
    Source { table, slice, rows_of, range, epochs, keys, blocks: BlocksFrom::Anywhere }
}
