//! Opens the buckets of a store.

use proto::Result;
use proto::env::Random;
use proto::model::ids::Seqno;

use super::registry::source_of_kind;
use documents::document_store::DocumentStore;
use documents::record::BucketRecord;

/// Opens the buckets of a store for a new process. Returns their records and the last seqno of each vbucket.
pub fn open_buckets(
    store: &dyn DocumentStore,
    random: &dyn Random,
) -> Result<Vec<(BucketRecord, Vec<Seqno>)>> {
    let mut buckets = store.buckets()?;
    let mut records = Vec::new();
    for (record, ends) in &mut buckets {
        if source_of_kind(record.info.source).reopen(record, ends, random) {
            records.push(record.clone());
        }
    }
    if !records.is_empty() {
        store.put_records(&records)?;
    }
    Ok(buckets)
}
