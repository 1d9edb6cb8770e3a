//! Numbers the commit of a producer's transaction ([`proto::model::pushed_commit`]).
//!
//! The mutations of a vbucket get the seqnos after its end, if the commit names these. A vbucket
//! that has its part already is skipped, so a commit whose answer was lost can be sent again. If
//! the repeated commit names other positions in other vbuckets, because its producer has begun
//! branches, the new positions replace the old ones.
//!
//! There are as many seqnos as mutations, also if a document was changed twice: so the producer
//! alone can compute the positions, and an index gets the last change. All owners are queried
//! whether they can commit before the first one commits. The answer is no promise and need not be
//! one: missing parts are pushed and committed again.

use std::sync::Arc;

use proto::model::bucket::BucketInfo;
use proto::model::commits::{NewestCommits, TransactionEvent};
use proto::model::cut::Position;
use proto::model::history::{Branches, branch_of};
use proto::model::ids::{Seqno, VbucketId};
use proto::model::open_commit::OpenCommit;
use proto::model::pushed_commit::{OPEN_MAX, PushedCommit, PushedPart};
use proto::rpc::api::{PushReply, PushedCommitRequest};
use proto::rpc::mutation::CommitRange;
use proto::{Error, ErrorCode, Result};

use super::order::{disorder, name_branch};
use crate::source::groups::ahead::Positions;
use crate::source::pending::PendingChanges;
use crate::source::view::bucket::Bucket;
use crate::source::view::large_commits::LargeCommit;
use crate::transactions::producer_transactions::{MutationsByVbucket, ProducerCommitGuard};
use documents::mutation::Mutation;

/// Numbers the requested parts of a commit, or refuses all of them.
pub(in crate::source) fn commit(
    pending: &mut PendingChanges,
    (request, large_changes): (&PushedCommitRequest, u64),
    committing: &ProducerCommitGuard,
) -> Result<PushReply> {
    let commit = &request.commit;
    let elsewhere = |vbucket: &_| !pending.ownership.is_writable(*vbucket);
    if let Some(vbucket) = request.wanted.iter().find(elsewhere) {
        return Err(pending.bucket.not_owned(vbucket));
    }
    let (kept, ends) = (committing.kept(), (&pending.next[..], &pending.branches[..]));
    let missing = missing_parts(&pending.bucket.info, request, ends, &kept)?;
    let opens = opens(&pending.commits, commit, !missing.is_empty());
    if opens {
        check_room(&pending.bucket, &pending.commits, request)?;
    }
    for part in &missing {
        name_branch(pending, part.vbucket, part.end.vbuuid);
    }
    let mutations = committing.mutations.iter().map(Arc::as_ref);
    mutations.for_each(|mutation| number(pending, &missing, mutation));
    if committing.mutations.len() as u64 >= large_changes {
        let is_whole = kept.keys().all(|kept| missing.iter().any(|part| part.vbucket == *kept));
        let large = committing.open.filter(|_| is_whole).map(|(transaction, place)| LargeCommit {
            transaction,
            number: committing.number,
            place,
            ranges: missing.iter().map(range_of).collect(),
        });
        pending.large.extend(large.map(Arc::new));
    }
    if opens {
        pending.transaction(TransactionEvent::Opened(OpenCommit::Pushed(commit.clone())));
    }
    let end = |vbucket: VbucketId| (vbucket, pending.next[usize::from(vbucket.0)]);
    Ok(PushReply { durable: request.wanted.iter().map(end).collect() })
}

/// Returns an error unless the requested parts of a commit exist or can be numbered, according to
/// the published state. `kept` has the stored mutations of the transaction.
pub fn check(
    bucket: &Bucket,
    request: &PushedCommitRequest,
    kept: &MutationsByVbucket,
) -> Result<()> {
    let ownership = bucket.ownership();
    if let Some(vbucket) = request.wanted.iter().find(|vbucket| !ownership.is_writable(*vbucket)) {
        return Err(bucket.not_owned(vbucket));
    }
    let Positions { next, branches, commits } = bucket.published();
    let missing = missing_parts(&bucket.info, request, (&next, &branches), kept)?;
    match opens(&commits, &request.commit, !missing.is_empty()) {
        true => check_room(bucket, &commits, request),
        false => Ok(()),
    }
}

