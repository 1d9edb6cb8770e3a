//! The positions in a bucket's history that callers receive, or pass to be checked.

use proto::model::assignment::VbucketSet;
use proto::model::cut::Cut;
use proto::model::history::SourcePlace;
use proto::model::ids::VbucketId;
use proto::rpc::api::BucketReport;
use proto::{Error, ErrorCode, Result};

use super::bucket::{Bucket, SourceState};

impl SourceState {
    fn place(&self) -> SourcePlace {
        let (mut kept, released) = (self.ownership.owned.clone(), &self.ownership.released);
        // A released vbucket may be written elsewhere already.
        released.iter().for_each(|vbucket| kept.remove(vbucket));
        let history = match released.is_empty() {
            true => self.owned_logs.fingerprint(),
            false => self.owned_logs.only_vbuckets(&kept).fingerprint(),
        };
        SourcePlace { durable: self.durable.only_vbuckets(&kept), history, kept }
    }
}

impl Bucket {
    /// Returns the end of the durable history in the owned vbuckets. An error if the bucket is
    /// not served.
    pub fn place(&self) -> Result<SourcePlace> {
        let place = self.state().place();
        // Another copy may have begun to lead before this was read.
        self.check_open()?;
        Ok(place)
    }

    /// Returns the end of the durable history ([`Self::place`]), and the report for SYNC as of
    /// the same moment: the report contains each open commit with a part before that end.
    pub fn place_with_report(&self) -> Result<(SourcePlace, BucketReport)> {
        let (place, report) = {
            let state = self.state();
            let place = state.place();
            let report = state.report_of(self.info.id, place.kept.clone());
            (place, report)
        };
        self.check_open()?;
        Ok((place, report))
    }

    /// Returns true if the durable history has all mutations of a cut, in those of the given
    /// vbuckets that this projector may write. False if the projector's disk has lost mutations
    /// that it had reported.
    pub fn has_all_of_cut(&self, vbuckets: &VbucketSet, cut: &Cut) -> bool {
        let state = self.state();
        let takes = |vbucket: &VbucketId| state.ownership.is_writable(*vbucket);
        let has = |vbucket| state.durable.get(vbucket).seqno >= cut.get(vbucket).seqno;
        vbuckets.iter().filter(takes).all(has)
    }

    /// Returns an error unless a cut is in the bucket's durable history, in the owned vbuckets.
    /// The error `OutOfOrder` names a vbucket in which the histories differ.
    pub fn check_place(&self, cut: &Cut) -> Result<()> {
        let state = self.state();
        if cut.vbuckets() != self.info.vbuckets {
            return Err(Error::new(
                ErrorCode::InvalidParameter,
                format!(
                    "the cut has {} vbuckets, bucket {} has {}",
                    cut.vbuckets(),
                    self.info.name,
                    self.info.vbuckets
                ),
            ));
        }
        for (vbucket, position) in cut.iter() {
            if !state.ownership.owned.contains(vbucket) {
                continue;
            }
            let end = state.durable.get(vbucket).seqno;
            if position.seqno > end && state.ownership.released.contains(vbucket) {
                let what = format!("vbucket {vbucket} may have another owner already");
                return Err(Error::unavailable(what));
            }
            if position.seqno > end || !state.logs.includes(vbucket, position) {
                return Err(Error::new(
                    ErrorCode::OutOfOrder,
                    format!(
                        "vbucket {vbucket} of bucket {}: position {:x}/{} is not in the history, which ends at seqno {end}",
                        self.info.name, position.vbuuid.0, position.seqno
                    ),
                ));
            }
        }
        Ok(())
    }
}
