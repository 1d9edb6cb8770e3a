//! Asks sources for their histories.

use std::collections::BTreeSet;
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

/// How often the leader looks for buckets that it has not heard of.
const ENQUIRE_EVERY: Duration = Duration::from_millis(250);

/// A projector that does not answer for this long is asked again later.
const ENQUIRE_TIMEOUT: Duration = Duration::from_secs(2);

/// Enquires the sources of which something strange was heard, or nothing, while this member leads; each by itself,
/// so that one that does not answer keeps nobody waiting.
pub(crate) async fn enquire_sources(inner: Arc<Member>) {
    let mut asked = FuturesUnordered::new();
    let mut busy = BTreeSet::new();
    loop {
        tokio::select! {
            biased;
            Some(bucket) = asked.next(), if !asked.is_empty() => {
                busy.remove(&bucket);
                continue;
            }
            () = inner.strange.notified() => {}
            () = tokio::time::sleep(ENQUIRE_EVERY) => {}
        }
        let now_ms = inner.now_ms();
        let found = {
            let mut leader = inner.leader();
            let view = inner.replica.view();
            leader.as_mut().map(|l| l.enquiries_due(&view.state, now_ms)).unwrap_or_default()
        };
        for bucket in found.into_iter().filter(|bucket| busy.insert(*bucket)) {
            let inner = &*inner;
            asked.push(async move {
                if let Err(error) = enquire(inner, bucket).await {
                    tracing::debug!(%bucket, %error, "enquire a source");
                }
                bucket
            });
        }
    }
}

/// Asks a source for its history.
pub(crate) async fn enquire(inner: &Member, bucket: BucketId) -> Result<SourceHistory> {
    let source = {
        let view = inner.replica.view();
        let gone = || Error::unavailable(format!("bucket {bucket} is gone"));
        let info = &view.state.bucket(bucket).ok_or_else(gone)?.info;
        source_of(&*inner.directory, info, |node| view.state.node(node).cloned())?
    };
    let asked = inner.leader().as_mut().map(Leader::asking);
    let answer = tokio::time::timeout(ENQUIRE_TIMEOUT, source.history(bucket)).await;
    let history = answer.map_err(|_| Error::unavailable("no answer in time"))??;
    {
        let mut leader = inner.leader();
        let view = inner.replica.view();
        if let (Some(leader), Some(asked)) = (leader.as_mut(), asked) {
            leader.enquired(&view.state, bucket, asked, history.clone())?;
        }
    }
    inner.wake.notify_one();
    Ok(history)
}
