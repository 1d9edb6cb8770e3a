//! The beginning of a term (seed 003, "Index-Coordinator bootstrap"): what a new leader must hear before it is
//! *active*.
//!
//! | handshake | what it gives |
//! |---|---|
//! | with the replicas | the newest StateContext: Raft elects nobody who lacks a committed entry |
//! | with each indexer | its slices, which are compared with the topology ([`Leader::differences`]), and its high watermarks |
//! | with each bucket's projector | the failover logs, which are compared with the last epoch's cut ([`super::rollback`]) |
//!
//! A node that says nothing for `SILENT_MS_MAX` is not waited for. Until then commands that change the
//! membership wait; DDL and promotions do not, since they need nobody's word. The *restart timestamp* of a
//! bucket is the lowest high watermark of its indexers: where its source must be able to begin. Streams are
//! asked for by the indexers themselves, each from its own watermark, so nothing is restarted by it.
//!
//! What differs is repaired by the node that it is about: slices that the catalog does not have there are
//! dropped, slices that it has and the node has not are built.

use std::collections::BTreeMap;

use proto::model::cut::{Cut, Position};
use proto::model::ids::{BucketId, NodeId, SliceId, SliceNo, VbucketId};
use proto::model::index::IndexState;
use proto::model::node::Role;
use proto::rpc::api::SliceProgress;
use proto::rpc::command::Command;

use super::{Leader, SILENT_MS_MAX};
use crate::state::StateContext;

/// Is a command one that changes who is of the cluster?
pub fn changes_membership(state: &StateContext, command: &Command) -> bool {
    match command {
        // One that comes back elsewhere is whom the leader waits for.
        Command::RegisterNode(node) => state.node(node.id).is_none(),
        Command::RemoveNode { .. } | Command::DrainNode { .. } => true,
        _ => false,
    }
}

impl Leader {
    /// Has it heard of everybody whom it waits for? Once it has, the term stays active.
    pub fn is_active(&mut self, state: &StateContext, now_ms: u64) -> bool {
        if !self.active {
            self.active = now_ms.saturating_sub(self.since_ms) >= SILENT_MS_MAX
                || (self.indexers_are_heard(state) && self.sources_are_heard(state));
            if self.active {
                self.tell_what_it_found(state);
            }
        }
        self.active
    }

    fn indexers_are_heard(&self, state: &StateContext) -> bool {
        let mut indexers = state.nodes().filter(|node| node.role == Role::Indexer);
        indexers.all(|node| self.nodes.contains_key(&node.id))
    }

    fn tell_what_it_found(&self, state: &StateContext) {
        for difference in self.differences(state) {
            tracing::info!(%difference, "an indexer and the topology differ");
        }
        for (bucket, cut) in self.restart_timestamps(state) {
            let mutations: u64 = cut.iter().map(|(_, position)| position.seqno.0).sum();
            tracing::debug!(%bucket, mutations, "the restart timestamp");
        }
    }

    /// For each bucket with indexers that were heard of, the lowest high watermark of each vbucket.
    pub fn restart_timestamps(&self, state: &StateContext) -> Vec<(BucketId, Cut)> {
        let lowest = |bucket: BucketId, vbuckets: u16| {
            let of_bucket = self.nodes.values().flat_map(|heard| &heard.heartbeat.buckets);
            let heard: Vec<&Cut> = of_bucket
                .filter(|progress| progress.bucket == bucket)
                .map(|progress| &progress.high_watermark)
                .filter(|cut| cut.vbuckets() == vbuckets)
                .collect();
            let lowest = |vbucket: u16| {
                let at = heard.iter().map(|cut| cut.get(VbucketId(vbucket)));
                at.min_by_key(|position: &Position| position.seqno)
            };
            let positions: Option<Vec<Position>> = (0..vbuckets).map(lowest).collect();
            positions.map(|positions| (bucket, Cut::from_positions(positions)))
        };
        state.buckets().filter_map(|(id, bucket)| lowest(id, bucket.info.vbuckets)).collect()
    }

    /// Where what the indexers have told of their slices is not what the topology has on them, in words. A node
    /// of which nothing was heard is not judged.
    pub fn differences(&self, state: &StateContext) -> Vec<String> {
        let mut found = Vec::new();
        let has = |node: NodeId| -> Option<BTreeMap<SliceId, &SliceProgress>> {
            let heard = self.nodes.get(&node)?;
            Some(heard.heartbeat.slices.iter().map(|told| (told.slice, told)).collect())
        };
        for node in state.nodes().filter(|node| node.role == Role::Indexer) {
            let Some(mut slices) = has(node.id) else { continue };
            let indexes = state.indexes().map(|record| &record.info);
            for index in indexes.filter(|index| index.state != IndexState::Pending) {
                let (id, generation, name) = (index.id, index.generation, &index.spec.name);
                for slice in (0..index.topology.placement.len() as u16).map(SliceNo) {
                    let told = slices.remove(&SliceId { index: id, generation, slice });
                    let there = told.is_some();
                    let serves = index.state == IndexState::Maintenance;
                    if let Some(from) = told.filter(|_| serves).and_then(built_from) {
                        let what = format!("node {} builds slice {slice} of {name:?}", node.id);
                        found.push(format!("{what} anew, from {from}"));
                    }
                    if there && !index.may_keep(node.id, slice) {
                        found.push(format!(
                            "node {} has slice {slice} of {name:?}, which is not its own",
                            node.id
                        ));
                    }
                    if !there && index.topology.hosts(node.id, slice) {
                        found.push(format!("node {} lacks slice {slice} of {name:?}", node.id));
                    }
                }
            }
            let unknown = slices.into_keys();
            found.extend(
                unknown.map(|slice| format!("node {} has {slice}, which is unknown", node.id)),
            );
        }
        found
    }
}

