//! Continuation of a scan from a token. The token must belong to the same index and the same
//! request; it names the base topology by number.

use std::sync::Arc;

use proto::model::ids::TopologyNo;
use proto::model::index::IndexInfo;
use proto::model::topology::IndexTopology;
use proto::rpc::scan::{Consistency, HedgeAfter, ScanRequest};
use proto::{Error, ErrorCode, Result};
use tokio::time::{Instant, timeout_at};
use xxhash_rust::xxh3::xxh3_64;

use super::token::Token;
use crate::context::RouterContext;

/// Decodes a token; an error if it does not belong to this index and this request.
pub(crate) fn decode_for_request(
    text: &str,
    index: &IndexInfo,
    request: &ScanRequest,
) -> Result<Token> {
    let token = Token::decode(text)?;
    let refuse = |why: &str| {
        Err(Error::new(ErrorCode::InvalidParameter, format!("continuation token: {why}"))
            .with_hint("start the scan again without a token"))
    };
    if (token.index, token.generation) != (index.id, index.generation) {
        return refuse("the token belongs to another index");
    }
    if token.request_hash != fingerprint(request)? {
        return refuse("the token belongs to a scan with another request");
    }
    Ok(token)
}

/// Returns a hash of a request without its consistency, time-out and pace. A token continues only
/// requests with the hash that it contains.
pub(crate) fn fingerprint(request: &ScanRequest) -> Result<u64> {
    let mut question = request.clone();
    question.consistency = Consistency::Any;
    question.timeout_ms = 0;
    question.hedge_after = HedgeAfter::Usual;
    let bytes = postcard::to_stdvec(&question).map_err(|e| Error::internal(e.to_string()))?;
    Ok(xxh3_64(&bytes))
}

/// Returns the index with the topology of this number. Queries the coordinator if this router does
/// not remember the topology.
pub(super) async fn with_topology(
    context: &RouterContext,
    index: Arc<IndexInfo>,
    number: TopologyNo,
    deadline: Instant,
) -> Result<Arc<IndexInfo>> {
    if index.topology.number == number {
        return Ok(index);
    }
    let topology = match context.topologies.get(index.local_id(), number) {
        Some(topology) => topology,
        None => fetch(context, &index, number, deadline).await?,
    };
    // The number of slices of a generation never changes, so a forged or damaged token is refused here.
    if topology.placement.len() != index.topology.placement.len() {
        return Err(Error::new(
            ErrorCode::InvalidParameter,
            "continuation token: the topology that it names does not fit the index",
        )
        .with_hint("start the scan again without a token"));
    }
    Ok(Arc::new(IndexInfo { topology, ..(*index).clone() }))
}

/// Requests a topology from the coordinator.
async fn fetch(
    context: &RouterContext,
    index: &IndexInfo,
    number: TopologyNo,
    deadline: Instant,
) -> Result<Arc<IndexTopology>> {
    let coordinator = context.directory.coordinator();
    let asked = timeout_at(deadline, coordinator.topology(index.local_id(), number)).await;
    let topology = asked.map_err(|_| {
        let name = &index.spec.name;
        let text =
            format!("index \"{name}\": no coordinator sent topology {number} within the time-out");
        Error::unavailable(text)
    })??;
    context.topologies.remember(index.local_id(), &topology);
    Ok(topology)
}
