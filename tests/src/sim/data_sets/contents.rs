//! The files of versions, and a model of their documents that shares no code with the loader.

use std::collections::BTreeMap;
use std::path::Path;

use proto::env::sim::SimFs;
use proto::env::{FileSystem, OpenMode};
use serde_json::{Value, json};

use crate::sim::judge::oracle::SimIndex;

/// The directory on a projector's disk that contains the files of versions. No fault concerns it.
pub const FILES_DIR: &str = "/files";
/// The number of sets of files, which the versions of a data set use in turn.
const SETS: u64 = 6;
/// The number of the set with an unreadable row.
const BROKEN: u64 = 3;
/// The file and the line of the unreadable row.
pub const BROKEN_AT: [&str; 2] = ["f3/2.jsonl", "line 3"];
/// The number of rows in each of the two files of a set.
const ROWS: u64 = 24;
/// The number of ids from which rows are drawn.
pub const IDS: u64 = 44;
/// The row of the first file whose id the first row of the second file has.
const SECOND_BEGINS: u64 = 20;

/// The indexes of a data set.
pub const INDEXES: [SimIndex; 2] = [
    SimIndex {
        name: "of_version",
        sql: "CREATE INDEX of_version ON d (n, v) INCLUDE (s) WITH (slices = 3, replicas = 1)",
        keys: |document| vec![vec![document.get("n").cloned(), document.get("v").cloned()]],
        descending: &[false, false],
        included: Some("s"),
    },
    SimIndex {
        name: "ranges_of_version",
        sql: "CREATE INDEX ranges_of_version ON d (n, s) INCLUDE (v) WHERE n >= 5 \
              PARTITION BY RANGE (n) SPLIT AT (12, 25, 40)",
        keys: |document| match document.get("n").and_then(Value::as_i64) {
            Some(n) if n >= 5 => vec![vec![Some(json!(n)), document.get("s").cloned()]],
            _ => Vec::new(),
        },
        descending: &[false, false],
        included: Some("v"),
    },
];

/// Returns the name of a version.
pub fn name(count: u64) -> String {
    format!("v{count}")
}

/// Returns the number in the name of a version.
pub fn count_of(name: &str) -> Option<u64> {
    name.strip_prefix('v')?.parse().ok()
}

/// Returns the pattern of a version's files.
pub fn pattern(count: u64) -> String {
    format!("f{}/*", count % SETS)
}

/// True if the files of a version have an unreadable row.
pub fn is_broken(count: u64) -> bool {
    count % SETS == BROKEN
}

/// Returns the rows of a file in order. Some ids are missing in each set.
fn rows(set: u64, file: u64) -> impl Iterator<Item = (String, Value)> {
    let first = (file - 1) * SECOND_BEGINS;
    let ids = (first..first + ROWS).filter(move |id| !(id + set).is_multiple_of(7));
    ids.map(move |id| {
        let (n, s) = ((id * 17 + set * 5 + file * 3) % 55, format!("{set}.{file}.{id}"));
        let id = format!("p{id}");
        let document = json!({ "id": id, "v": set, "n": n, "s": s });
        (id, document)
    })
}

/// Returns the documents of a version: of the rows with one id, the last counts. `None` if the
/// files have an unreadable row.
pub fn documents(count: u64) -> Option<BTreeMap<String, Value>> {
    let set = count % SETS;
    (set != BROKEN).then(|| rows(set, 1).chain(rows(set, 2)).collect())
}

/// Writes all files to the disk of a projector, durably.
pub fn write_files(fs: &SimFs) {
    for set in 0..SETS {
        let dir = Path::new(FILES_DIR).join(format!("f{set}"));
        proto::env::create_dir_durably(fs, &dir).expect("a disk without faults");
        for file in 1..=2 {
            let mut lines: Vec<_> =
                rows(set, file).map(|(_, document)| document.to_string()).collect();
            if set == BROKEN && file == 2 {
                lines[2] = r#"{"id":"p1","v":"#.into();
            }
            let text = lines.join("\n") + "\n";
            let write = || {
                let made = fs.open(&dir.join(format!("{file}.jsonl")), OpenMode::Create)?;
                made.write_all_at(text.as_bytes(), 0)?;
                made.sync()
            };
            write().expect("a disk without faults");
        }
        fs.sync_dir(&dir).expect("a disk without faults");
    }
}
