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
use crate::tables::table::Table;

/// What becomes of fragments that a list names and that are not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unopened {
    /// They are left out: the index is being loaded.
    LeftOut,
    /// They are missing: an error.
    Missing,
}

/// The fragments of a slice, the oldest first.
#[derive(Clone, Debug, Default)]
pub struct Fragments {
    /// Of entries.
    pub forward: Vec<Source>,
    /// Of entries with their included values, where they are not the same.
    pub included: Option<Vec<Source>>,
    /// Of the back index.
    pub back: Vec<Source>,
}

impl Fragments {
    /// What to read for the entries, and for their included values if they are asked for: one chain or
    /// the other (see [`crate::files::group_writer`]).
    pub fn rows(&self, include: bool) -> &[Source] {
        match &self.included {
            Some(included) if include => included,
            _ => &self.forward,
        }
    }

    /// How many there are in the longest list.
    pub fn longest(&self) -> usize {
        self.rows(false).len().max(self.rows(true).len()).max(self.back.len())
    }

    /// All of them, each once.
    pub fn all(&self) -> impl Iterator<Item = &Source> {
        let is_forward = |source: &Source| {
            self.forward.iter().any(|other| Arc::ptr_eq(&other.table, &source.table))
        };
        let apart = self.included.iter().flatten().filter(move |source| !is_forward(source));
        self.forward.iter().chain(apart).chain(&self.back)
    }
}

/// The sources that the lists of a manifest mean. While the index is loaded, those that are not open
/// yet are left out.
pub fn fragments(
    manifest: &IndexManifest,
    tables: &BTreeMap<FileId, Arc<Table>>,
    unopened: Unopened,
) -> Result<BTreeMap<SliceNo, Arc<Fragments>>> {
    let mut slices = BTreeMap::new();
    for (slice, lists) in &manifest.slices {
        let mut fragments = Fragments::default();
        let (mut included, mut apart) = (Vec::new(), false);
        for group in &lists.groups {
            for item in &group.items {
                let Some(table) = tables.get(&item.file) else {
                    if unopened == Unopened::LeftOut {
                        continue;
                    }
                    let text =
                        format!("a manifest names fragment {}, which is not here", item.file);
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

/// What an item of a slice's list means.
pub fn source_of(table: &Arc<Table>, slice: SliceNo, item: &ListItem) -> Source {
    // The range of a back fragment restricts the entries inside the states, not the documents.
    let (range, keys) = match item.columns.contains(Columns::BACK) {
        true => (KeyRange::all(), item.range.clone()),
        false => (item.range.clone(), KeyRange::all()),
    };
    let epochs = item.epochs.from..=item.epochs.to;
    Source { table: Arc::clone(table), slice, rows_of: item.rows_of, range, epochs, keys }
}
