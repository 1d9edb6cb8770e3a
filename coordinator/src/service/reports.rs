//! SYNC and heartbeats, on their way to the leader.

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
        // One bad bucket does not keep the others from being heard.
        told.map(|told| leader.sync(&view.state, report.projector, told, now_ms))
            .fold(Ok(()), Result::and)?;
        if leader.is_curious() {
            member.strange.notify_one();
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
            return Err(Error::new(ErrorCode::Unknown, what).with_hint("register it first"));
        }
        Ok(leader.hear(heartbeat, now_ms))
    })?;
    if news {
        member.wake.notify_one();
    }
    Ok(())
}
