//! The metrics of transactions: those of projectors, and those of the late-commit stores of
//! indexers.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::labels::{ByNode, ByNodeCounter, ByNodeGauge};

/// The labels of metrics with a value for each node and reason.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByNodeAndReason {
    node: u64,
    reason: &'static str,
}

/// Registers the metrics of the projectors' transactions.
pub(super) fn register(registry: &mut Registry, projectors: &[projector::Status]) {
    let (open, bytes) = (ByNodeGauge::default(), ByNodeGauge::default());
    let oldest = Family::<ByNode, Gauge<f64, AtomicU64>>::default();
    let (prepared, joint_open) = (ByNodeGauge::default(), ByNodeGauge::default());
    let joint_oldest = Family::<ByNode, Gauge<f64, AtomicU64>>::default();
    let (committed, conflicts) = (ByNodeCounter::default(), ByNodeCounter::default());
    let rolled_back = Family::<ByNodeAndReason, Counter<u64, AtomicU64>>::default();
    for projector::Status { node, transactions } in projectors {
        let (node, label) = (node.0, ByNode { node: node.0 });
        open.get_or_create(&label).set(transactions.open as i64);
        bytes.get_or_create(&label).set(transactions.bytes as i64);
        oldest.get_or_create(&label).set(transactions.oldest_age_ms as f64 / 1000.0);
        prepared.get_or_create(&label).set(transactions.prepared as i64);
        joint_open.get_or_create(&label).set(transactions.joint_open as i64);
        let age_s = transactions.joint_oldest_age_ms as f64 / 1000.0;
        joint_oldest.get_or_create(&label).set(age_s);
        committed.get_or_create(&label).inc_by(transactions.committed);
        conflicts.get_or_create(&label).inc_by(transactions.conflicts);
        for (reason, count) in
            [("abort", transactions.aborted), ("forgotten", transactions.forgotten)]
        {
            rolled_back.get_or_create(&ByNodeAndReason { node, reason }).inc_by(count);
        }
    }
    registry.register("transactions_open", "Open transactions with changes", open);
    let help = "Changes of open transactions";
    registry.register_with_unit("transactions_changes", help, Unit::Bytes, bytes);
    let help = "Time since the first write of the oldest open transaction";
    registry.register_with_unit("transactions_oldest_age", help, Unit::Seconds, oldest);
    let help = "Transactions whose changes wait for the decision of another bucket";
    registry.register("transactions_prepared", help, prepared);
    let help = "Commits over several buckets that no epoch has, counted in each bucket";
    registry.register("joint_commits_open", help, joint_open);
    let help = "Age of the oldest prepared transaction or open commit over several buckets";
    registry.register_with_unit("joint_commits_oldest_age", help, Unit::Seconds, joint_oldest);
    registry.register("transactions_committed", "Commits of changes", committed);
    let help = "Commits that were refused because a document had changed";
    registry.register("transactions_conflicts", help, conflicts);
    let help = "Transactions that were rolled back";
    registry.register("transactions_rolled_back", help, rolled_back);
}

/// Registers the metrics of the indexers' late-commit stores.
pub(super) fn register_late_commit(registry: &mut Registry, indexers: &[indexer::Status]) {
    let [open, bytes, disk_bytes] = std::array::from_fn(|_| ByNodeGauge::default());
    let [spilled, given_up, entered, ahead] = std::array::from_fn(|_| ByNodeCounter::default());
    for indexer in indexers {
        let label = ByNode { node: indexer.node.0 };
        open.get_or_create(&label).set(indexer.late_commit.open as i64);
        bytes.get_or_create(&label).set(indexer.late_commit.bytes as i64);
        disk_bytes.get_or_create(&label).set(indexer.late_commit.disk_bytes as i64);
        spilled.get_or_create(&label).inc_by(indexer.late_commit.spilled);
        given_up.get_or_create(&label).inc_by(indexer.late_commit.given_up);
        entered.get_or_create(&label).inc_by(indexer.late_commit.entered);
        ahead.get_or_create(&label).inc_by(indexer.late_commit.entered_prepared);
    }
    registry.register("late_commit_open", "Open transactions that the node knows", open);
    let help = "Memory of the changes of open transactions";
    registry.register_with_unit("late_commit", help, Unit::Bytes, bytes);
    let help = "Files of the changes of open transactions";
    registry.register_with_unit("late_commit_disk", help, Unit::Bytes, disk_bytes);
    let help = "Pieces of open transactions that were written to disk";
    registry.register("late_commit_spilled", help, spilled);
    let help = "Transactions whose changes had no room on the node";
    registry.register("late_commit_given_up", help, given_up);
    let help = "Large commits whose changes were on the node before, and were not sent again";
    registry.register("late_commit_entered", help, entered);
    let help =
        "Those of them that were written ahead of their epoch, while the projector committed";
    registry.register("late_commit_entered_prepared", help, ahead);
}
