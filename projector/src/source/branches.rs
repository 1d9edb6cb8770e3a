//! Branches that a producer begins.
//!
//! A producer that has lost a piece of its history says after which place its new branch begins; what the
//! vbucket has beyond is lost. The request may come twice, and the second time late: so each branch is begun
//! once, and those of which nothing is left are remembered for that.

use proto::model::cut::Position;
use proto::model::history::{BRANCHES_MAX, Branches, begin_branch};
use proto::model::ids::{Seqno, VbucketId};
use proto::{Error, ErrorCode, Result};

use super::BucketRecord;

/// Begins a branch of a vbucket, that ends at `end` and is `named` so often, in a record; false if it is on that
/// branch or was on it already. Whoever says it again, late, must not take back what has come since.
pub(super) fn stage_branch(
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
