//! The ledger: every mutation that a copy of a bucket has ever had, by its place (bucket, vbucket,
//! branch and seqno).
//!
//! In the whole cluster there is one mutation at each place; two copies with different mutations at
//! one place are a violation. A copy that was filled with documents lacks the beginning of its log,
//! which the ledger supplies from another copy.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use projector::testing::Mutation;
use proto::model::history::{Branches, branch_of};
use proto::model::ids::{BucketId, Seqno, VbucketId, Vbuuid};

use super::reconcile::is_same;

type Place = (BucketId, VbucketId, Vbuuid, Seqno);

/// The mutations of all projectors; clones share them.
#[derive(Clone, Default)]
pub struct Ledger(Arc<Mutex<BTreeMap<Place, Arc<Mutation>>>>);

impl Ledger {
    /// Adds a mutation; returns a text about another mutation at its place if there is one.
    pub(super) fn add(
        &self,
        bucket: BucketId,
        branches: &Branches,
        mutation: &Arc<Mutation>,
    ) -> Option<String> {
        let vbuuid = branch_of(branches, mutation.seqno);
        if vbuuid == Vbuuid(0) {
            // A vbucket in part has no branches yet.
            return None;
        }
        let place = (bucket, mutation.vbucket, vbuuid, mutation.seqno);
        let mut all = self.0.lock().expect("not poisoned");
        let known = all.entry(place).or_insert_with(|| Arc::clone(mutation));
        let differs = !is_same(known, mutation);
        differs.then(|| format!("two copies differ at {place:?}: {known:?} and {mutation:?}"))
    }

    /// Returns a log with the mutations that its copy never had; `None` if no copy had one of them.
    pub(super) fn completed(
        &self,
        (bucket, vbucket): (BucketId, VbucketId),
        branches: &Branches,
        log: &[Arc<Mutation>],
    ) -> Option<Vec<Arc<Mutation>>> {
        let all = self.0.lock().expect("not poisoned");
        let complete = |(n, mutation): (usize, &Arc<Mutation>)| match is_absent(mutation) {
            false => Some(Arc::clone(mutation)),
            true => {
                let seqno = Seqno(n as u64 + 1);
                let place = (bucket, vbucket, branch_of(branches, seqno), seqno);
                all.get(&place).cloned()
            }
        };
        log.iter().enumerate().map(complete).collect()
    }
}

/// True for a placeholder in a log, which has an empty id as no mutation does.
fn is_absent(mutation: &Mutation) -> bool {
    mutation.id.is_empty()
}
