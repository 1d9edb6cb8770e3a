//! The manifest of a document table: its fragments, the places in the order of versions that they
//! cover, and the invalid versions in them.
//!
//! The table returns its manifest to the caller, which writes it durably inside the checkpoint of
//! the bucket.

use std::collections::BTreeSet;

use proto::model::ids::VbucketId;
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};

use crate::table::dead::DeadList;

/// The number of low bits of a file id that count the files of one table; the other bits are the
/// number of the table. Each flush and each merge uses one file id.
const FILES_BITS: u32 = 40;

/// The entry of a fragment in the manifest of a document table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FragmentEntry {
    /// Id of the file.
    pub file: u64,
    /// Smallest place of a version.
    pub first: u64,
    /// Largest place of a version.
    pub last: u64,
    /// Number of versions.
    pub versions: u64,
    /// Number of documents that have versions.
    pub documents: u64,
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// The number of the last entry of the dead list that was cleaned: the fragment contains no
    /// versions that this entry or an earlier one selects.
    pub cleaned: u64,
}

/// The durable state of a document table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableManifest {
    /// The fragments from the oldest to the newest. The places in each fragment are larger than
    /// those in the previous ones.
    pub(super) fragments: Vec<FragmentEntry>,
    /// The id that the next file gets.
    pub(super) next_file: u64,
    /// The place, in the order of versions, before which the fragments have all versions.
    pub(super) covered: u64,
    /// The dead (invalid) versions that the fragments may contain.
    pub(super) dead: DeadList,
}

impl TableManifest {
    /// Creates the manifest of an empty table. `number` must differ from the numbers of all other
    /// tables, including former ones. The files of different tables then have different ids, so
    /// that the tables can share a block cache.
    pub fn new(number: u64) -> Self {
        Self { next_file: number << FILES_BITS, ..Self::default() }
    }

    /// Returns the vbuckets that were rewound or removed after a place, ascending.
    pub fn vbuckets_rewound_after(&self, place: u64) -> BTreeSet<VbucketId> {
        self.dead.vbuckets_rewound_after(place)
    }

    /// Returns the place before which the fragments have all versions. After the table was
    /// opened, later versions and dead versions must be added again.
    pub fn covered(&self) -> u64 {
        self.covered
    }

    /// The fragments, oldest first.
    pub fn fragments(&self) -> &[FragmentEntry] {
        &self.fragments
    }

    /// Number of entries in the dead list.
    pub fn dead_entries(&self) -> usize {
        self.dead.len()
    }

    /// Checks that the fields do not contradict each other. The error `Corrupt` names the
    /// contradiction.
    pub fn check(&self) -> Result<()> {
        match self.contradiction() {
            None => Ok(()),
            Some(what) => {
                let what = format!("the manifest of a document table: {what}");
                Err(Error::new(ErrorCode::Corrupt, what))
            }
        }
    }

    fn contradiction(&self) -> Option<String> {
        let mut behind = 0;
        for (n, entry) in self.fragments.iter().enumerate() {
            let file = entry.file;
            if entry.versions == 0 || entry.first < behind || entry.last < entry.first {
                return Some(format!("the places of file {file} are not behind those before"));
            }
            if entry.last >= self.covered {
                return Some(format!("file {file} has places from {} on", self.covered));
            }
            if file >= self.next_file || self.fragments[..n].iter().any(|one| one.file == file) {
                return Some(format!("file {file} has an id that is not its own"));
            }
            if entry.cleaned > self.dead.newest() {
                return Some(format!("file {file} lacks dead versions that nobody knows"));
            }
            behind = entry.last + 1;
        }
        None
    }
}
