//! The kinds of values in a sample of an index, for notices about comparisons that no row can
//! satisfy.
//!
//! A sample consists of the entries at both ends of the index, as many as the first batches
//! contain. The leading column is ordered by type first, so if both of its ends are of one kind,
//! all of its values are. All sessions of a process share a sample for the time `KEPT`. A
//! statement waits for a sample for at most `WITHIN`; without a sample there is no notice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::Result;
use proto::lock::lock;
use proto::model::ids::LocalIndexId;
use proto::model::index::IndexInfo;
use proto::rpc::scan::{Consistency, HedgeAfter, KeyRange, Output, ScanRequest};
use proto::value::key::range_of_present_values;
use router::ScanBatch;
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout};

use crate::access::Access;
use crate::sql::plan::Kinds;

/// The number of entries that are read at each end of the index.
const ENTRIES_MAX: u64 = 100;
/// The time for which a statement waits for a sample.
const WITHIN: Duration = Duration::from_millis(100);
/// The maximum age of a sample. When a statement needs an older one, a new sample is taken.
const KEPT: Duration = Duration::from_secs(60);

/// A sample, or a placeholder while the sample is being taken.
struct Sample {
    asked: Instant,
    kinds: Arc<OnceCell<Option<Arc<Kinds>>>>,
}

/// The samples of a process, by index.
#[derive(Default)]
pub struct Samples(Mutex<BTreeMap<LocalIndexId, Sample>>);

impl Samples {
    /// Returns the kinds of values in a sample of an index; `None` if taking the sample lasts
    /// longer than `WITHIN` or fails. The caller must have checked the right to read the index.
    pub async fn kinds(&self, access: &Access, index: &IndexInfo) -> Option<Arc<Kinds>> {
        let kinds = {
            let mut samples = lock(&self.0);
            samples.retain(|_, sample| sample.asked.elapsed() < KEPT);
            let begin = || Sample { asked: Instant::now(), kinds: Arc::default() };
            Arc::clone(&samples.entry(index.local_id()).or_insert_with(begin).kinds)
        };
        let take = || async {
            let sampled = timeout(WITHIN, sample(access, index)).await.ok()?;
            let sampled = sampled.inspect_err(|error| {
                tracing::debug!(index = index.spec.name, %error, "an index was not sampled");
            });
            sampled.ok().map(Arc::new)
        };
        kinds.get_or_init(take).await.clone()
    }
}

/// Reads both ends of an index and returns the kinds of the values.
async fn sample(access: &Access, index: &IndexInfo) -> Result<Kinds> {
    let mut kinds = Kinds::of_nothing(&index.spec);
    for reverse in [false, true] {
        let mut batches = access.scan(request(index, reverse), None).await?;
        if let Some(ScanBatch::Rows(block)) = batches.next().await? {
            kinds.add(&index.spec, &block)?;
        }
    }
    Ok(kinds)
}

/// Returns a request for a scan from one end of an index, without the entries that have no
/// leading value.
fn request(index: &IndexInfo, reverse: bool) -> ScanRequest {
    let (low, high) = match index.spec.keys.first() {
        Some(key) => range_of_present_values(key.descending),
        None => (Vec::new(), None),
    };
    ScanRequest {
        index: index.local_id(),
        ranges: [KeyRange { low: low.into(), high: high.map(Into::into) }].into(),
        partitions: None,
        filter: None,
        reverse,
        ordered: true,
        distinct_parts: None,
        limit: Some(ENTRIES_MAX),
        offset: 0,
        output: Output::Rows { include: !index.spec.include.is_empty() },
        consistency: Consistency::Any,
        own: None,
        timeout_ms: WITHIN.as_millis() as u64,
        hedge_after: HedgeAfter::Usual,
    }
}
