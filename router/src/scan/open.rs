//! Opens a scan: admission, epoch, base topology, then the shard scans.

use std::sync::Arc;
use std::time::Duration;

use proto::Result;
use proto::model::index::IndexInfo;
use proto::rpc::scan::{Consistency, ScanRequest};
use tokio::time::Instant;

use super::plan::ScanPlan;
use super::resume::{decode_for_request, with_topology};
use super::source::{is_merged, memory_estimate, row_source};
use super::stream::{RowsLeft, ScanStream};
use super::virtual_scan::UnorderedProgress;
use crate::context::RouterContext;
use crate::epochs::choose::EpochChooser;

/// Begins a scan, or continues the scan that a token names.
pub(crate) async fn open_scan(
    context: Arc<RouterContext>,
    mut index: Arc<IndexInfo>,
    mut request: ScanRequest,
    token: Option<&str>,
) -> Result<ScanStream> {
    let deadline = Instant::now() + Duration::from_millis(request.timeout_ms);
    let (mut limit, mut offset, mut resume_after) = (request.limit, request.offset, None);
    // Admission comes first: a scan that waits for its permit must not hold back the horizon with a lease.
    let bytes = memory_estimate(&index, &request, context.config.scan_ahead_bytes);
    let permit = context.admission.admit(bytes, deadline).await?;
    let mut progress = None;
    if let Some(text) = token {
        let token = decode_for_request(text, &index, &request)?;
        index = with_topology(&context, index, token.base_topology, deadline).await?;
        request.consistency = Consistency::Epoch(token.epoch);
        (limit, offset) = (token.limit_left, token.offset_left);
        if is_merged(&request) {
            resume_after = token.resume_after;
        } else {
            let (base, shards) = (&index.topology, token.shards_done);
            let resumed =
                UnorderedProgress::resume(base, shards, token.resume_after, token.virtual_scans);
            progress = Some(resumed);
        }
    }
    let catalog = context.catalog.load_full();
    let chooser = EpochChooser::new(&context, &index, &catalog, deadline);
    let lease = chooser.choose(&request.consistency).await?;
    let plan = ScanPlan {
        context,
        index,
        request: Arc::new(request),
        epoch: lease.epoch(),
        resume_after: resume_after.clone(),
        rows_max: limit.map(|limit| limit.saturating_add(offset)),
    };
    let source = row_source(&plan, progress);
    Ok(ScanStream::new(plan, lease, source, permit, RowsLeft { offset, limit }))
}
