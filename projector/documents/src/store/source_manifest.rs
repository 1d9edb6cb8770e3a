//! The manifest of a source, which is the document store of a projector. The manifest lists the
//! buckets that must exist, and the length of each log. It is separate from the logs and tables,
//! so that a log that has lost its end can be distinguished from one that was never longer.
//!
//! Each bucket has its own directory, under a number that is never reused. The manifest names a
//! directory before it is made and until it is removed:
//!
//! | named in | meaning for a directory that is found at the start |
//! |---|---|
//! | `making` | is left of a crash while a bucket was made: it is removed |
//! | `buckets` | has the bucket |
//! | `removing` | is left of a crash while a bucket was removed: it is removed |
//! | `given_up`, by an operator | is damaged; the bucket was made again in another directory, or from a copy that lacks data. An operator removes the directory |
//! | `given_up`, for a copy | is damaged; the bucket is recreated in another directory, from a copy on another projector. The directory is removed when the new copy is complete, or the bucket is dropped |
//! | nothing | is newer than the manifest, which is an older copy: an error, nothing is removed |

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proto::env::FileSystem;
use proto::model::cut::Cut;
use proto::model::ids::BucketId;
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};
use storage::log::Lsn;

use super::paired_file::{FileKind, PairedFile};
use crate::document_store::KnownLoss;
use crate::record::StoredId;

/// The name and the kind of the file with a manifest.
pub const SOURCE_FILE: (&str, FileKind) = ("source", FileKind::Source);

/// The contents of the manifest of a source (the document store of a projector).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceManifest {
    /// The version number (`cas`) of the newest applied catalog.
    pub catalog_cas: u64,
    /// The number that the next new directory gets.
    pub next_directory: u64,
    /// The random ids of buckets.
    pub unique_ids: BTreeMap<BucketId, StoredId>,
    /// The losses of buckets' data that the coordinators have reported.
    pub losses: BTreeMap<BucketId, KnownLoss>,
    /// The stored buckets.
    pub buckets: BTreeMap<BucketId, BucketEntry>,
    /// Numbers of directories that are being created.
    pub making: BTreeSet<u64>,
    /// Numbers of directories that are being removed.
    pub removing: BTreeSet<u64>,
    /// Damaged directories of buckets that were recreated in other directories.
    pub given_up: BTreeMap<u64, GivenUp>,
}

/// The reason why a damaged directory was given up, which determines when it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GivenUp {
    /// The directory remains until an operator removes it. Either an operator made the bucket
    /// again from its remaining data, or gave it up; or the bucket was recreated from another
    /// copy, which lacks data of this one.
    ByOperator,
    /// The bucket with this number was recreated, and is filled from a complete copy on another
    /// projector. The directory is removed when the new copy is complete.
    ForCopy(BucketId),
}

/// The entry of a bucket in the manifest of a source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BucketEntry {
    /// The number of the bucket's directory.
    pub directory: u64,
    /// The random id of the bucket's log.
    pub log_id: u64,
    /// The end of the bucket's log when the entry was written: a log that ends earlier has lost
    /// data.
    pub end: Lsn,
    /// The positions of the vbuckets at that end.
    pub positions: Cut,
}

/// Returns the path of the bucket directory with this number.
pub fn directory_path(dir: &Path, number: u64) -> PathBuf {
    dir.join("buckets").join(format!("{number:08}"))
}

/// Returns the paths of all bucket directories below a data directory.
fn directories(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<PathBuf>> {
    let above = dir.join("buckets");
    if !fs.exists(&above) {
        return Ok(Vec::new());
    }
    fs.list(&above)
        .map_err(|error| Error::from(error).context(format!("listing {}", above.display())))
}

impl SourceManifest {
    /// Returns true if a crash has left the directory: the manifest names it as being made or
    /// removed.
    fn is_leftover(&self, path: &Path) -> bool {
        let number = number_of(path);
        number
            .is_some_and(|number| self.making.contains(&number) || self.removing.contains(&number))
    }

    /// Returns the damaged directories that are removed when the new copies of their buckets are
    /// complete, with these buckets.
    pub fn replaced(&self) -> impl Iterator<Item = (u64, BucketId)> + '_ {
        self.given_up.iter().filter_map(|(directory, why)| match why {
            GivenUp::ForCopy(bucket) => Some((*directory, *bucket)),
            GivenUp::ByOperator => None,
        })
    }

    /// Marks the damaged directories of recreated buckets for removal, because the new copies are
    /// complete or the buckets were dropped.
    pub fn remove_replaced(&mut self, buckets: &[BucketId]) {
        let of = |(_, bucket): &(u64, BucketId)| buckets.contains(bucket);
        let gone: Vec<u64> = self.replaced().filter(of).map(|(directory, _)| directory).collect();
        self.given_up.retain(|directory, _| !gone.contains(directory));
        self.removing.extend(gone);
    }

    /// Gives up all damaged directories of a bucket, the present one (`directory`) and earlier
    /// ones. They remain until an operator removes them.
    pub fn give_up_by_operator(&mut self, bucket: BucketId, directory: u64) {
        let earlier = self.replaced().filter(|(_, of)| *of == bucket);
        let given_up: Vec<u64> = earlier.map(|(earlier, _)| earlier).chain([directory]).collect();
        self.given_up.extend(given_up.into_iter().map(|number| (number, GivenUp::ByOperator)));
    }

    fn has(&self, path: &Path) -> bool {
        let Some(number) = number_of(path) else { return false };
        self.given_up.contains_key(&number)
            || self.buckets.values().any(|bucket| number == bucket.directory)
    }
}

