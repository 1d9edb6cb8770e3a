//! Validates the ids, documents and vbuckets of pushed mutations.

use std::sync::Arc;

use proto::model::bucket::BucketInfo;
use proto::model::ids::{Vbuuid, vbucket_of};
use proto::rpc::api::{PushMutation, check_document};
use proto::rpc::mutation::MutationKind;
use proto::value::key::check_id;
use proto::{Error, ErrorCode, Result};

use crate::source::check::WRITE_OVERHEAD_BYTES;
use documents::mutation::Mutation;

/// A pushed mutation whose id, vbucket and document are valid.
pub struct CheckedPush {
    /// The branch that the mutation belongs to.
    pub vbuuid: Vbuuid,
    /// The mutation with its position.
    pub mutation: Mutation,
}

/// Validates pushed mutations up to the first invalid one. Returns the valid ones, the error of
/// the invalid one, and the approximate size in bytes of all that were validated.
pub fn check_pushes(
    bucket: &BucketInfo,
    mutations: Vec<PushMutation>,
    document_bytes_max: usize,
) -> (Vec<CheckedPush>, Option<Error>, usize) {
    let mut bytes = 0;
    let mut checked = Vec::with_capacity(mutations.len());
    for mutation in mutations {
        bytes += WRITE_OVERHEAD_BYTES + mutation.document.len();
        match check_push(bucket, mutation, document_bytes_max) {
            Ok(mutation) => checked.push(mutation),
            Err(error) => return (checked, Some(error), bytes),
        }
    }
    (checked, None, bytes)
}

fn check_push(
    bucket: &BucketInfo,
    pushed: PushMutation,
    document_bytes_max: usize,
) -> Result<CheckedPush> {
    let PushMutation { vbucket, position, id, kind, document: json } = pushed;
    check_id(&id)?;
    let right = vbucket_of(&id, bucket.vbuckets);
    if right != vbucket {
        let message = format!(
            "document {id:?} belongs to vbucket {right} of {}, the request names vbucket {vbucket}",
            bucket.vbuckets
        );
        return Err(Error::new(ErrorCode::InvalidParameter, message)
            .with_hint("the vbucket is XXH3-64 of the id, seed 0, modulo the number of vbuckets"));
    }
    let place = (vbucket, position.seqno);
    let mutation = match kind {
        MutationKind::Upsert => {
            check_document(&id, &json, document_bytes_max)?;
            Mutation::new(place, Arc::from(id), kind, json)
        }
        MutationKind::Deletion => Mutation::new(place, Arc::from(id), kind, bytes::Bytes::new()),
    };
    Ok(CheckedPush { vbuuid: position.vbuuid, mutation })
}
