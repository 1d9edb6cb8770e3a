//! The manifest of a document table: its fragments, the range that they cover, and the dead versions in them.
//!
//! The table returns it, and the caller writes it durably, as a part of the manifest of its bucket.

use std::collections::BTreeSet;

use proto::model::ids::VbucketId;
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};

use crate::table::dead::DeadList;

/// The number of bits of a file number that count the files of one bucket. Each flush and each merge uses one number.
const FILES_BITS: u32 = 40;

/// A fragment of a document table.
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
    /// Size of the file.
    pub bytes: u64,
    /// Number of the last entry of the dead list whose versions the fragment does not hold; neither does it hold those of the
    /// entries before.
    pub cleaned: u64,
}

/// The durable state of a document table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableManifest {
    /// Fragments from the oldest to the newest. The places of each fragment are larger than those of the previous ones.
    pub(super) fragments: Vec<FragmentEntry>,
    /// Id of the next file.
    pub(super) next_file: u64,
    /// All versions with a smaller place are in the fragments.
    pub(super) covered: u64,
    /// Dead versions that the fragments may hold.
    pub(super) dead: DeadList,
}

impl TableManifest {
    /// The manifest of an empty table. Its number must be new, different from those of all other tables: files of different tables then
    /// have different ids, and the tables can share a block cache.
    pub fn new(number: u64) -> Self {
        Self { next_file: number << FILES_BITS, ..Self::default() }
    }

    /// The vbuckets that were rewound at or after a place, ascending.
    pub fn went_back_behind(&self, place: u64) -> BTreeSet<VbucketId> {
        self.dead.vbuckets_behind(place)
    }

    /// The place up to which the fragments have all versions: the versions and dead versions from there on must be fed to an opened
    /// table again.
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

    /// Checks that the parts agree with each other. The error `Corrupt` names a contradiction.
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
