//! Moments: which epoch of a bucket was in force at an index of the log
//! ([`proto::model::moment`]).
//!
//! Each bucket has a list of the log indexes at which its retained epochs were published. An
//! epoch is in force from its index until the next epoch is published. Where the next epoch is
//! not retained any more, it is unknown which of the two was in force. The answer is then an
//! error and never a guess. The numbers are small, so the state stores more of them than cuts. A
//! rollback clears a bucket's list, because no reader asks for an epoch from before the rollback.

use proto::model::bucket::BucketInfo;
use proto::model::ids::{BucketId, Epoch};
use proto::model::moment::Moment;
use proto::rpc::api::LEASE_AGE_MS_MAX;
use proto::{Error, ErrorCode, Result};

use crate::state::context::StateContext;
use crate::state::epochs::epoch_moments::InForce;

impl StateContext {
    /// Returns the log index of a moment; `None` if the index is not known.
    pub fn index_of(&self, moment: &Moment) -> Option<u64> {
        match moment.of {
            None => Some(moment.at),
            Some((bucket, epoch)) => self.moments(bucket)?.nearest(epoch, moment.at),
        }
    }

    /// Returns the epoch that is in force in a bucket at a moment; `None` if this state has not
    /// reached the moment. Returns an error if the epoch is not known any more.
    pub fn epoch_at(&self, bucket: BucketId, moment: &Moment) -> Result<Option<Epoch>> {
        let is_ahead = |(of, epoch): (BucketId, Epoch)| {
            self.epochs.newest(of).is_some_and(|newest| newest < epoch)
        };
        if moment.at > self.position() || moment.of.is_some_and(is_ahead) {
            return Ok(None);
        }
        let (Some(info), Some(moments)) = (self.buckets.get(bucket), self.moments(bucket)) else {
            let what = format!("bucket {bucket} does not exist");
            return Err(Error::new(ErrorCode::Unknown, what));
        };
        let Some(at) = self.index_of(moment) else {
            let of = moment.of.and_then(|(of, _)| self.buckets.get(of));
            return Err(lapsed_error(of.unwrap_or(info)));
        };
        match (moments.in_force(at), info.readable_from()) {
            (InForce::Epoch(epoch), Some(from)) if from <= epoch => Ok(Some(epoch)),
            (InForce::BeforeFirst, _) => {
                Err(too_old(info, "it was created after the moment that is read"))
            }
            (InForce::Dropped, _) => {
                let what = "so many epochs followed the moment that is read that the one of that time was dropped";
                Err(too_old(info, what))
            }
            // A rollback clears the list.
            (InForce::BeforeOldest, from) if from != Some(moments.oldest()) => {
                Err(lapsed_error(info))
            }
            _ => Err(too_old(info, "it was rolled back after the moment that is read")),
        }
    }
}

/// Returns the error for a moment whose epoch the state no longer stores.
fn lapsed_error(bucket: &BucketInfo) -> Error {
    let minutes = LEASE_AGE_MS_MAX / 60_000;
    let what = format!(
        "its epoch of the moment that is read is not kept any more: it stays readable for {minutes} minutes at most (LEASE_AGE_MS_MAX)"
    );
    too_old(bucket, &what)
}

fn too_old(bucket: &BucketInfo, what: &str) -> Error {
    let what = format!("bucket \"{}\": {what}", bucket.name);
    Error::new(ErrorCode::SnapshotTooOld, what).with_hint("begin the transaction again")
}

#[cfg(test)]
#[path = "moments_tests.rs"]
mod tests;
