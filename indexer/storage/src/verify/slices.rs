//! Check of an index's manifest against its fragments. A file must have the columns and rows that
//! the lists refer to, and a slice must have as many visible entries as the manifest says. If
//! included values have separate fragments, these must have as many entries as the fragments
//! without values.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proto::Result;
use proto::env::Env;
use proto::model::ids::LocalIndexId;

use crate::file_id::FileId;
use crate::fragment::cache::BlockCache;
use crate::fragment::file_blobs::FileBlobs;
use crate::fragment::reader::Fragment;
use crate::manifest::index_manifest::IndexManifest;
use crate::manifest::lists::ListItem;
use crate::options::OPEN_FILES_MAX;
use crate::read::count::count;
use crate::read::slice_fragments::{UnopenedPolicy, slice_fragments};
use crate::rows::columns::Columns;
use crate::tables::table::Table;
use crate::{layout, manifest};

/// Returns the contradictions between an index's manifest and its fragments. Checks nothing unless
/// `is_whole` returns true for all of the fragments: a damaged fragment is reported separately.
/// Blocks the thread.
pub fn check(
    env: &Env,
    dir: &Path,
    index: LocalIndexId,
    is_whole: impl Fn(FileId) -> bool,
) -> Result<Vec<String>> {
    let manifests = layout::manifest_dir(dir);
    let Some((manifest, _)) = manifest::read_index(&*env.fs, &manifests, index)? else {
        return Ok(Vec::new());
    };
    if !manifest.files().into_iter().all(is_whole) {
        return Ok(Vec::new());
    }
    let cache = Arc::new(BlockCache::new(0));
    let blobs = FileBlobs::new(&env.fs, dir, OPEN_FILES_MAX);
    let mut tables = BTreeMap::new();
    for file in manifest.files() {
        let table = Fragment::open(&blobs, file.0, &cache)?;
        tables.insert(file, Arc::new(Table::from_fragment(table)));
    }
    let mut findings = Vec::new();
    for (slice, lists) in &manifest.slices {
        for item in lists.groups.iter().flat_map(|group| &group.items) {
            let finding = tables.get(&item.file).and_then(|table| check_item(table, item));
            findings.extend(finding.map(|what| format!("slice {slice}: {what}")));
        }
    }
    if findings.is_empty() {
        check_counts(&manifest, &tables, &mut findings)?;
    }
    Ok(findings)
}

/// Returns the contradiction between a list item and its fragment, if there is one.
fn check_item(table: &Table, item: &ListItem) -> Option<String> {
    let file = item.file;
    let has = Columns(table.fragment()?.columns());
    if !has.contains(item.columns) {
        return Some(format!(
            "fragment {file} has columns {has}, but columns {} count",
            item.columns
        ));
    }
    if table.index.section(item.rows_of).is_none() {
        return Some(format!("fragment {file} has no rows of slice {}", item.rows_of));
    }
    None
}

/// Compares the visible entries of each slice with the entry counts in the manifest.
fn check_counts(
    manifest: &IndexManifest,
    tables: &BTreeMap<FileId, Arc<Table>>,
    findings: &mut Vec<String>,
) -> Result<()> {
    for (slice, fragments) in slice_fragments(manifest, tables, UnopenedPolicy::Missing)? {
        let shown = count(fragments.rows(false).to_vec())?;
        if let Some(said) = manifest.entries.get(&slice).filter(|said| **said != shown) {
            findings.push(format!("slice {slice} has {shown} entries, the manifest says {said}"));
        }
        if fragments.included.is_some() {
            let with_values = count(fragments.rows(true).to_vec())?;
            if with_values != shown {
                findings.push(format!(
                    "slice {slice} has {shown} entries, but {with_values} of them with included values"
                ));
            }
        }
    }
    Ok(())
}
