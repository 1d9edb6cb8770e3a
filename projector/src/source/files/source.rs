//! The source of buckets from files.

use proto::env::Random;
use proto::model::bucket::BucketInfo;
use proto::model::cut::Cut;
use proto::model::history::Branches;
use proto::{Error, ErrorCode, Result};

use crate::source::kind::{Source, WriteCall};

/// The files number the documents.
pub struct FromFiles;

impl Source for FromFiles {
    /// The branches follow from the version.
    fn begin(&self, branches: Vec<Branches>, _: &Cut, _: &dyn Random) -> Vec<Branches> {
        branches
    }

    fn check_call(&self, bucket: &BucketInfo, _: WriteCall) -> Result<()> {
        let what = format!("bucket {} is loaded from files and takes no writes", bucket.name);
        let hint = "ALTER BUCKET … LOAD VERSION loads new files";
        Err(Error::new(ErrorCode::Unsupported, what).with_hint(hint))
    }

    /// A partition that is not whole has no branch.
    fn can_serve(&self, branches: &Branches) -> bool {
        !branches.is_empty()
    }

    /// The files have everything.
    fn confirm(&self, _: &BucketInfo, _: &Cut) {}
}
