//! The schema of a case.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Key, primary key, partition.
pub type Entry = (i64, i64, u16);

/// A case; fields of the published vectors that are not named here do not bind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Case {
    /// What it is called.
    pub name: String,
    /// `sorted`: rows come merged in key order; `none`: they need not.
    pub order: String,
    /// The topologies that there have been; the last one holds when the scan begins.
    pub topologies: Vec<Topology>,
    /// The one that the scan takes as its base.
    pub base: usize,
    /// What the index holds from first to last.
    pub entries: Vec<Entry>,
    /// The smallest and the largest key that are asked for.
    pub range: (i64, i64),
    /// Most rows of request r; the last one repeats.
    pub limits: Vec<u64>,
    /// What happens meanwhile.
    pub events: Vec<Event>,
    /// Each of these comes once.
    pub must: Vec<Entry>,
    /// Each of these comes at most once.
    #[serde(default)]
    pub may: Vec<Entry>,
    /// Must the rows of a sorted scan come in exactly this order? Not said by all cases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<Entry>,
}

/// Where the partitions are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Topology {
    /// The shards.
    pub shards: Vec<u64>,
    /// The shard of each partition.
    pub home: BTreeMap<u16, u64>,
}

/// Something that happens at a point of the scan.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Event {
    /// Request, call in it, attempt, point.
    pub at: (usize, usize, usize, Point),
    /// What.
    #[serde(flatten)]
    pub op: Op,
}

/// A point of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Point {
    /// After so many rows.
    Rows(u64),
    /// `start`, before the shard is looked at, or `end`, after the last row.
    Named(String),
}

/// What happens.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Op {
    /// A partition moves; `linger`: its rows may still be seen at the source.
    Migrate {
        /// The partition.
        pid: u16,
        /// Where it goes.
        to: u64,
        /// May its source be kept?
        #[serde(default)]
        linger: bool,
    },
    /// It goes back to where it was before.
    Restore {
        /// The partition.
        pid: u16,
    },
    /// Its rows can be seen at a future target early.
    Copy {
        /// The partition.
        pid: u16,
        /// Where.
        to: u64,
    },
    /// A shard joins.
    AddShard {
        /// Its number; the next one without.
        #[serde(default)]
        sid: Option<u64>,
    },
    /// An empty shard leaves.
    RemoveShard {
        /// Its number.
        sid: u64,
    },
    /// An entry is written.
    Insert {
        /// It.
        entry: Entry,
    },
    /// An entry is removed.
    Delete {
        /// It.
        entry: Entry,
    },
    /// The next calls to a shard are answered "retry".
    Lag {
        /// The shard.
        sid: u64,
        /// So many of them.
        n: u64,
    },
    /// The answer never arrives, and the client sends its old token again.
    Lose,
}

/// What playing a case came to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// The case.
    pub name: String,
    /// The rows, in the order in which they came.
    pub rows: Vec<Entry>,
    /// Events that happened.
    pub events_fired: usize,
    /// What went wrong.
    pub error: Option<String>,
}

impl Case {
    /// Reads cases: a document with `cases`, or JSON lines of one case each.
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

    /// Is it asked for in key order?
    pub fn is_sorted(&self) -> bool {
        self.order == "sorted"
    }

    /// The partitions, ascending: slice n is the nth of them.
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

    /// What is wrong with the rows of an outcome.
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
