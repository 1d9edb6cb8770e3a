//! Forwards SYNC and heartbeats to the leader, or records them if this member leads.

use proto::rpc::api::{Heartbeat, HeartbeatReply, RoleReport, SyncReply, SyncReport};
use proto::{Error, ErrorCode, Result};

use crate::leader::driver::member::Member;
use crate::state::nodes::node_id_taken_error;

/// Handles SYNC: records the reports of a projector, or forwards them to the leader.
pub(super) async fn sync(member: &Member, report: SyncReport) -> Result<SyncReply> {
    if let Some(leader) = member.forward_to()? {
        return leader.sync(report).await;
    }
    let now_ms = member.now_ms();
    let reply = member.as_leader(|leader| {
        let view = member.replica.view();
        let ids: Vec<_> = report.buckets.iter().map(|reported| reported.bucket).collect();
        let reported = report.buckets.into_iter();
        leader.record_left_out(report.projector, report.left_out);
        leader.record_halved(report.projector, report.halved);
        // An invalid report of one bucket does not suppress the others.
        reported
            .map(|reported| {
                leader.record_sync_report(&view.state, report.projector, reported, now_ms)
            })
            .fold(Ok(()), Result::and)?;
        if leader.has_suspects() {
            member.suspect_found.notify_one();
        }
        let durable = |id| Some((id, leader.durable_epoch(&view.state, id)?));
        Ok(SyncReply { durable: ids.into_iter().filter_map(durable).collect() })
    })?;
    member.wake.notify_one();
    Ok(reply)
}

/// Handles a heartbeat: records it, or forwards it to the leader.
pub(super) async fn heartbeat(member: &Member, mut heartbeat: Heartbeat) -> Result<HeartbeatReply> {
    if let Some(leader) = member.forward_to()? {
        return leader.heartbeat(heartbeat).await;
    }
    let now_ms = member.now_ms();
    let (news, reply) = member.as_leader(|leader| {
        let view = member.replica.view();
        if view.state.cluster().is_none() {
            // The cluster begins with the next process that joins. This heartbeat's knowledge is of another cluster.
            heartbeat.catalog_cas = 0;
            if let RoleReport::Router(report) = &mut heartbeat.report {
                report.leases = Vec::new();
            }
        }
        let Some(known) = view.state.node(heartbeat.node) else {
            leader.record_stranger(&heartbeat);
            let what = format!("node {} is not registered", heartbeat.node);
            return Err(Error::new(ErrorCode::Unknown, what).with_hint("register the node first"));
        };
        let holder = view.state.proof(heartbeat.node);
        let is_other = holder.is_some() && holder != heartbeat.proof;
        if is_other || known.role != heartbeat.report.role() {
            return Err(node_id_taken_error(heartbeat.node, Some(known)));
        }
        leader.check_same_process(&view.state, &heartbeat, now_ms)?;
        let news = leader.record_heartbeat(heartbeat, now_ms);
        let silent = leader.silent_nodes(&view.state, now_ms);
        Ok((news, HeartbeatReply { silent, moment: view.state.position() }))
    })?;
    if news {
        member.wake.notify_one();
    }
    Ok(reply)
}
