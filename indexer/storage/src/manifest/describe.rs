//! Description of a manifest for `sextant inspect manifest`.

use std::collections::BTreeMap;
use std::path::Path;

use proto::Result;
use proto::env::Env;
use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch, Generation, IndexId, SliceNo};
use serde::Serialize;

use crate::file_id::FileId;
use crate::manifest::file::{ManifestKind, decode, parse, read_bytes};
use crate::manifest::index_manifest::IndexManifest;
use crate::manifest::lists::{GroupList, ListItem};
use crate::manifest::node_manifest::{DeadEpochs, NodeManifest};

/// The description of a manifest that passed its checks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "manifest", rename_all = "snake_case")]
pub enum CheckedManifest {
    /// The manifest of a node.
    Node {
        /// Number of the next file.
        next_file: FileId,
        /// For each bucket, the newest epoch that the fragments of all its indexes contain.
        buckets: Vec<MarkInfo>,
        /// Epochs that rollbacks have undone.
        dead: Vec<DeadEpochs>,
    },
    /// The manifest of an index.
    Index {
        /// The index that the manifest belongs to.
        index: IndexId,
        /// The generation that the manifest belongs to.
        generation: Generation,
        /// The name of the index.
        name: String,
        /// The bucket of the index.
        bucket: BucketId,
        /// Oldest epoch that can be read in the index; `None` during a build.
        floor: Option<Epoch>,
        /// Rollback points below `floor`, to which the index can still be rolled back.
        points: Vec<Epoch>,
        /// Newest epoch that is in the fragments.
        flushed: Epoch,
        /// Number of entries of each slice, as of the epoch `flushed`.
        entries: BTreeMap<SliceNo, u64>,
        /// The fragments of each list, oldest first.
        items: Vec<ItemInfo>,
    },
}

/// A bucket's newest epoch in fragments, as a node manifest has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MarkInfo {
    /// The bucket that the epoch belongs to.
    pub bucket: BucketId,
    /// The newest epoch in fragments.
    pub epoch: Epoch,
    /// The parent of the epoch.
    pub parent: Epoch,
    /// The horizon at that epoch: the oldest epoch that scans could read.
    pub horizon: Epoch,
}

/// A list item: a fragment that a slice reads, with its restriction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ItemInfo {
    /// The slice whose list has the fragment.
    pub slice: SliceNo,
    /// The columns of the list's group.
    pub group: String,
    /// The number of the fragment's file.
    pub file: FileId,
    /// The slice number that the rows have in the file.
    pub rows_of: SliceNo,
    /// The columns that are read from the fragment.
    pub columns: String,
    /// The inclusive lower bound of the entries that are read, in hexadecimal; empty for no lower
    /// bound.
    pub low: String,
    /// The exclusive upper bound of the entries that are read, in hexadecimal; `None` without a
    /// bound.
    pub high: Option<String>,
    /// Oldest epoch whose rows are read.
    pub epoch_from: Epoch,
    /// Newest epoch whose rows are read.
    pub epoch_to: Epoch,
}

/// Reads and checks a manifest of a node or an index. Blocks the thread.
pub fn describe(env: &Env, path: &Path) -> Result<CheckedManifest> {
    let bytes = read_bytes(&*env.fs, path)?;
    let described = || match parse(&bytes)?.0 {
        ManifestKind::Node => Ok(describe_node(&decode(ManifestKind::Node, &bytes)?)),
        ManifestKind::Index => {
            let manifest: IndexManifest = decode(ManifestKind::Index, &bytes)?;
            manifest.check()?;
            Ok(describe_index(&manifest))
        }
    };
    described().map_err(|error: proto::Error| error.context(format!("reading {}", path.display())))
}

fn describe_node(manifest: &NodeManifest) -> CheckedManifest {
    let info = |mark: &EpochMark| MarkInfo {
        bucket: mark.bucket,
        epoch: mark.epoch,
        parent: mark.parent,
        horizon: mark.horizon,
    };
    CheckedManifest::Node {
        next_file: manifest.next_file,
        buckets: manifest.marks.iter().map(info).collect(),
        dead: manifest.dead.clone(),
    }
}

fn describe_index(manifest: &IndexManifest) -> CheckedManifest {
    let groups =
        manifest.slices.iter().flat_map(|(slice, lists)| lists.groups.iter().map(|g| (*slice, g)));
    let items = groups
        .flat_map(|(slice, group)| {
            group.items.iter().map(move |item| describe_item(slice, group, item))
        })
        .collect();
    CheckedManifest::Index {
        index: manifest.info.id,
        generation: manifest.info.generation,
        name: manifest.info.spec.name.clone(),
        bucket: manifest.info.bucket,
        floor: manifest.floor,
        points: manifest.points.clone(),
        flushed: manifest.flushed,
        entries: manifest.entries.clone(),
        items,
    }
}

fn describe_item(slice: SliceNo, group: &GroupList, item: &ListItem) -> ItemInfo {
    ItemInfo {
        slice,
        group: group.columns.to_string(),
        file: item.file,
        rows_of: item.rows_of,
        columns: item.columns.to_string(),
        low: hex(&item.range.low),
        high: item.range.high.as_ref().map(|high| hex(high)),
        epoch_from: item.epochs.from,
        epoch_to: item.epochs.to,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
