//! The wait of a scan for the changes of its own transaction (the transaction in which it runs).

use proto::rpc::scan::ShardScan;
use proto::{Error, Result};
use storage::{SliceStore, StorageEngine};
use tokio::time::{Instant, timeout_at};

/// Waits until the node has the changes of the transaction in which a scan runs. Returns
/// `Unavailable` if they are still missing at the time `by`.
pub async fn wait_for_own_changes(
    store: &StorageEngine,
    scan: &ShardScan,
    by: Instant,
) -> Result<()> {
    let Some(own) = scan.own else { return Ok(()) };
    let waited = timeout_at(by, store.wait_for_transaction(scan.bucket, own)).await;
    waited.unwrap_or_else(|_| {
        let text = format!(
            "place {} of transaction {} did not come to this node within {} ms",
            own.place, own.transaction, scan.timeout_ms
        );
        Err(Error::unavailable(text)
            .with_hint("try again; if it lasts, the node is behind in the stream of the bucket"))
    })
}
