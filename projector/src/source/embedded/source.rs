//! The implementation of [`Source`] for embedded buckets.

use proto::env::Random;
use proto::model::bucket::BucketInfo;
use proto::model::cut::Cut;
use proto::model::history::{Branches, begin_branch};
use proto::model::ids::Vbuuid;
use proto::plant::{self, Plant};
use proto::{Error, ErrorCode, Result};

use crate::source::kind::{Source, WriteCall};

/// The source of embedded buckets, whose mutations the projector numbers.
pub struct Embedded;

impl Source for Embedded {
    /// Begins a new branch in each vbucket. A new branch is needed for three reasons: an earlier
    /// process may have numbered mutations that are lost, the store may be an older copy, and
    /// another copy may have mutations that this one lacks. Earlier branches remain in the
    /// history if the store has them.
    fn begin(&self, mut branches: Vec<Branches>, ends: &Cut, random: &dyn Random) -> Vec<Branches> {
        let has_any = branches.iter().any(|branches| !branches.is_empty());
        if has_any && plant::is(Plant::BranchKept) {
            return branches;
        }
        for (branches, (_, end)) in branches.iter_mut().zip(ends.iter()) {
            begin_branch(branches, Vbuuid(random.next_u64().max(1)), end.seqno);
        }
        branches
    }

    fn check_call(&self, bucket: &BucketInfo, call: WriteCall) -> Result<()> {
        match call {
            WriteCall::Documents => Ok(()),
            WriteCall::Mutations => {
                let name = &bucket.name;
                let what = format!("bucket {name} is embedded and accepts no numbered mutations");
                Err(Error::new(ErrorCode::Unsupported, what).with_hint("write documents"))
            }
        }
    }

    /// Does nothing: no producer waits for the confirmation, and the change log is bounded by its
    /// size.
    fn confirm(&self, _: &BucketInfo, _: &Cut) {}
}
