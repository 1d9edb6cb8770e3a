//! The branches that a process begins with.

use proto::Result;
use proto::env::Random;
use proto::model::bucket::SourceKind;
use proto::model::history::begin_branch;
use proto::model::ids::{Seqno, Vbuuid};
use proto::plant::{self, Plant};

use crate::source::record::BucketRecord;
use crate::source::store::document_store::DocumentStore;

/// Opens the buckets of a store, and begins a new branch in each vbucket of the embedded ones. An earlier process may
/// have numbered mutations that are lost, or the store may be an older copy. Earlier branches stay in the history as
/// far as the store has them.
pub fn begin_branches(
    store: &dyn DocumentStore,
    random: &dyn Random,
) -> Result<Vec<(BucketRecord, Vec<Seqno>)>> {
    let mut buckets = store.buckets()?;
    let embedded = |(record, _): &&mut (BucketRecord, Vec<Seqno>)| {
        record.info.source == SourceKind::Embedded && !plant::is(Plant::BranchKept)
    };
    let mut records = Vec::new();
    for (record, ends) in buckets.iter_mut().filter(embedded) {
        for (branches, end) in record.branches.iter_mut().zip(ends) {
            begin_branch(branches, Vbuuid(random.next_u64().max(1)), *end);
        }
        records.push(record.clone());
    }
    if !records.is_empty() {
        store.put_records(&records)?;
    }
    Ok(buckets)
}
