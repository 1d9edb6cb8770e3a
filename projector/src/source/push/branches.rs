//! Branches that a producer begins.
//!
//! A producer that has lost a piece of its history says after which place its new branch begins; what the
//! vbucket has beyond is lost. The request may come twice, and the second time late: so each branch is begun
//! once, and those of which nothing is left are remembered for that.

use proto::model::cut::Position;
use proto::model::history::{BRANCHES_MAX, Branches, begin_branch};
use proto::model::ids::{Seqno, VbucketId};
use proto::{Error, ErrorCode, Result};

use crate::source::bucket::Bucket;
use crate::source::record::BucketRecord;
use crate::source::writer::Writer;

/// Branches that a producer has begun: what the vbuckets have beyond is lost, here too. Said again it
/// changes nothing.
pub fn begin_branches(
    writer: &Writer,
    bucket: &Bucket,
    begun: &[(VbucketId, Position)],
) -> Result<()> {
    let _agree = writer.agree();
    if bucket.is_removed() {
        return Err(bucket.removed_error());
    }
    let durable = bucket.durable();
    let mut record = bucket.record();
    let (mut ends, mut begins) = (Vec::new(), false);
    for (vbucket, at) in begun {
        if vbucket.0 < bucket.info.vbuckets && !record.keeping.takes(*vbucket) {
            return Err(bucket.not_home(*vbucket));
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
        bucket.publish(Vec::new(), Some(record.branches));
    } else {
        writer.store.rewind(&record, &ends)?;
        bucket.lose(record.branches, &ends);
    }
    bucket.give_up(record.given_up);
    (writer.moved)(bucket.info.id);
    Ok(())
}

/// Begins a branch of a vbucket, that ends at `end` and is `named` so often, in a record; false if it is on that
/// branch or was on it already. Whoever says it again, late, must not take back what has come since.
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
        return bad(ErrorCode::InvalidParameter, format!("the bucket has {}", info.vbuckets));
    };
    let given_up = record.given_up.get(&vbucket).into_iter().flatten();
    if let Some((_, began)) = known.iter().chain(given_up).find(|(other, _)| *other == vbuuid) {
        if *began == seqno.0 {
            return Ok(false);
        }
        let what = format!("{:x} is no new branch, it began after seqno {began}", vbuuid.0);
        return bad(ErrorCode::InvalidParameter, what);
    }
    if named > 1 {
        return bad(ErrorCode::InvalidParameter, "it is named twice".into());
    }
    if vbuuid.0 == 0 {
        return bad(ErrorCode::InvalidParameter, "a branch of zero is none".into());
    }
    if seqno > end {
        let what = format!("a branch after seqno {seqno}; the vbucket ends at {end}");
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