fn number_of(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.parse().ok()
}

/// Returns the directories on disk that a manifest does not name.
pub fn unknown_directories(
    fs: &dyn FileSystem,
    dir: &Path,
    manifest: &SourceManifest,
) -> Result<Vec<PathBuf>> {
    let mut found = directories(fs, dir)?;
    found.retain(|path| !manifest.is_leftover(path) && !manifest.has(path));
    Ok(found)
}

/// Returns the directories that a crash has left while a bucket was created or removed. The next
/// opening removes them.
pub fn left_directories(
    fs: &dyn FileSystem,
    dir: &Path,
    manifest: &SourceManifest,
) -> Result<Vec<PathBuf>> {
    let mut found = directories(fs, dir)?;
    found.retain(|path| manifest.is_leftover(path));
    Ok(found)
}

/// Removes the directories that a crash has left. An error if there is a directory that the
/// manifest does not name.
pub fn remove_leftovers(fs: &dyn FileSystem, dir: &Path, manifest: &SourceManifest) -> Result<()> {
    if let Some(path) = unknown_directories(fs, dir, manifest)?.first() {
        let what = format!(
            "{} is not in the manifest of the source, which is an older copy or lost",
            path.display()
        );
        return Err(Error::new(ErrorCode::Corrupt, what).with_hint(
            "restore the files source.1 and source.2 of the data directory; nothing was removed",
        ));
    }
    left_directories(fs, dir, manifest)?.iter().try_for_each(|path| remove(fs, dir, path))
}

/// Removes the directory `path` of a bucket with its contents. A missing directory is not an
/// error. The removal is made durable in any case, because the caller then removes the directory
/// from the manifest.
pub fn remove(fs: &dyn FileSystem, dir: &Path, path: &Path) -> Result<()> {
    let above = dir.join("buckets");
    if !fs.exists(&above) {
        return Ok(());
    }
    let gone = if fs.exists(path) { fs.remove_dir_all(path) } else { Ok(()) };
    let removed = gone.and_then(|()| fs.sync_dir(&above));
    removed.map_err(|error| Error::from(error).context(format!("removing {}", path.display())))
}

/// Opens the manifest of a data directory, or creates one if the directory is empty.
pub fn open(fs: &dyn FileSystem, dir: &Path) -> Result<(PairedFile, SourceManifest)> {
    let (mut file, found) = PairedFile::open(fs, dir, SOURCE_FILE)?;
    let is_new = found.is_none();
    let manifest = found.unwrap_or_default();
    // Without a manifest, each directory of a bucket is unknown.
    remove_leftovers(fs, dir, &manifest)?;
    if is_new {
        file.write(fs, &manifest)?;
    }
    Ok((file, manifest))
}

#[cfg(test)]
mod tests {
    use proto::env::sim::{self, SimFs};
    use proto::env::{OpenMode, create_dir_durably};

    use super::*;

    const DIR: &str = "/data";

    fn world() -> SimFs {
        let (_, _, fs) = sim::world(1);
        for number in 1..=4 {
            let path = directory_path(Path::new(DIR), number);
            create_dir_durably(&fs, &path).expect("a directory");
            fs.open(&path.join("a file"), OpenMode::CreateNew).expect("a file");
        }
        fs
    }

    fn entry(directory: u64) -> BucketEntry {
        BucketEntry { directory, log_id: 7, end: 0, positions: Cut::zero(1) }
    }

    fn manifest() -> SourceManifest {
        SourceManifest {
            buckets: [(BucketId(1), entry(1)), (BucketId(9), entry(4))].into(),
            making: [3].into(),
            removing: [2].into(),
            ..SourceManifest::default()
        }
    }

    #[test]
    fn a_start_removes_what_a_crash_has_left() {
        let fs = world();
        remove_leftovers(&fs, Path::new(DIR), &manifest()).expect("settled");
        let left = [1, 2, 3, 4].map(|n| fs.exists(&directory_path(Path::new(DIR), n)));
        assert_eq!(left, [true, false, false, true]);
    }

    #[test]
    fn a_finished_removal_is_durable() {
        for failed in 1..=4 {
            let (fs, path) = (world(), directory_path(Path::new(DIR), 2));
            fs.fail_at(fs.operations() + failed);
            // A failed removal is tried again.
            let removed = (0..3).find(|_| remove(&fs, Path::new(DIR), &path).is_ok());
            removed.expect("it is removed");
            fs.crash();
            fs.restart();
            assert!(!fs.exists(&path), "it is back, which no manifest names any more");
        }
    }

    #[test]
    fn a_directory_that_no_manifest_names_is_refused_and_kept() {
        let fs = world();
        let mut older = manifest();
        older.buckets.remove(&BucketId(9));
        for known in [older, SourceManifest::default()] {
            let error =
                remove_leftovers(&fs, Path::new(DIR), &known).expect_err("an unknown directory");
            assert_eq!(error.code, ErrorCode::Corrupt);
            assert!(error.message.contains("/data/buckets/0000000"), "{error}");
            assert!(fs.exists(&directory_path(Path::new(DIR), 4)), "it is still there");
        }
    }
}
