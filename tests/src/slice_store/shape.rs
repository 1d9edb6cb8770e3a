//! The indexes of a history, the entries of a document, and their slices.
//!
//! Entries depend on the document's id and content only, so that a stream, a backfill and a repeated epoch agree. Keys
//! come from a small pool, so that documents share and reuse them. The style of a shape determines their form (numbers,
//! strings with common prefixes, keys of 2 KB).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::expr::{ColumnType, Expr};
use proto::model::ids::{LocalIndexId, SliceNo, TopologyNo, hash_id};
use proto::model::index::{
    INCLUDED_KB_DEFAULT, IncludedColumn, IndexInfo, IndexSpec, IndexState, KeyPart, PartitionBy,
};
use proto::model::topology::IndexTopology;
use proto::value::Value;
use proto::value::key;
use proto::value::path::Step;
use storage::Grouping;

use super::{BUCKET, NODE};

/// The form of an index's keys.
#[derive(Clone, Copy, Debug)]
pub enum Style {
    /// Integers.
    Numbers,
    /// Strings, many of which are prefixes of others; one is empty.
    Prefixes,
    /// A string and a number, the string descending.
    Composite,
    /// Strings of up to 2 KB that differ only at their end.
    Long,
}

/// An index.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The number and generation of the index.
    pub id: LocalIndexId,
    /// The number of slices at the beginning.
    pub slices: u16,
    /// The form of its keys.
    pub style: Style,
    /// The number of distinct keys.
    pub keys: u64,
    /// True if the index has included values.
    pub include: bool,
    /// The initial grouping of its columns.
    pub grouping: Grouping,
    /// True for an array key: a document then has several entries.
    pub array: bool,
    /// True if the index is partitioned by content, so that a document's entries move between
    /// slices.
    pub by_content: bool,
}

impl Shape {
    /// A random shape.
    pub fn random(id: LocalIndexId, random: &mut fastrand::Rng) -> Self {
        let styles = [Style::Numbers, Style::Prefixes, Style::Composite, Style::Long];
        Self {
            id,
            slices: random.u16(1..4),
            style: styles[random.usize(0..styles.len())],
            keys: random.u64(2..24),
            include: random.bool(),
            grouping: any_grouping(random),
            array: random.bool(),
            by_content: random.u8(0..3) == 0,
        }
    }

    /// Returns the index as the catalog contains it, with all of its slices on the node.
    pub fn info(&self) -> Arc<IndexInfo> {
        let path = || Expr::Path(vec![Step::Field("key".into())]);
        let (name, column_type) = ("key".to_owned(), ColumnType::Text);
        let part = |descending| KeyPart {
            expr: if self.array { Expr::Unnest(Box::new(path())) } else { path() },
            name: name.clone(),
            column_type,
            descending,
            include_missing: false,
        };
        let keys = match self.style {
            Style::Composite => vec![part(true), KeyPart { expr: path(), ..part(false) }],
            Style::Numbers | Style::Prefixes | Style::Long => vec![part(false)],
        };
        let include = IncludedColumn { expr: path(), name: "more".into(), column_type };
        let spec = IndexSpec {
            name: format!("i{}", self.id),
            bucket: "b".into(),
            primary: false,
            keys,
            include: if self.include { vec![include] } else { Vec::new() },
            predicate: None,
            partition: match self.by_content {
                true => PartitionBy::Exprs(vec![path()]),
                false => PartitionBy::DocumentId,
            },
            slices: self.slices,
            replicas: 0,
            separate_included_columns: false,
            included_kb_max: INCLUDED_KB_DEFAULT,
            compression: Default::default(),
            sql: String::new(),
        };
        let placement = vec![vec![NODE]; usize::from(self.slices)];
        Arc::new(IndexInfo {
            id: self.id.index,
            bucket: BUCKET,
            spec: Arc::new(spec),
            state: IndexState::Backfill,
            generation: self.id.generation,
            topology: Arc::new(IndexTopology { number: TopologyNo(1), placement }),
            moves: Vec::new(),
            revision: 0,
            defined: 0,
        })
    }

