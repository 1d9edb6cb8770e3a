//! Queries sources for their histories (failover logs and the end of the durable mutations).

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use proto::client::source::source_of;
use proto::model::history::SourceHistory;
use proto::model::ids::BucketId;
use proto::{Error, Result};

use super::member::Member;
use crate::leader::Leader;

/// The interval between two searches for buckets whose sources must be queried.
const QUERY_EVERY: Duration = Duration::from_millis(250);

/// The time limit of a query. A projector that does not answer is queried again later.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);

/// Queries the sources that the leader suspects of a change of history or that send no reports,
/// while this member leads. Queries run concurrently, so that a slow source delays no other.
pub(crate) async fn query_sources(member: Arc<Member>) -> Infallible {
    let mut asked = FuturesUnordered::new();
    let mut busy = BTreeSet::new();
    loop {
        tokio::select! {
            biased;
            Some(bucket) = asked.next(), if !asked.is_empty() => {
                busy.remove(&bucket);
                continue;
            }
            () = member.suspect_found.notified() => {}
            () = tokio::time::sleep(QUERY_EVERY) => {}
        }
        let now_ms = member.now_ms();
        let found = {
            let mut leader = member.leader();
            let view = member.replica.view();
            leader.as_mut().map(|l| l.queries_due(&view.state, now_ms)).unwrap_or_default()
        };
        for bucket in found.into_iter().filter(|bucket| busy.insert(*bucket)) {
            let member = &*member;
            asked.push(async move {
                if let Err(error) = query_history(member, bucket).await {
                    tracing::debug!(%bucket, %error, "a query of a source failed");
                }
                bucket
            });
        }
    }
}

/// Queries a source for its history.
pub(crate) async fn query_history(member: &Member, bucket: BucketId) -> Result<SourceHistory> {
    let source = {
        let view = member.replica.view();
        let gone = || Error::unavailable(format!("bucket {bucket} was dropped"));
        let info = &view.state.bucket(bucket).ok_or_else(gone)?.info;
        source_of(&*member.directory, info, |node| view.state.node(node).cloned())?
    };
    let asked = member.leader().as_mut().map(Leader::begin_query);
    let answer = tokio::time::timeout(QUERY_TIMEOUT, source.history(bucket)).await;
    let history = answer.map_err(|_| Error::unavailable("the source did not answer in time"))??;
    {
        let mut leader = member.leader();
        let view = member.replica.view();
        if let (Some(leader), Some(asked)) = (leader.as_mut(), asked) {
            leader.record_history(&view.state, bucket, asked, history.clone())?;
        }
    }
    member.wake.notify_one();
    Ok(history)
}
