//! Branches that a producer begins.
//!
//! A producer that has lost a part of its history begins a new branch, and names the position
//! after which the branch begins. The vbucket then loses its mutations after that position. The
//! request may arrive twice, the second time late, and must not remove newer mutations. So each
//! branch is begun only once, and branches of which no mutations remain are remembered for that
//! reason.
//!
//! A vbucket can be rewound only to a position that its log still has, or to zero.

use proto::model::cut::Position;
use proto::model::history::{BRANCHES_MAX, Branches, begin_branch};
use proto::model::ids::{Seqno, VbucketId};
use proto::{Error, ErrorCode, Result};

use crate::source::view::bucket::Bucket;
use crate::source::writer::Writer;
use documents::record::BucketRecord;

/// Begins new branches of a producer. Each vbucket in `begun` loses its mutations after the
/// position of its new branch. A repeated request changes nothing.
pub fn begin_branches(
    writer: &Writer,
    bucket: &Bucket,
    begun: &[(VbucketId, Position)],
) -> Result<()> {
    let _gate = bucket.gate.close();
    if bucket.is_removed() {
        return Err(bucket.removed_error());
    }
    let durable = bucket.durable();
    let mut record = bucket.record();
    let (mut ends, mut begins) = (Vec::new(), false);
    for (vbucket, at) in begun {
        if vbucket.0 < bucket.info.vbuckets && !record.ownership.is_writable(*vbucket) {
            return Err(bucket.not_owned(*vbucket));
        }
        let named = begun.iter().filter(|(other, _)| other == vbucket).count();
        let end = durable.get(*vbucket).seqno;
        if stage_branch(&mut record, (*vbucket, *at), end, named)? {
            begins = true;
            ends.extend((at.seqno < end).then_some((*vbucket, at.seqno)));
        }
    }
    if !begins {
        return Ok(());
    }
    if ends.is_empty() {
        writer.store.put_records(std::slice::from_ref(&record))?;
        bucket.publish(bucket.to_publish(&[]), Some(record.branches), (&[], Vec::new()));
    } else {
        writer.store.rewind(&record, &ends)?;
        bucket.lose_history(record.branches, &ends);
    }
    bucket.set_given_up(record.given_up);
    (writer.on_change)(bucket.info.id);
    Ok(())
}

/// Adds a new branch of a vbucket to a record. `end` is the last seqno of the vbucket, and
/// `named` is how often the request names the vbucket. Returns false if the vbucket has or had
/// that branch already: a late repetition must not remove newer mutations.
fn stage_branch(
    record: &mut BucketRecord,
    (vbucket, Position { vbuuid, seqno }): (VbucketId, Position),
    end: Seqno,
    named: usize,
) -> Result<bool> {
    let info = &record.info;
    let bad = |code, what: String| {
        Err(Error::new(code, format!("vbucket {vbucket} of bucket {}: {what}", info.name)))
    };
    let Some(known) = record.branches.get_mut(usize::from(vbucket.0)) else {
        return bad(
            ErrorCode::InvalidParameter,
            format!("the bucket has {} vbuckets", info.vbuckets),
        );
    };
    let given_up = record.given_up.get(&vbucket).into_iter().flatten();
    if let Some((_, began)) = known.iter().chain(given_up).find(|(other, _)| *other == vbuuid) {
        if *began == seqno.0 {
            return Ok(false);
        }
        let what = format!("branch {:x} is not new, it began after seqno {began}", vbuuid.0);
        return bad(ErrorCode::InvalidParameter, what);
    }
    if named > 1 {
        return bad(ErrorCode::InvalidParameter, "the request names the vbucket twice".into());
    }
    if vbuuid.0 == 0 {
        return bad(ErrorCode::InvalidParameter, "vbuuid must not be 0".into());
    }
    if seqno > end {
        let what = format!("a branch cannot begin after seqno {seqno}, the vbucket ends at {end}");
        return bad(ErrorCode::OutOfOrder, what);
    }
    let before = known.clone();
    begin_branch(known, vbuuid, seqno);
    let gone = before.into_iter().filter(|branch| !known.contains(branch));
    let older = record.given_up.remove(&vbucket).unwrap_or_default();
    let given_up: Branches = gone.chain(older).take(BRANCHES_MAX).collect();
    if !given_up.is_empty() {
        record.given_up.insert(vbucket, given_up);
    }
    Ok(true)
}