/// What a slice is built from that is not readable.
fn built_from(told: &SliceProgress) -> Option<String> {
    match (told.floor, told.copied_from) {
        (Some(_), _) => None,
        (None, Some(copy)) => Some(format!("the copy on node {copy}")),
        (None, None) => Some("the source".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proto::model::history::{FailoverLogs, SourceHistory};
    use proto::model::homes::VbucketSet;
    use proto::model::ids::{Epoch, Generation, IndexId, Seqno, Vbuuid};
    use proto::rpc::api::{BucketProgress, Heartbeat};

    use super::*;
    use crate::leader::moves::MoveSettings;
    use crate::state::tests::{node, serving};

    fn says(leader: &mut Leader, node: u64, slices: &[u16], seqnos: [u64; 2]) {
        let progress = |slice: &u16| SliceProgress {
            slice: SliceId { index: IndexId(1), generation: Generation(1), slice: SliceNo(*slice) },
            floor: Some(Epoch(1)),
            entries: 0,
            bytes: 0,
            copied_from: None,
            trouble: None,
        };
        let at = |seqno| Position { vbuuid: Vbuuid(7), seqno: Seqno(seqno) };
        let bucket = BucketProgress {
            bucket: BucketId(1),
            high_watermark: Cut::from_positions(seqnos.map(at).to_vec()),
            applied: Epoch(1),
            durable: Epoch(1),
            queue_bytes: 0,
            queue_bytes_max: 1,
        };
        let heartbeat = Heartbeat {
            node: NodeId(node),
            buckets: vec![bucket],
            slices: slices.iter().map(progress).collect(),
            moves: vec![],
            leases: vec![],
            scans: None,
        };
        leader.hear(heartbeat, 10);
    }

    fn history() -> SourceHistory {
        let logs = FailoverLogs::new(vec![vec![(Vbuuid(7), 0)]; 2]);
        SourceHistory { durable: Cut::zero(2), logs: logs.into(), kept: VbucketSet::all(2) }
    }

    #[test]
    fn a_leader_is_active_when_it_has_heard_of_all_or_has_waited_long_enough() {
        let state = serving(0);
        let new = || Leader::new(1, 0, 20, MoveSettings::default());
        let mut leader = new();
        [20, 21, 22].into_iter().for_each(|node| says(&mut leader, node, &[], [0, 0]));
        let asked = leader.asking();
        leader.enquired(&state, BucketId(1), asked, history()).unwrap();
        leader.plan(&state, 15);
        assert!(!leader.is_active(&state, 20), "node 23 has said nothing");
        says(&mut leader, 23, &[], [0, 0]);
        assert!(leader.is_active(&state, 30));

        let mut leader = new();
        [20, 21, 22, 23].into_iter().for_each(|node| says(&mut leader, node, &[], [0, 0]));
        assert!(!leader.is_active(&state, 30), "the source has said nothing");
        assert!(leader.is_active(&state, SILENT_MS_MAX));
    }

    #[test]
    fn only_what_changes_the_membership_waits() {
        let state = serving(0);
        let known = (**state.node(NodeId(20)).unwrap()).clone();
        assert!(!changes_membership(&state, &Command::RegisterNode(known.clone())));
        let moved = proto::model::node::NodeInfo { address: "elsewhere:1".into(), ..known };
        assert!(!changes_membership(&state, &Command::RegisterNode(moved)));
        assert!(changes_membership(&state, &Command::RegisterNode(node(99, Role::Indexer))));
        assert!(changes_membership(&state, &Command::RemoveNode { node: NodeId(20) }));
        assert!(!changes_membership(&state, &crate::state::tests::create_bucket("x")));
    }

    #[test]
    fn differences_are_said_and_the_restart_timestamp_is_the_lowest_high_watermark() {
        let state = serving(0);
        let mut leader = Leader::new(1, 0, 20, MoveSettings::default());
        // Slices 0 and 2 are on node 20, 1 and 3 on node 21.
        says(&mut leader, 20, &[0, 1], [5, 2]);
        says(&mut leader, 21, &[1, 3], [4, 9]);
        let found = leader.differences(&state);
        assert_eq!(
            found,
            [
                "node 20 has slice 1 of \"i\", which is not its own",
                "node 20 lacks slice 2 of \"i\""
            ]
        );
        let mut heartbeat = leader.nodes[&NodeId(21)].heartbeat.clone();
        heartbeat.slices.iter_mut().for_each(|slice| slice.floor = None);
        heartbeat.slices[1].copied_from = Some(NodeId(22));
        leader.hear(heartbeat, 20);
        assert_eq!(
            leader.differences(&state)[2..],
            [
                "node 21 builds slice 1 of \"i\" anew, from the source",
                "node 21 builds slice 3 of \"i\" anew, from the copy on node 22"
            ]
        );
        let [(_, cut)] = &leader.restart_timestamps(&state)[..] else { panic!("one bucket") };
        assert_eq!(cut.iter().map(|(_, p)| p.seqno.0).collect::<Vec<_>>(), [4, 2]);
    }
}
