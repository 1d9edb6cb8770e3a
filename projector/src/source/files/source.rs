//! The source of buckets from files.

use proto::env::Random;
use proto::model::bucket::BucketInfo;
use proto::model::cut::Cut;
use proto::model::history::Branches;
use proto::{Error, ErrorCode, Result};

use crate::source::kind::{Source, WriteCall};

/// The source of buckets whose documents are numbered by their files.
pub struct FromFiles;

impl Source for FromFiles {
    /// Returns `branches`: they are determined by the version.
    fn begin(&self, branches: Vec<Branches>, _: &Cut, _: &dyn Random) -> Vec<Branches> {
        branches
    }

    fn check_call(&self, bucket: &BucketInfo, _: WriteCall) -> Result<()> {
        let what = format!("bucket {} is loaded from files and takes no writes", bucket.name);
        let hint = "ALTER BUCKET … LOAD VERSION loads new files";
        Err(Error::new(ErrorCode::Unsupported, what).with_hint(hint))
    }

    /// Returns false for a partition that is not whole, which has no branch.
    fn can_serve(&self, branches: &Branches) -> bool {
        !branches.is_empty()
    }

    /// Does nothing: all documents are in the files.
    fn confirm(&self, _: &BucketInfo, _: &Cut) {}
}
