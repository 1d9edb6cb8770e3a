//! What all stores do alike.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proto::model::ids::{BucketId, Seqno, VbucketId};
use proto::rpc::mutation::MutationKind;
use proto::{Error, ErrorCode, Result};

use super::document_store::LogExtent;
use crate::source::mutation::Mutation;

/// What taking a vbucket back to a place does to its documents: for each id that was changed beyond it, the
/// mutation that it goes back to, if it had one. The vbucket's log is read in two parts, what goes first. Where
/// neither part says what a document was, purged entries may have.
pub(super) fn undone(
    beyond: impl Iterator<Item = Result<Arc<Mutation>>>,
    before: impl Iterator<Item = Result<Arc<Mutation>>>,
    vbucket: VbucketId,
    purged: Seqno,
) -> Result<BTreeMap<Arc<str>, Option<Arc<Mutation>>>> {
    let mut changed: BTreeMap<Arc<str>, Option<Arc<Mutation>>> =
        beyond.map(|mutation| Ok((Arc::clone(&mutation?.id), None))).collect::<Result<_>>()?;
    for mutation in before {
        let mutation = mutation?;
        if let Some(was) = changed.get_mut(&mutation.id) {
            *was = Some(mutation);
        }
    }
    if purged.0 > 0 && changed.values().any(Option::is_none) {
        return Err(versions_purged(vbucket, purged));
    }
    let upsert = |was: &Arc<Mutation>| was.kind == MutationKind::Upsert;
    Ok(changed.into_iter().map(|(id, was)| (id, was.filter(upsert))).collect())
}

/// Is the place to which a vbucket goes back still in its log, or its very beginning?
pub(super) fn check_rewind(vbucket: VbucketId, purged: Seqno, to: Seqno) -> Result<()> {
    if to.0 > 0 && to <= purged { Err(versions_purged(vbucket, purged)) } else { Ok(()) }
}

/// Is nothing here of a vbucket that is to be copied?
pub(super) fn check_empty(vbucket: VbucketId, extent: &LogExtent) -> Result<()> {
    let LogExtent { end, .. } = extent;
    match end.0 {
        0 => Ok(()),
        _ => Err(Error::internal(format!("vbucket {vbucket} is here already, up to seqno {end}"))),
    }
}

fn versions_purged(vbucket: VbucketId, purged: Seqno) -> Error {
    let text = format!(
        "vbucket {vbucket} cannot go back: its log was purged up to seqno {purged}, and with it what documents were"
    );
    Error::new(ErrorCode::OutOfOrder, text)
        .with_hint("begin the branch at seqno 0 and push everything again")
}

/// Looks up each id, as long as what is found is within a bound.
pub(super) fn get_each(
    ids: &[String],
    bytes_max: usize,
    get: impl Fn(&str) -> Result<Option<Bytes>>,
) -> Result<Vec<Option<Bytes>>> {
    let (mut found, mut bytes) = (Vec::with_capacity(ids.len()), 0);
    for id in ids {
        let document = get(id)?;
        bytes += document.as_ref().map_or(0, Bytes::len);
        if bytes > bytes_max {
            let message = format!("{} documents take over {bytes_max} bytes together", ids.len());
            return Err(Error::new(ErrorCode::OverLimit, message)
                .with_hint("ask for fewer documents at once"));
        }
        found.push(document);
    }
    Ok(found)
}

/// The error for a bucket that a store does not have.
pub(super) fn no_bucket(bucket: BucketId) -> Error {
    Error::new(ErrorCode::Unknown, format!("this projector keeps no bucket {bucket}"))
}
