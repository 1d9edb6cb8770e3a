//! The schema of a case, which is a scan with its expected rows.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// An entry: key, primary key, partition.
pub type Entry = (i64, i64, u16);

/// A case. Unknown fields of the published vectors are ignored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Case {
    /// The name of the case.
    pub name: String,
    /// `sorted`: rows are merged in key order; `none`: rows have no order.
    pub order: String,
    /// All topologies up to the beginning of the scan; the last one is valid then.
    pub topologies: Vec<Topology>,
    /// The index of the scan's base topology.
    pub base: usize,
    /// The initial contents of the index.
    pub entries: Vec<Entry>,
    /// The smallest and the largest requested key.
    pub range: (i64, i64),
    /// The maximum number of rows of each request; the last limit counts for all further ones.
    pub limits: Vec<u64>,
    /// The events during the scan.
    pub events: Vec<Event>,
    /// The entries that must be returned exactly once.
    pub must: Vec<Entry>,
    /// The entries that may be returned at most once.
    #[serde(default)]
    pub may: Vec<Entry>,
    /// The exact rows of a sorted scan; empty in some cases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<Entry>,
}

/// The places of the partitions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Topology {
    /// The shards of the topology.
    pub shards: Vec<u64>,
    /// The shard of each partition.
    pub home: BTreeMap<u16, u64>,
}

/// An event at a point of the scan.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Event {
    /// The point in the scan: request, call in the request, attempt, and point in the attempt.
    pub at: (usize, usize, usize, Point),
    /// The operation.
    #[serde(flatten)]
    pub op: Op,
}

/// A point of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Point {
    /// After this number of rows.
    Rows(u64),
    /// `start`: before the shard is read; `end`: after the last row.
    Named(String),
}

impl Point {
    /// Returns a number that gives the order of the points of an attempt.
    pub fn place(&self) -> u64 {
        match self {
            Self::Named(name) if name == "start" => 0,
            Self::Rows(rows) => *rows,
            Self::Named(_) => u64::MAX,
        }
    }
}

/// The operation of an event.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Op {
    /// A partition moves; with `linger` its rows may still be visible at the source.
    Migrate {
        /// The partition.
        pid: u16,
        /// The target shard.
        to: u64,
        /// True if the source may keep its copy.
        #[serde(default)]
        linger: bool,
    },
    /// A partition returns to its previous shard.
    Restore {
        /// The partition.
        pid: u16,
    },
    /// The rows of a partition become visible at a future target before the move.
    Copy {
        /// The partition.
        pid: u16,
        /// The target shard.
        to: u64,
    },
    /// A shard joins.
    AddShard {
        /// The number of the shard; by default the next free one.
        #[serde(default)]
        sid: Option<u64>,
    },
    /// An empty shard leaves.
    RemoveShard {
        /// The number of the shard.
        sid: u64,
    },
    /// An entry is written.
    Insert {
        /// The entry to insert.
        entry: Entry,
    },
    /// An entry is removed.
    Delete {
        /// The entry to delete.
        entry: Entry,
    },
    /// The next calls to a shard are answered with "retry".
    Lag {
        /// The shard.
        sid: u64,
        /// The number of calls.
        n: u64,
    },
    /// The answer is lost, and the client repeats the request with its previous token.
    Lose,
}

/// The result of a case.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// The case.
    pub name: String,
    /// The rows, in the order of arrival.
    pub rows: Vec<Entry>,
    /// The number of events that took place.
    pub events_fired: usize,
    /// The reason of a failure; `None` if the case was run.
    pub error: Option<String>,
}

impl Case {
    /// Parses cases: a document with `cases`, or JSON lines with one case each.
    pub fn read_all(text: &str) -> Result<Vec<Self>, String> {
        #[derive(Deserialize)]
        struct File {
            cases: Vec<Case>,
        }
        if let Ok(file) = serde_json::from_str::<File>(text) {
            return Ok(file.cases);
        }
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let case = |(n, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", n + 1))
        };
        lines.map(case).collect()
    }

    /// True if rows are requested in key order.
    pub fn is_sorted(&self) -> bool {
        self.order == "sorted"
    }

    /// The partitions, ascending; slice n is the n-th of them.
    pub fn partitions(&self) -> Vec<u16> {
        let assignment = self.topologies.iter().flat_map(|topology| topology.home.keys());
        let entries = self.entries.iter().map(|entry| &entry.2);
        let all: BTreeSet<u16> = assignment.chain(entries).copied().collect();
        all.into_iter().collect()
    }

    /// All shards that the case names.
    pub fn shards(&self) -> BTreeSet<u64> {
        let mut shards: BTreeSet<u64> =
            self.topologies.iter().flat_map(|topology| topology.shards.iter().copied()).collect();
        for event in &self.events {
            match event.op {
                Op::Migrate { to, .. } | Op::Copy { to, .. } => drop(shards.insert(to)),
                Op::RemoveShard { sid } | Op::Lag { sid, .. } => drop(shards.insert(sid)),
                Op::AddShard { sid: Some(sid) } => drop(shards.insert(sid)),
                _ => {}
            }
        }
        shards
    }

    /// Returns a text about the difference between an outcome's rows and the case; `None` if the
    /// rows are right.
    pub fn judge(&self, outcome: &Outcome) -> Option<String> {
        if let Some(error) = &outcome.error {
            return Some(error.clone());
        }
        let mut seen: BTreeMap<Entry, u32> = BTreeMap::new();
        outcome.rows.iter().for_each(|row| *seen.entry(*row).or_default() += 1);
        for must in &self.must {
            if !seen.contains_key(must) {
                return Some(format!("{must:?} is missing"));
            }
        }
        for (row, count) in &seen {
            if !self.must.contains(row) && !self.may.contains(row) {
                return Some(format!("{row:?} is none of the case's"));
            }
            if *count > 1 {
                return Some(format!("{row:?} came {count} times"));
            }
        }
        let sorted =
            outcome.rows.windows(2).all(|two| (two[0].0, two[0].1) <= (two[1].0, two[1].1));
        (self.is_sorted() && !sorted).then(|| "the rows are not in order".into())
    }
}
