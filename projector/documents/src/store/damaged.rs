//! Recreates damaged buckets. A bucket that is found damaged when the store is opened is not
//! served, and its directory is not changed. All other buckets are served. It can be recreated,
//! empty, in another directory, to be filled from another copy:
//!
//! | step | result of a crash after the step |
//! |---|---|
//! | the manifest names a new directory as being made | the new directory is removed, and the bucket is damaged as before |
//! | the directory is made, with an empty bucket | the same |
//! | the manifest names the new directory instead of the damaged one, which is given up | the bucket exists, is empty, and is filled |
//! | the bucket is complete: the manifest names the damaged directory as being removed | the damaged directory is removed |
//!
//! So the damaged files are kept until the new copy is complete. If the damaged copy had data
//! that its leader lacks, the files are kept until an operator removes them.

use proto::Result;
use proto::lock::{lock, read, write};
use proto::model::ids::BucketId;

use super::disk_store::DiskStore;
use super::source_manifest::{GivenUp, directory_path};
use crate::document_store::DamagedFiles;
use crate::record::BucketRecord;
use crate::rules::no_bucket;

impl DiskStore {
    /// Recreates a damaged bucket, empty, in another directory. `files` says when its damaged
    /// files are removed.
    pub(super) fn recreate_damaged(
        &self,
        record: &BucketRecord,
        files: DamagedFiles,
    ) -> Result<()> {
        let (fs, id) = (&*self.env.fs, record.info.id);
        let mut manifest = lock(&self.manifest);
        if !read(&self.damaged).contains_key(&id) {
            return Err(no_bucket(id));
        }
        let mut next = manifest.contents.clone();
        let directory = next.next_directory;
        next.next_directory += 1;
        next.making.insert(directory);
        manifest.write(fs, next.clone())?;
        let made = match self.make_buckets(&[record], directory) {
            Ok(made) => made,
            Err(error) => {
                // The caller tries again, each time with another directory.
                manifest.contents.making.remove(&directory);
                manifest.contents.removing.insert(directory);
                drop(manifest);
                self.remove_left();
                return Err(error);
            }
        };
        for (_, entry, bucket) in made {
            next.making.remove(&directory);
            let old = next.buckets.insert(id, entry).map(|damaged| damaged.directory);
            if let Some(old) = old {
                match files {
                    DamagedFiles::UntilComplete => {
                        next.given_up.insert(old, GivenUp::ForCopy(id));
                    }
                    DamagedFiles::Kept => next.give_up_by_operator(id, old),
                }
            }
            // A loss of the damaged bucket must not be accepted for the new one.
            next.losses.remove(&id);
            manifest.write(fs, next.clone())?;
            write(&self.buckets).insert(id, bucket);
            write(&self.damaged).remove(&id);
            if let (DamagedFiles::Kept, Some(old)) = (files, old) {
                let path = directory_path(&self.dir, old);
                tracing::warn!(bucket = %id, path = %path.display(), "the damaged files of a bucket are kept: remove their directory when nobody needs them");
            }
        }
        Ok(())
    }

    /// Removes the damaged directories of a bucket that was recreated, after its new copy is
    /// complete.
    pub(super) fn remove_replaced_of(&self, bucket: BucketId) -> Result<()> {
        let mut manifest = lock(&self.manifest);
        let mut next = manifest.contents.clone();
        next.remove_replaced(&[bucket]);
        if next == manifest.contents {
            return Ok(());
        }
        manifest.write(&*self.env.fs, next)?;
        drop(manifest);
        self.remove_left();
        Ok(())
    }
}
