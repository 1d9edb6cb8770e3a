//! Counts a router's requests in flight to each indexer, and chooses which copy of a slice to
//! query.
//!
//! Without load the first copy in the topology serves a slice, so its blocks are in one node's
//! cache. If its node has many requests, the less busy of the first two ready copies is queried
//! ("the power of two choices", Mitzenmacher 2001). A router counts only its own requests; that
//! suffices, since each router balances its own load.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dashmap::DashMap;
use proto::model::ids::NodeId;

/// The number of requests in flight from which a node counts as busy. Below it, another copy would
/// be no faster, and a scan would use more nodes.
const BUSY: u32 = 8;

/// The number of requests in flight, by node.
#[derive(Default)]
pub(crate) struct Busy(DashMap<NodeId, Arc<AtomicU32>>);

/// A guard of a request in flight, which ends the request when it is dropped.
pub(crate) struct UnderWay(Arc<AtomicU32>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Busy {
    /// Counts a request to a node as in flight, until the guard is dropped.
    pub fn begin(&self, node: NodeId) -> UnderWay {
        let known = self.0.get(&node).map(|count| Arc::clone(&count));
        let count = known.unwrap_or_else(|| Arc::clone(&self.0.entry(node).or_default()));
        count.fetch_add(1, Ordering::Relaxed);
        UnderWay(count)
    }

    /// Returns the number of requests in flight to a node.
    pub fn requests(&self, node: NodeId) -> u32 {
        self.0.get(&node).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Returns true if a node has at least [`BUSY`] requests in flight.
    pub fn is_busy(&self, node: NodeId) -> bool {
        self.requests(node) >= BUSY
    }

    /// Returns true if the copy on `other` should be queried instead of the copy on `node`: the
    /// node is busy, and `other` has less than half of its requests.
    pub fn gives_way(&self, node: NodeId, other: NodeId) -> bool {
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
    fn a_busy_node_gives_way_to_one_with_less_than_half_of_its_requests() {
        let (busy, one, two) = (Busy::default(), NodeId(1), NodeId(2));
        let mut all: Vec<_> = (1..BUSY).map(|_| busy.begin(one)).collect();
        assert!(!busy.gives_way(one, two) && !busy.is_busy(one));
        all.push(busy.begin(one));
        assert!(busy.gives_way(one, two) && !busy.gives_way(two, one));
        let others: Vec<_> = (0..BUSY / 2).map(|_| busy.begin(two)).collect();
        assert!(!busy.gives_way(one, two), "the other one has half as many");
        drop(others);
        assert!(busy.gives_way(one, two));
        all.clear();
        assert_eq!(busy.requests(one), 0);
        busy.retain(|node| node == two);
        assert_eq!(busy.0.len(), 1);
    }
}
