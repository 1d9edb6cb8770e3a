//! Forwards SYNC and heartbeats to the leader, or records them if this member leads.

use proto::rpc::api::{Heartbeat, SyncReport};
use proto::{Error, ErrorCode, Result};

use crate::leader::driver::member::Member;

pub(super) async fn sync(member: &Member, report: SyncReport) -> Result<()> {
    if let Some(leader) = member.forward_to()? {
        return leader.sync(report).await;
    }
    let now_ms = member.now_ms();
    member.as_leader(|leader| {
        let view = member.replica.view();
        let told = report.buckets.into_iter();
        // An invalid report of one bucket does not suppress the others.
        told.map(|told| leader.sync(&view.state, report.projector, told, now_ms))
            .fold(Ok(()), Result::and)?;
        if leader.has_suspects() {
            member.suspect_found.notify_one();
        }
        Ok(())
    })?;
    member.wake.notify_one();
    Ok(())
}

pub(super) async fn heartbeat(member: &Member, heartbeat: Heartbeat) -> Result<()> {
    if let Some(leader) = member.forward_to()? {
        return leader.heartbeat(heartbeat).await;
    }
    let now_ms = member.now_ms();
    let news = member.as_leader(|leader| {
        if member.replica.view().state.node(heartbeat.node).is_none() {
            let what = format!("node {} is not registered", heartbeat.node);
            return Err(Error::new(ErrorCode::Unknown, what).with_hint("register the node first"));
        }
        Ok(leader.record_heartbeat(heartbeat, now_ms))
    })?;
    if news {
        member.wake.notify_one();
    }
    Ok(())
}
