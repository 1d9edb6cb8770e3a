//! The implementation of [`Source`] for pushed buckets.

use proto::env::Random;
use proto::model::bucket::BucketInfo;
use proto::model::cut::Cut;
use proto::model::history::Branches;
use proto::{Error, ErrorCode, Result};

use crate::source::kind::{Source, WriteCall};

/// The source of pushed buckets, whose mutations the producer numbers.
pub struct PushedSource;

impl Source for PushedSource {
    /// Returns `branches` unchanged: only the producer begins further ones.
    fn begin(&self, branches: Vec<Branches>, _: &Cut, _: &dyn Random) -> Vec<Branches> {
        branches
    }

    fn check_call(&self, bucket: &BucketInfo, call: WriteCall) -> Result<()> {
        match call {
            WriteCall::Mutations => Ok(()),
            WriteCall::Documents => {
                let what = format!("bucket {} is pushed and accepts no documents", bucket.name);
                let hint = "push mutations with their positions";
                Err(Error::new(ErrorCode::Unsupported, what).with_hint(hint))
            }
        }
    }

    /// Does nothing: a push is durable when it is answered, and the producer waits for nothing
    /// else.
    fn confirm(&self, _: &BucketInfo, _: &Cut) {}
}
