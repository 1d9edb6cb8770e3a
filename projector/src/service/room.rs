//! The bound on mutations that no epoch covers: which writes wait for room, and which need not
//! because an epoch waits for them.
//!
//! Three kinds of writes are never refused for lack of room, because the bucket's epochs wait for
//! them: a commit of which a part is committed, or whose transaction another owner waits for; the
//! mutations before the end of a missing part; and the beginning of a branch. The mutations of such
//! a transaction may take as much memory as one transaction, in addition to the limit of all open
//! transactions. An owner informs the other owners about its wait by its query. It queries the
//! owners of lost parts as well, since their producer may commit again at positions that no owner
//! knows. A new commit begins only if all its owners have room.
//!
//! Two cases remain in which an owner without room blocks the epochs: plain mutations of a branch
//! before a part that will be committed again on it, since no owner knows yet that this part
//! follows; and several such transactions whose mutations together exceed the additional memory.
//! `CANCEL TRANSACTION` ends such a wait.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proto::model::ids::{Seqno, VbucketId};
use proto::rpc::api::PushedCommitRequest;
use proto::{Error, Result};
use tokio::sync::oneshot;

use crate::projector::Projector;
use crate::source::push::check::CheckedPush;
use crate::source::view::bucket::Bucket;
use crate::source::writer::Work;
use documents::mutation::Mutation;

/// The longest time that a writer waits for the next stability timestamp: enough for an election.
const PUBLISHED_WAIT: Duration = Duration::from_secs(10);
impl Projector {
    /// Waits while too many mutations of a bucket are covered by no timestamp; a timestamp that
    /// covers more would exceed what an indexer can collect. Returns at once when `may_pass` is
    /// true, for writes that a timestamp waits for.
    pub(super) async fn wait_published(
        &self,
        bucket: &Bucket,
        may_pass: impl Fn() -> bool,
    ) -> Result<()> {
        let most = self.config.unpublished_bytes_max;
        if bucket.unpublished_bytes() < most {
            return Ok(());
        }
        let mut changed = bucket.watch();
        let room = async {
            while bucket.unpublished_bytes() >= most && !bucket.is_removed() && !may_pass() {
                if changed.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::time::timeout(PUBLISHED_WAIT, room).await.map_err(|_| {
            let (name, most) = (&bucket.info.name, most >> 10);
            let message =
                format!("bucket {name}: more than {most} KiB of writes wait for an epoch; nothing was written");
            let hint = match bucket.has_late_pushed() {
                true => "SHOW TRANSACTIONS names a commit of its producer that lacks parts",
                false => "no coordinator leads; writes continue when one does",
            };
            Error::unavailable(message).with_hint(hint)
        })
    }

    pub(super) async fn submit<T>(
        &self,
        bucket: Arc<Bucket>,
        bytes: usize,
        work: impl FnOnce(oneshot::Sender<Result<T>>) -> Work,
    ) -> Result<T> {
        self.wait_published(&bucket, || false).await?;
        self.queue(bucket, bytes, work).await
    }

    /// Waits for room for pushed mutations. A request with mutations that an open commit of the
    /// producer waits for does not wait; their number is bounded by the commit.
    pub(super) async fn wait_for_push(
        &self,
        bucket: &Bucket,
        mutations: &[CheckedPush],
    ) -> Result<()> {
        if mutations.is_empty() {
            return Ok(());
        }
        let places = places_of(mutations);
        self.wait_published(bucket, || brings_awaited(bucket, &places)).await
    }

    /// Waits for room for a commit of a producer. A commit that an epoch may wait for does not
    /// wait: some part of it is committed in this bucket, or the owner of another part waits for
    /// it.
    pub(super) async fn wait_for_commit(
        &self,
        bucket: &Bucket,
        request: &PushedCommitRequest,
    ) -> Result<()> {
        let PushedCommitRequest { commit, wanted, .. } = request;
        let may_pass =
            || bucket.is_open_pushed(commit.transaction) || bucket.awaits_commit(commit, wanted);
        self.wait_published(bucket, may_pass).await
    }
}

/// Returns the first and the last seqno of the pushed mutations of each vbucket.
fn places_of(mutations: &[CheckedPush]) -> BTreeMap<VbucketId, (Seqno, Seqno)> {
    let mut places = BTreeMap::new();
    for Mutation { vbucket, seqno, .. } in mutations.iter().map(|push| &push.mutation) {
        let of = places.entry(*vbucket).or_insert((*seqno, *seqno));
        *of = (of.0.min(*seqno), of.1.max(*seqno));
    }
    places
}

/// Returns true if an open commit of the producer waits for some of the mutations.
fn brings_awaited(bucket: &Bucket, places: &BTreeMap<VbucketId, (Seqno, Seqno)>) -> bool {
    let (durable, ends) = (bucket.durable(), bucket.awaited_ends());
    places.iter().any(|(vbucket, (first, last))| {
        let is_awaited = ends.get(vbucket).is_some_and(|end| first <= end);
        is_awaited && *last > durable.get(*vbucket).seqno
    })
}
