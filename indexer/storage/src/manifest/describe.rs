//! What is in a manifest, for `sextant inspect manifest`.

use std::collections::BTreeMap;
use std::path::Path;

use proto::Result;
use proto::env::Env;
use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch, Generation, IndexId, SliceNo};
use serde::Serialize;

use crate::file_id::FileId;
use crate::manifest::file::{Kind, decode, parse, read_bytes};
use crate::manifest::index_manifest::IndexManifest;
use crate::manifest::lists::{GroupList, ListItem};
use crate::manifest::node_manifest::{DeadEpochs, NodeManifest};

/// A manifest that has passed its checks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "manifest", rename_all = "snake_case")]
pub enum Described {
    /// Of a node.
    Node {
        /// The number of the next file.
        next_file: FileId,
        /// What the fragments of all indexes have, by bucket.
        buckets: Vec<MarkInfo>,
        /// What rollbacks have taken back.
        dead: Vec<DeadEpochs>,
    },
    /// Of an index.
    Index {
        /// The index.
        index: IndexId,
        /// Its generation.
        generation: Generation,
        /// Its name.
        name: String,
        /// Its bucket.
        bucket: BucketId,
        /// The oldest epoch that it answers; none while it is being built.
        floor: Option<Epoch>,
        /// Below that, the epochs to which it can go back.
        points: Vec<Epoch>,
        /// The newest epoch that is in the fragments.
        flushed: Epoch,
        /// How many entries each slice had then.
        entries: BTreeMap<SliceNo, u64>,
        /// One line for each fragment in each list, the oldest first.
        items: Vec<ItemInfo>,
    },
}

/// How far a bucket is on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MarkInfo {
    /// The bucket.
    pub bucket: BucketId,
    /// The epoch.
    pub epoch: Epoch,
    /// The one before it.
    pub parent: Epoch,
    /// The oldest epoch that scans could ask for then.
    pub horizon: Epoch,
}

/// A fragment in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ItemInfo {
    /// The slice.
    pub slice: SliceNo,
    /// The columns of the group.
    pub group: String,
    /// The fragment.
    pub file: FileId,
    /// The slice under whose number the rows stand in the file.
    pub rows_of: SliceNo,
    /// The columns that count.
    pub columns: String,
    /// The first entry that counts, in hexadecimal; empty is the beginning.
    pub low: String,
    /// The entry before which those that count end, in hexadecimal; none is the end.
    pub high: Option<String>,
    /// The oldest epoch that counts.
    pub epoch_from: Epoch,
    /// The newest epoch that counts.
    pub epoch_to: Epoch,
}

/// Reads and checks a manifest of either kind. Blocks.
pub fn describe(env: &Env, path: &Path) -> Result<Described> {
    let bytes = read_bytes(&*env.fs, path)?;
    let described = || match parse(&bytes)?.0 {
        Kind::Node => Ok(describe_node(&decode(Kind::Node, &bytes)?)),
        Kind::Index => {
            let manifest: IndexManifest = decode(Kind::Index, &bytes)?;
            manifest.check()?;
            Ok(describe_index(&manifest))
        }
    };
    described().map_err(|error: proto::Error| error.context(format!("reading {}", path.display())))
}

fn describe_node(manifest: &NodeManifest) -> Described {
    let info = |mark: &EpochMark| MarkInfo {
        bucket: mark.bucket,
        epoch: mark.epoch,
        parent: mark.parent,
        horizon: mark.horizon,
    };
    Described::Node {
        next_file: manifest.next_file,
        buckets: manifest.marks.iter().map(info).collect(),
        dead: manifest.dead.clone(),
    }
}

fn describe_index(manifest: &IndexManifest) -> Described {
    let groups =
        manifest.slices.iter().flat_map(|(slice, lists)| lists.groups.iter().map(|g| (*slice, g)));
    let items = groups
        .flat_map(|(slice, group)| {
            group.items.iter().map(move |item| describe_item(slice, group, item))
        })
        .collect();
    Described::Index {
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
