//! Labels that several modules of metrics use.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// The label of metrics that exist for each node.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct ByNode {
    pub(super) node: u64,
}

/// A gauge with a value for each node.
pub(super) type ByNodeGauge = Family<ByNode, Gauge>;
/// A counter with a value for each node.
pub(super) type ByNodeCounter = Family<ByNode, Counter<u64, AtomicU64>>;
