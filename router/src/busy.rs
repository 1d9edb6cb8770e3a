//! The number of a router's requests in flight to each indexer, and the choice between two copies
//! of a slice by these numbers.
//!
//! Without load the first copy in the topology serves a slice, so the slice's blocks are in the
//! cache of only one node. If its node has many requests, the less busy of the first two ready
//! copies is queried ("the power of two choices", Mitzenmacher 2001). A router counts only its own
//! requests; that suffices, since each router balances its own load.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dashmap::DashMap;
use proto::model::ids::NodeId;

/// The number of requests in flight from which a node counts as busy. With fewer requests another
/// copy would be no faster, and a scan would use more nodes.
const BUSY: u32 = 8;

/// The number of requests in flight to each node.
#[derive(Default)]
pub(crate) struct RequestCounts(DashMap<NodeId, Arc<AtomicU32>>);

/// A guard that counts a request as in flight until it is dropped.
pub(crate) struct RequestGuard(Arc<AtomicU32>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl RequestCounts {
    /// Counts a request to a node as in flight, until the guard is dropped.
    pub fn count_request(&self, node: NodeId) -> RequestGuard {
        let known = self.0.get(&node).map(|count| Arc::clone(&count));
        let count = known.unwrap_or_else(|| Arc::clone(&self.0.entry(node).or_default()));
        count.fetch_add(1, Ordering::Relaxed);
        RequestGuard(count)
    }

    /// Returns the number of requests in flight to a node.
    pub fn requests(&self, node: NodeId) -> u32 {
        self.0.get(&node).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Returns true if a node has at least [`BUSY`] requests in flight.
    pub fn is_busy(&self, node: NodeId) -> bool {
        self.requests(node) >= BUSY
    }

    /// Returns true if the copy on the node `other` should be queried instead of the copy on
    /// `node`: `node` is busy, and `other` has less than half of its requests.
    pub fn should_query_other(&self, node: NodeId, other: NodeId) -> bool {
        let requests = self.requests(node);
        requests >= BUSY && 2 * self.requests(other) < requests
    }

    /// Removes nodes that are not in the catalog.
    pub fn retain(&self, is_known: impl Fn(NodeId) -> bool) {
        self.0.retain(|node, _| is_known(*node));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_less_busy_copy_is_queried() {
        let (busy, one, two) = (RequestCounts::default(), NodeId(1), NodeId(2));
        let mut all: Vec<_> = (1..BUSY).map(|_| busy.count_request(one)).collect();
        assert!(!busy.should_query_other(one, two) && !busy.is_busy(one));
        all.push(busy.count_request(one));
        assert!(busy.should_query_other(one, two) && !busy.should_query_other(two, one));
        let others: Vec<_> = (0..BUSY / 2).map(|_| busy.count_request(two)).collect();
        assert!(!busy.should_query_other(one, two), "the other one has half as many");
        drop(others);
        assert!(busy.should_query_other(one, two));
        all.clear();
        assert_eq!(busy.requests(one), 0);
        busy.retain(|node| node == two);
        assert_eq!(busy.0.len(), 1);
    }
}
