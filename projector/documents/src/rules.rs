//! Rules that all document stores share: which earlier versions are known, and when a rewind or a
//! copy is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proto::model::ids::{BucketId, Seqno, VbucketId};
use proto::rpc::mutation::MutationKind;
use proto::{Error, ErrorCode, Result};

use super::document_store::LogExtent;
use crate::mutation::Mutation;

/// Computes the documents of a vbucket at an earlier position. Returns each id that was changed
/// after the position, with its last mutation up to the position, if there is one. `beyond` has
/// the log entries after the position, and `before` those up to it. An error if an earlier
/// version may have been purged.
pub fn documents_before(
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

/// Returns an error if a vbucket cannot be rewound to the seqno `to`, because its log is purged
/// beyond it. A rewind to seqno 0 is always possible.
pub fn check_rewind(vbucket: VbucketId, purged: Seqno, to: Seqno) -> Result<()> {
    if to.0 > 0 && to <= purged { Err(versions_purged(vbucket, purged)) } else { Ok(()) }
}

/// Returns an error if a vbucket that is to be copied has any stored data.
pub fn check_empty(vbucket: VbucketId, extent: &LogExtent) -> Result<()> {
    let LogExtent { end, .. } = extent;
    match end.0 {
        0 => Ok(()),
        _ => {
            Err(Error::internal(format!("vbucket {vbucket} is stored already, up to seqno {end}")))
        }
    }
}

fn versions_purged(vbucket: VbucketId, purged: Seqno) -> Error {
    let text = format!(
        "vbucket {vbucket} cannot go back: its log was purged up to seqno {purged}, so earlier versions of its documents are gone"
    );
    Error::new(ErrorCode::OutOfOrder, text)
        .with_hint("begin the branch at seqno 0 and push everything again")
}

/// Looks up the document of each id. The error is `OverLimit` if the documents together exceed
/// `bytes_max`.
pub fn get_each(
    ids: &[String],
    bytes_max: usize,
    get: impl Fn(&str) -> Result<Option<Bytes>>,
) -> Result<Vec<Option<Bytes>>> {
    let (mut found, mut bytes) = (Vec::with_capacity(ids.len()), 0);
    for id in ids {
        let document = get(id)?;
        bytes += document.as_ref().map_or(0, Bytes::len);
        if bytes > bytes_max {
            let message = format!("{} documents together exceed {bytes_max} bytes", ids.len());
            return Err(Error::new(ErrorCode::OverLimit, message)
                .with_hint("ask for fewer documents at once"));
        }
        found.push(document);
    }
    Ok(found)
}

/// Returns the error for a bucket that a store does not have.
pub fn no_bucket(bucket: BucketId) -> Error {
    Error::new(ErrorCode::Unknown, format!("this projector does not have bucket {bucket}"))
}
