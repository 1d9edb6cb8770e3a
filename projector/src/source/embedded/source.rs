//! The embedded source.

use proto::env::Random;
use proto::model::bucket::BucketInfo;
use proto::model::cut::Cut;
use proto::model::history::{Branches, begin_branch};
use proto::model::ids::{Seqno, Vbuuid};
use proto::plant::{self, Plant};
use proto::{Error, ErrorCode, Result};

use crate::source::kind::{Source, WriteCall};
use documents::record::BucketRecord;

/// The projector numbers the mutations itself.
pub struct Embedded;

impl Source for Embedded {
    fn first_branches(&self, vbuckets: u16, random: &dyn Random) -> Vec<Branches> {
        (0..vbuckets).map(|_| vec![(Vbuuid(random.next_u64().max(1)), 0)]).collect()
    }

    /// Begins a new branch in each vbucket. An earlier process may have numbered mutations that are lost, or the store
    /// may be an older copy. Earlier branches stay in the history as far as the store has them.
    fn reopen(&self, record: &mut BucketRecord, ends: &[Seqno], random: &dyn Random) -> bool {
        if plant::is(Plant::BranchKept) {
            return false;
        }
        for (branches, end) in record.branches.iter_mut().zip(ends) {
            begin_branch(branches, Vbuuid(random.next_u64().max(1)), *end);
        }
        true
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

    /// The change log is the source, and its size bounds it.
    fn confirm(&self, _: &BucketInfo, _: &Cut) {}
}
