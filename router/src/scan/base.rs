//! The base topology of a scan that goes on: a token names it by its number.

use std::sync::Arc;

use proto::model::ids::TopologyNo;
use proto::model::index::IndexInfo;
use proto::model::topology::IndexTopology;
use proto::{Error, ErrorCode, Result};
use tokio::time::{Instant, timeout_at};

use crate::service::Shared;

/// The index with the topology of a number. The coordinator is asked only where this router has not seen the
/// topology itself.
pub(crate) async fn with_base(
    shared: &Shared,
    index: Arc<IndexInfo>,
    number: TopologyNo,
    deadline: Instant,
) -> Result<Arc<IndexInfo>> {
    if index.topology.number == number {
        return Ok(index);
    }
    let topology = match shared.topologies.get(index.id, number) {
        Some(topology) => topology,
        None => fetch(shared, &index, number, deadline).await?,
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
    shared: &Shared,
    index: &IndexInfo,
    number: TopologyNo,
    deadline: Instant,
) -> Result<Arc<IndexTopology>> {
    let coordinator = shared.directory.coordinator();
    let asked = timeout_at(deadline, coordinator.topology(index.id, number)).await;
    let topology = asked.map_err(|_| {
        Error::unavailable(format!("topology {number} of index {} was not told in time", index.id))
    })??;
    shared.topologies.keep(index.id, &topology);
    Ok(topology)
}