    /// Returns the n-th key, encoded.
    pub fn key(&self, n: u64) -> Vec<u8> {
        let (n, mut out) = (n % self.keys, Vec::new());
        match self.style {
            Style::Numbers => key::encode_part(&Value::int(n as i64 - 3), false, &mut out),
            Style::Prefixes => {
                let value = Value::String(
                    "ab".repeat((n / 2) as usize) + if n % 2 == 0 { "" } else { "b" },
                );
                key::encode_part(&value, false, &mut out);
            }
            Style::Composite => {
                key::encode_part(&Value::String(format!("group{}", n % 3)), true, &mut out);
                key::encode_part(&Value::int((n / 3) as i64), false, &mut out);
            }
            Style::Long => {
                let value = Value::String(format!("{}{n}", "long ".repeat((n % 4) as usize * 130)));
                key::encode_part(&value, false, &mut out);
            }
        }
        out
    }
}

/// A random grouping.
pub fn any_grouping(random: &mut fastrand::Rng) -> Grouping {
    if random.bool() { Grouping::Together } else { Grouping::Apart }
}

/// A change of the slices of an index.
#[derive(Clone, Debug)]
pub enum Edit {
    /// A slice is split in two.
    Split {
        /// The number of the slice.
        slice: SliceNo,
        /// The first entry of `high`.
        at: Vec<u8>,
        /// The slice of the entries before `at`.
        low: SliceNo,
        /// The slice of the entries from `at` on.
        high: SliceNo,
    },
    /// A slice is cloned; the clone receives all entries of the slice from then on.
    Clone {
        /// The number of the slice.
        slice: SliceNo,
        /// The number of the clone.
        to: SliceNo,
    },
    /// A slice is dropped.
    Drop {
        /// The number of the slice.
        slice: SliceNo,
    },
}

/// An index that the store has or is building.
#[derive(Clone, Debug)]
pub struct Known {
    /// The shape of the index.
    pub shape: Shape,
    /// The changes of its slices, in order.
    pub edits: Vec<Edit>,
    /// The build of the index; `None` when it is finished.
    pub build: Option<Build>,
}

/// A build in progress.
#[derive(Clone, Debug, Default)]
pub struct Build {
    /// The cut that must be applied before the build can finish; `None` before a snapshot was
    /// taken.
    pub cut: Option<proto::model::cut::Cut>,
    /// The documents of the snapshot that are not delivered yet.
    pub left: Vec<(String, (u64, u64))>,
}

impl Known {
    /// The present slices, ascending.
    pub fn slices(&self) -> Vec<SliceNo> {
        let mut slices: BTreeSet<SliceNo> = (0..self.shape.slices).map(SliceNo).collect();
        for edit in &self.edits {
            match edit {
                Edit::Split { slice, low, high, .. } => {
                    slices.remove(slice);
                    slices.extend([*low, *high]);
                }
                Edit::Clone { to, .. } => {
                    slices.insert(*to);
                }
                Edit::Drop { slice } => {
                    slices.remove(slice);
                }
            }
        }
        slices.into_iter().collect()
    }

    /// Returns the slices to which an entry belongs.
    fn route(&self, hash: u64, entry: &[u8]) -> Vec<SliceNo> {
        let mut to = vec![SliceNo((hash % u64::from(self.shape.slices)) as u16)];
        for edit in &self.edits {
            match edit {
                Edit::Split { slice, at, low, high } => {
                    let child = if entry < &at[..] { *low } else { *high };
                    to.iter_mut().filter(|of| *of == slice).for_each(|of| *of = child);
                }
                Edit::Clone { slice, to: twin } if to.contains(slice) => to.push(*twin),
                Edit::Clone { .. } => {}
                Edit::Drop { slice } => to.retain(|of| of != slice),
            }
        }
        to
    }

    /// Returns the entries of a document: slice, key and included values.
    pub fn entries(&self, id: &str, content: u64) -> Vec<(SliceNo, Vec<u8>, Vec<u8>)> {
        let shape = &self.shape;
        let mut random = fastrand::Rng::with_seed(content ^ (shape.id.index.0 << 32));
        let count = match (random.u8(0..6), shape.array) {
            (0, _) => 0,
            (_, true) => random.usize(0..5),
            (_, false) => 1,
        };
        let hash = if shape.by_content { random.u64(..) } else { hash_id(id) >> 32 };
        let mut entries = BTreeMap::new();
        for _ in 0..count {
            let key = shape.key(random.u64(..));
            let include = match (shape.include, random.u8(0..8)) {
                (false, _) | (true, 0) => Vec::new(),
                (true, 7) => vec![random.u8(..); 700],
                (true, _) => random.u64(0..4).to_string().into_bytes(),
            };
            for slice in self.route(hash, &[&key[..], id.as_bytes()].concat()) {
                entries.insert((slice, key.clone()), include.clone());
            }
        }
        entries.into_iter().map(|((slice, key), include)| (slice, key, include)).collect()
    }
}
