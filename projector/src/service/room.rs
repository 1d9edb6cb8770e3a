//! Bounds the mutations of a bucket that no epoch covers yet. A write above the bound waits for
//! free capacity, except if an epoch waits for that write.
//!
//! Three kinds of writes are never refused for lack of capacity, because the bucket's epochs may
//! wait for them: a commit of which some part is committed already, or whose transaction another
//! owner waits for; the mutations up to the end of a part that is missing; and the beginning of a
//! branch. The mutations of such a transaction may take as much memory as one transaction, in
//! addition to the limit of all open transactions. An owner of vbuckets that waits for parts of a
//! commit queries the other owners, and so informs them of its wait. It queries the owners of
//! lost parts as well, since the producer may commit again at positions that no owner knows. A
//! new commit begins only if all its owners have free capacity.
//!
//! Two cases remain in which an owner without free capacity blocks the epochs: plain mutations of
//! a branch before a part that will be committed again on it, since no owner knows yet that this
//! part follows; and several such transactions whose mutations together exceed the additional
//! memory. `CANCEL TRANSACTION` ends such a wait.

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

/// The longest time for which a write waits for the next stability timestamp: enough for an
/// election of the coordinators' leader.
const PUBLISHED_WAIT: Duration = Duration::from_secs(10);
impl Projector {
    /// Waits while too many mutations of a bucket are covered by no stability timestamp: the next
    /// timestamp would cover more than an indexer can collect. Returns at once when `may_pass` is
    /// true, for writes that a timestamp waits for.
    pub(super) async fn wait_for_timestamp(
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

    /// Queues a job for a bucket's writer, after waiting while too many mutations are covered by
    /// no timestamp.
    pub(super) async fn submit_when_covered<T>(
        &self,
        bucket: Arc<Bucket>,
        bytes: usize,
        work: impl FnOnce(oneshot::Sender<Result<T>>) -> Work,
    ) -> Result<T> {
        self.wait_for_timestamp(&bucket, || false).await?;
        self.queue(bucket, bytes, work).await
    }

    /// Waits until the bucket has free capacity for pushed mutations. Does not wait if an open
    /// commit of the producer waits for some of them; the size of that commit bounds them.
    pub(super) async fn wait_for_push(
        &self,
        bucket: &Bucket,
        mutations: &[CheckedPush],
    ) -> Result<()> {
        if mutations.is_empty() {
            return Ok(());
        }
        let places = seqno_ranges_of(mutations);
        self.wait_for_timestamp(bucket, || has_awaited_mutations(bucket, &places)).await
    }

    /// Waits until the bucket has free capacity for a commit of a producer. Does not wait if an
    /// epoch may wait for the commit: some part of it is committed in this bucket, or the owner
    /// of another part waits for it.
    pub(super) async fn wait_for_commit(
        &self,
        bucket: &Bucket,
        request: &PushedCommitRequest,
    ) -> Result<()> {
        let PushedCommitRequest { commit, wanted, .. } = request;
        let may_pass =
            || bucket.is_open_pushed(commit.transaction) || bucket.awaits_commit(commit, wanted);
        self.wait_for_timestamp(bucket, may_pass).await
    }
}

/// Returns, for each vbucket, the first and the last seqno of the pushed mutations.
fn seqno_ranges_of(mutations: &[CheckedPush]) -> BTreeMap<VbucketId, (Seqno, Seqno)> {
    let mut places = BTreeMap::new();
    for Mutation { vbucket, seqno, .. } in mutations.iter().map(|push| &push.mutation) {
        let of = places.entry(*vbucket).or_insert((*seqno, *seqno));
        *of = (of.0.min(*seqno), of.1.max(*seqno));
    }
    places
}

/// Returns true if an open commit of the producer waits for some of the mutations.
fn has_awaited_mutations(bucket: &Bucket, places: &BTreeMap<VbucketId, (Seqno, Seqno)>) -> bool {
    let (durable, ends) = (bucket.durable(), bucket.awaited_ends());
    places.iter().any(|(vbucket, (first, last))| {
        let is_awaited = ends.get(vbucket).is_some_and(|end| first <= end);
        is_awaited && *last > durable.get(*vbucket).seqno
    })
}