/// Returns the requested parts that their vbuckets lack. An error if one of them cannot be
/// numbered.
fn missing_parts(
    bucket: &BucketInfo,
    request: &PushedCommitRequest,
    (next, branches): (&[Position], &[Branches]),
    kept: &MutationsByVbucket,
) -> Result<Vec<PushedPart>> {
    let PushedCommitRequest { commit, wanted, .. } = request;
    let mut missing = Vec::new();
    for part in commit.parts.iter().filter(|part| wanted.contains(part.vbucket)) {
        let at = usize::from(part.vbucket.0);
        if !is_there(bucket, part, next[at], &branches[at])? {
            check_kept(bucket, (commit, part), kept)?;
            missing.push(*part);
        }
    }
    let unnamed = kept.keys().find(|vbucket| commit.part_of(**vbucket).is_none());
    match unnamed.filter(|_| !missing.is_empty()) {
        None => Ok(missing),
        Some(vbucket) => {
            let what = format!(
                "transaction {} of the producer of bucket {} has mutations of vbucket {vbucket}, which its commit does not name",
                commit.transaction, bucket.name
            );
            Err(Error::new(ErrorCode::InvalidParameter, what))
        }
    }
}

/// Returns true if a vbucket that ends at the position `last` has a part of a commit; false if the
/// part would follow at the end; an error otherwise.
fn is_there(
    bucket: &BucketInfo,
    part: &PushedPart,
    last: Position,
    branches: &Branches,
) -> Result<bool> {
    let PushedPart { vbucket, after, end } = *part;
    if last.seqno >= end.seqno && branch_of(branches, end.seqno) == end.vbuuid {
        return Ok(true);
    }
    let first = Position { vbuuid: end.vbuuid, seqno: Seqno(after.0 + 1) };
    match disorder(last, branches, first) {
        None => Ok(false),
        Some(what) => {
            let what = format!("vbucket {vbucket} of bucket {}: {what}", bucket.name);
            Err(Error::new(ErrorCode::OutOfOrder, what)
                .with_hint("push what the vbucket lacks before the transaction, then commit again"))
        }
    }
}

/// Returns an error unless all mutations of a part are stored in the open transaction.
fn check_kept(
    bucket: &BucketInfo,
    (commit, part): (&PushedCommit, &PushedPart),
    kept: &MutationsByVbucket,
) -> Result<()> {
    let has = kept.get(&part.vbucket).copied().unwrap_or_default();
    let (transaction, vbucket, named) = (commit.transaction, part.vbucket, part.mutations());
    if has == named {
        return Ok(());
    }
    let what = format!(
        "transaction {transaction} of the producer of bucket {} has {has} mutations of vbucket {vbucket} here, its commit names {named}",
        bucket.name
    );
    match has > named {
        true => Err(Error::new(ErrorCode::InvalidParameter, what)),
        false => Err(Error::new(ErrorCode::NoTransaction, what).with_hint(
            "push the mutations of the transaction in this vbucket again and commit again: the projector was restarted, gave the transaction up, or has taken the vbucket over",
        )),
    }
}

/// True if a commit becomes an open one, or changes the one that is open. A commit of one vbucket cannot be split.
fn opens(commits: &NewestCommits, commit: &PushedCommit, has_missing: bool) -> bool {
    commit.parts.len() > 1
        && match commits.find_pushed(commit.transaction) {
            Some(known) => known != commit,
            None => has_missing,
        }
}

/// Checks that a bucket can take another open commit; `TooBusy` at the limit. A commit that another
/// owner waits for is always accepted, because refusing it could block the commits of all owners.
/// The number of such commits is bounded by the limit at the other owner.
fn check_room(
    bucket: &Bucket,
    commits: &NewestCommits,
    request: &PushedCommitRequest,
) -> Result<()> {
    let PushedCommitRequest { commit, wanted, .. } = request;
    let is_open = commits.find_pushed(commit.transaction).is_some();
    if is_open || commits.has_room_for(commit, &[]) {
        return Ok(());
    }
    // Commits that an epoch has leave the list with the next group.
    if commits.has_room_for(commit, &bucket.settled_ids()) {
        return Ok(());
    }
    if bucket.awaits_commit(commit, wanted) {
        return Ok(());
    }
    let name = &bucket.info.name;
    let what = format!(
        "bucket {name} has as many commits of its producer that no epoch has as there may be: {OPEN_MAX}, or fewer with many vbuckets"
    );
    Err(Error::new(ErrorCode::TooBusy, what).with_hint(
        "try again; SHOW TRANSACTIONS names those that wait for a part, and SHOW NODES shows whether a coordinator leads",
    ))
}

/// Assigns a seqno to a mutation of a transaction, if its vbucket lacks the part.
fn number(pending: &mut PendingChanges, missing: &[PushedPart], mutation: &Mutation) {
    let Mutation { vbucket, id, kind, document, .. } = mutation;
    let Ok(part) = missing.binary_search_by_key(vbucket, |part| part.vbucket) else { return };
    let last = &mut pending.next[usize::from(vbucket.0)];
    let seqno = Seqno(last.seqno.0 + 1);
    *last = Position { vbuuid: missing[part].end.vbuuid, seqno };
    pending.add(Mutation::new((*vbucket, seqno), Arc::clone(id), *kind, document.clone()));
}

fn range_of(part: &PushedPart) -> CommitRange {
    CommitRange { vbucket: part.vbucket, after: part.after, to: part.end.seqno }
}
