//! Numbers the commit of a producer's transaction ([`proto::model::pushed_commit`]).
//!
//! A commit has a part in each vbucket that it changes, and names the seqnos of the part. The
//! mutations of the part get these seqnos if they directly follow the end of the vbucket. A
//! vbucket that has its part already is skipped, so a commit whose answer was lost can be sent
//! again. If the repeated commit names other positions in other vbuckets, because its producer
//! has begun branches, the new positions replace the old ones.
//!
//! Each mutation gets a seqno, even if the document is changed again later in the commit. So the
//! producer alone can compute the positions, and an index gets the last change. All owners are
//! queried whether they can commit before the first one commits. The answer is not a promise: if
//! an owner then cannot commit its part, the producer pushes and commits that part again.

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

use super::order::{begin_first_branch, out_of_order_reason};
use crate::source::groups::ahead::Positions;
use crate::source::pending::PendingChanges;
use crate::source::view::bucket::Bucket;
use crate::source::view::large_commits::LargeCommit;
use crate::transactions::producer_transactions::{MutationsByVbucket, ProducerCommitGuard};
use documents::mutation::Mutation;

/// Numbers the requested parts of a producer's commit, or refuses all of them.
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
    let opens = must_record_open(&pending.commits, commit, !missing.is_empty());
    if opens {
        check_open_limit(&pending.bucket, &pending.commits, request)?;
    }
    for part in &missing {
        begin_first_branch(pending, part.vbucket, part.end.vbuuid);
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
        pending.add_transaction_step(TransactionEvent::Opened(OpenCommit::Pushed(commit.clone())));
    }
    let end = |vbucket: VbucketId| (vbucket, pending.next[usize::from(vbucket.0)]);
    Ok(PushReply { durable: request.wanted.iter().map(end).collect() })
}

/// Returns an error unless each requested part of a commit is committed already, or could be
/// numbered now. `kept` has the mutations of the transaction that are stored.
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
    match must_record_open(&commits, &request.commit, !missing.is_empty()) {
        true => check_open_limit(bucket, &commits, request),
        false => Ok(()),
    }
}

/// Returns the requested parts of a commit that are not in their vbuckets yet. An error if one of
/// them cannot be numbered.
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
        if !has_part(bucket, part, next[at], &branches[at])? {
            check_part_stored(bucket, (commit, part), kept)?;
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

/// Returns true if a vbucket has its part of a commit already, and false if the part would
/// directly follow the vbucket's end, which is the position `last`. Returns an error otherwise.
fn has_part(
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
    match out_of_order_reason(last, branches, first) {
        None => Ok(false),
        Some(what) => {
            let what = format!("vbucket {vbucket} of bucket {}: {what}", bucket.name);
            Err(Error::new(ErrorCode::OutOfOrder, what)
                .with_hint("push what the vbucket lacks before the transaction, then commit again"))
        }
    }
}

/// Returns an error unless the open transaction has stored all mutations of a part.
fn check_part_stored(
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

/// Returns true if a commit must be recorded as open, or changes the one that is recorded. A
/// commit in a single vbucket cannot be split, and is not recorded.
fn must_record_open(commits: &NewestCommits, commit: &PushedCommit, has_missing: bool) -> bool {
    commit.parts.len() > 1
        && match commits.find_pushed(commit.transaction) {
            Some(known) => known != commit,
            None => has_missing,
        }
}

/// Returns the error `TooBusy` if a bucket has as many open commits as it may have. A commit that
/// another owner waits for is accepted even then, because a refusal could block the commits of
/// all owners. The limit at the other owner bounds the number of such commits.
fn check_open_limit(
    bucket: &Bucket,
    commits: &NewestCommits,
    request: &PushedCommitRequest,
) -> Result<()> {
    let PushedCommitRequest { commit, wanted, .. } = request;
    let is_open = commits.find_pushed(commit.transaction).is_some();
    if is_open || commits.can_open(commit, &[]) {
        return Ok(());
    }
    // Commits that an epoch has leave the list with the next group.
    if commits.can_open(commit, &bucket.settled_ids()) {
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

/// Assigns the next seqno to a mutation of a transaction, if its vbucket does not have its part
/// of the commit yet.
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
