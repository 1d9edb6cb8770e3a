//! The pushes of the producer.

use std::sync::Arc;
use std::time::Duration;

use proto::model::bucket::BucketInfo;
use proto::model::cut::Position;
use proto::model::history::SourceHistory;
use proto::model::ids::{BucketId, Seqno, VbucketId};
use proto::rpc::api::{PushMutation, PushRequest};
use proto::{Error, ErrorCode, Result};
use tokio::time::{sleep, timeout};

use super::{PUSH, Producer, cannot_go_back};
use crate::sim::cluster::client::ClientBackend;
use crate::sim::effects::Effects;

/// The number of attempts to continue after a pause, ten per second.
const GO_ON_TRIES: u32 = 100;

impl Producer {
    /// Pushes all mutations that are not known to be stored; false if some may still not be stored.
    /// An error means that the producer cannot continue.
    pub async fn push_all(
        &self,
        backend: &ClientBackend,
        bucket: &Arc<BucketInfo>,
    ) -> Result<bool> {
        let mut all = true;
        for vbucket in (0..bucket.vbuckets).map(VbucketId) {
            if self.commits().is_held(vbucket) {
                all = false;
                continue;
            }
            for _ in 0..8 {
                let feed_is_behind = {
                    let feed = &self.feeds()[usize::from(vbucket.0)];
                    feed.unsure || feed.taken < feed.log.len()
                };
                if !feed_is_behind {
                    break;
                }
                match timeout(PUSH, self.push(backend, bucket, vbucket)).await {
                    Ok(Ok(())) => {}
                    pushed => {
                        self.feeds()[usize::from(vbucket.0)].unsure = true;
                        match pushed {
                            Ok(Err(error)) if cannot_go_back(&error) => self.begin_again(vbucket),
                            Ok(Err(error))
                                if !error.is_retry() && error.code != ErrorCode::OutOfOrder =>
                            {
                                return Err(error);
                            }
                            _ => {}
                        }
                    }
                }
            }
            let feed = &self.feeds()[usize::from(vbucket.0)];
            all &= !feed.unsure && feed.taken == feed.log.len();
        }
        Ok(all)
    }

    /// Pushes the remaining mutations after the last pause, so that no epoch lacks a part of a
    /// commit.
    pub async fn go_on(&self, backend: &ClientBackend, bucket: &Arc<BucketInfo>) {
        let is_paused = self.commits().end_pauses();
        for _ in 0..if is_paused { GO_ON_TRIES } else { 0 } {
            if matches!(self.push_all(backend, bucket).await, Ok(true)) {
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    async fn push(
        &self,
        backend: &ClientBackend,
        bucket: &Arc<BucketInfo>,
        vbucket: VbucketId,
    ) -> Result<()> {
        let at = usize::from(vbucket.0);
        let (unsure, losses, acknowledged) = {
            let feed = &self.feeds()[at];
            (feed.unsure, feed.losses, feed.acknowledged())
        };
        let there = match unsure {
            true => Some(backend.source(bucket)?.history(bucket.id).await?),
            false => None,
        };
        if self.feeds()[at].losses != losses {
            return Ok(());
        }
        let lacks = |there| self.feeds()[at].lacks(vbucket, acknowledged, there);
        if let Some(what) = there.as_ref().and_then(lacks) {
            return Err(Error::internal(what));
        }
        let request = self.request(bucket.id, vbucket, there);
        let end = request.mutations.last().map(|mutation| mutation.position);
        if request.branches.is_empty() && end.is_none() {
            return Ok(());
        }
        if let Some(end) = end {
            let effects = Effects::of_process();
            self.commits().note_plain(vbucket, end.seqno, |commit| effects.is_open(commit));
        }
        backend.writer(bucket)?.push(request).await?;
        let mut feeds = self.feeds();
        let feed = &mut feeds[at];
        if feed.losses != losses {
            feed.unsure = true;
            return Ok(());
        }
        // The source may have failed over in the meantime.
        if let Some(end) = end.filter(|end| feed.position(end.seqno.0) == *end) {
            feed.taken = feed.taken.max((end.seqno.0 as usize).min(feed.log.len()));
            feed.is_there(end.seqno.0);
            // The projector that accepts mutations is the one that continues the vbucket.
            feed.lacks_behind = None;
        }
        Ok(())
    }

    fn request(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        there: Option<SourceHistory>,
    ) -> PushRequest {
        let (mut feeds, mut random) = (self.feeds(), self.random());
        let feed = &mut feeds[usize::from(vbucket.0)];
        let (branch, mut range) = match there {
            Some(there) => {
                let branches = there.logs.get(vbucket).cloned().unwrap_or_default();
                let end = there.durable.get(vbucket);
                let (branch, range) = feed.next_push(&branches, end.seqno.0);
                if branch.is_none() && range.is_empty() {
                    feed.is_there(range.start as u64);
                }
                // After this push the projector's state is known again, unless more branches follow.
                feed.taken = range.start;
                feed.unsure = range.end < feed.log.len();
                (branch, range)
            }
            None => (None, feed.taken..feed.log.len()),
        };
        // Some mutations are sent twice.
        if branch.is_none() && random.u8(..8) == 0 {
            range.start -= random.usize(..=2.min(range.start));
        }
        let mutations = feed.log[range].iter().map(|mutation| PushMutation {
            vbucket,
            position: feed.position(mutation.seqno.0),
            id: mutation.id.to_string(),
            kind: mutation.kind,
            document: mutation.document.clone(),
        });
        let branches =
            branch.map(|(vbuuid, began)| (vbucket, Position { vbuuid, seqno: Seqno(began) }));
        PushRequest {
            bucket,
            branches: branches.into_iter().collect(),
            mutations: mutations.collect(),
        }
    }
}
