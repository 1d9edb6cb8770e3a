//! How a scan goes on where a token says: the token must belong to the same question, and names the base topology by
//! its number.

use std::sync::Arc;

use proto::model::ids::TopologyNo;
use proto::model::index::IndexInfo;
use proto::model::topology::IndexTopology;
use proto::rpc::scan::{Consistency, ScanRequest};
use proto::token::Token;
use proto::{Error, ErrorCode, Result};
use tokio::time::{Instant, timeout_at};
use xxhash_rust::xxh3::xxh3_64;

use crate::context::RouterContext;

/// Reads a token back and checks that it belongs to this question.
pub(super) fn accept(text: &str, index: &IndexInfo, request: &ScanRequest) -> Result<Token> {
    let token = Token::decode(text)?;
    let refuse = |why: &str| {
        Err(Error::new(ErrorCode::InvalidParameter, format!("continuation token: {why}"))
            .with_hint("begin the scan anew without a token"))
    };
    if (token.index, token.generation) != (index.id, index.generation) {
        return refuse("it belongs to another index");
    }
    if token.request_hash != fingerprint(request)? {
        return refuse("it belongs to another scan");
    }
    Ok(token)
}

/// What a scan asks, without the moment: a token goes on only with the same question.
pub(super) fn fingerprint(request: &ScanRequest) -> Result<u64> {
    let mut question = request.clone();
    question.consistency = Consistency::Any;
    question.timeout_ms = 0;
    let bytes = postcard::to_stdvec(&question).map_err(|e| Error::internal(e.to_string()))?;
    Ok(xxh3_64(&bytes))
}

/// The index with the topology of a number. The coordinator is asked only where this router has not seen the
/// topology itself.
pub(super) async fn with_base(
    context: &RouterContext,
    index: Arc<IndexInfo>,
    number: TopologyNo,
    deadline: Instant,
) -> Result<Arc<IndexInfo>> {
    if index.topology.number == number {
        return Ok(index);
    }
    let topology = match context.topologies.get(index.id, number) {
        Some(topology) => topology,
        None => fetch(context, &index, number, deadline).await?,
    };
    // A token cannot name another number of slices than its index has.
    if topology.placement.len() != index.topology.placement.len() {
        return Err(Error::new(
            ErrorCode::InvalidParameter,
            "continuation token: its topology is no state of the index",
        )
        .with_hint("begin the scan anew without a token"));
    }
    Ok(Arc::new(IndexInfo { topology, ..(*index).clone() }))
}

async fn fetch(
    context: &RouterContext,
    index: &IndexInfo,
    number: TopologyNo,
    deadline: Instant,
) -> Result<Arc<IndexTopology>> {
    let coordinator = context.directory.coordinator();
    let asked = timeout_at(deadline, coordinator.topology(index.id, number)).await;
    let topology = asked.map_err(|_| {
        Error::unavailable(format!("topology {number} of index {} was not told in time", index.id))
    })??;
    context.topologies.keep(index.id, &topology);
    Ok(topology)
}
