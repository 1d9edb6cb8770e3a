//! What the writer does with a vbucket that goes: one that has another home now, a copy that was given up, or one
//! that is to be copied anew.
//!
//! First it loses its branches, durably: from then on it is here in part ([`is_part`](crate::source::record::is_part)), and stays so
//! until its last entry goes, whoever crashes. Then its documents go, and its log, in small batches; writers commit
//! their groups between them.

use proto::model::homes::Homes;
use proto::model::ids::{NodeId, Seqno, VbucketId};
use proto::{Error, Result};

use crate::source::bucket::Bucket;
use crate::source::writer::Writer;

/// Documents that are looked at for one batch: a few milliseconds.
const LOOK_AT: usize = 4096;
/// Entries of the log that go in one batch: a millisecond of work.
const ENTRIES: u64 = 2048;

/// What is removed, and for whom.
#[derive(Clone, Copy, Debug)]
pub struct Removal {
    /// The vbucket.
    pub vbucket: VbucketId,
    /// This projector.
    pub projector: NodeId,
    /// Is the vbucket on its way here, to be copied anew? Each of the two that remove begins only where the
    /// other does not.
    pub comes: bool,
}

impl Removal {
    fn check(&self, bucket: &Bucket) -> Result<()> {
        let Self { vbucket, projector, comes } = *self;
        let homes = bucket.homes();
        let fits = homes.home(vbucket).is_some_and(|home| home != projector)
            && is_coming(&homes, vbucket, projector) == comes;
        if bucket.is_removed() || bucket.keeping().kept.contains(vbucket) || !fits {
            return Err(Error::unavailable(format!("vbucket {vbucket} is not to be removed now")));
        }
        Ok(())
    }
}

/// Is a vbucket on its way to a projector?
pub fn is_coming(homes: &Homes, vbucket: VbucketId, projector: NodeId) -> bool {
    homes.handing_of(vbucket).is_some_and(|handing| handing.to == projector)
}

impl Writer {
    /// From now on the vbucket is here in part, if at all; false where nothing of it is here.
    pub fn begin_removal(&self, bucket: &Bucket, removal: Removal) -> Result<bool> {
        let _agree = self.agree();
        removal.check(bucket)?;
        let vbucket = removal.vbucket;
        let end = bucket.durable().get(vbucket).seqno;
        let mut branches = bucket.branches();
        let mut given_up = bucket.record().given_up;
        let had_branches = !std::mem::take(&mut branches[usize::from(vbucket.0)]).is_empty();
        if had_branches | given_up.remove(&vbucket).is_some() {
            let mut record = bucket.record_with(branches.clone(), (*bucket.keeping()).clone());
            record.given_up.clone_from(&given_up);
            self.store.put_records(&[record])?;
            bucket.give_up(given_up);
            bucket.copied(branches, (vbucket, end));
        }
        Ok(end.0 > 0)
    }

    /// Removes some of its documents, behind an id; the id to go on behind, none at the end.
    pub fn remove_documents(
        &self,
        bucket: &Bucket,
        removal: Removal,
        after: Option<&str>,
    ) -> Result<Option<String>> {
        let _agree = self.agree();
        removal.check(bucket)?;
        self.store.remove_documents(bucket.info.id, removal.vbucket, after, LOOK_AT)
    }

    /// Removes some of its log, when its documents have gone; true at the end.
    pub fn remove_log(&self, bucket: &Bucket, removal: Removal) -> Result<bool> {
        let _agree = self.agree();
        removal.check(bucket)?;
        let is_gone = self.store.remove_log(bucket.info.id, removal.vbucket, ENTRIES)?;
        if is_gone {
            bucket.copied(bucket.branches(), (removal.vbucket, Seqno(0)));
        }
        Ok(is_gone)
    }
}
