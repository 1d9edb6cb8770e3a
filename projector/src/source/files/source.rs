//! The implementation of [`Source`] for buckets whose documents come from files.

use proto::env::Random;
use proto::model::bucket::BucketInfo;
use proto::model::cut::Cut;
use proto::model::history::Branches;
use proto::{Error, ErrorCode, Result};

use crate::source::kind::{Source, WriteCall};

/// The source of buckets whose documents come from files; the order of the rows in the files
/// numbers them.
pub struct FromFiles;

impl Source for FromFiles {
    /// Returns `branches` unchanged: the data set's version determines them.
    fn begin(&self, branches: Vec<Branches>, _: &Cut, _: &dyn Random) -> Vec<Branches> {
        branches
    }

    fn check_call(&self, bucket: &BucketInfo, _: WriteCall) -> Result<()> {
        let what = format!("bucket {} is loaded from files and takes no writes", bucket.name);
        let hint = "ALTER BUCKET … LOAD VERSION loads new files";
        Err(Error::new(ErrorCode::Unsupported, what).with_hint(hint))
    }

    /// Returns false for a partition of which rows are missing; such a partition has no branch.
    fn can_serve(&self, branches: &Branches) -> bool {
        !branches.is_empty()
    }

    /// Does nothing: the files keep all documents.
    fn confirm(&self, _: &BucketInfo, _: &Cut) {}
}
