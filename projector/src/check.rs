//! Looks at what writers send before it waits for the log: ids, documents, vbuckets. In the caller's
//! task, so that many writers parse at the same time.

use std::sync::Arc;

use proto::model::bucket::BucketInfo;
use proto::model::ids::vbucket_of;
use proto::rpc::api::{PushMutation, Write, WriteKind};
use proto::rpc::mutation::MutationKind;
use proto::value::Value;
use proto::value::key::check_id;
use proto::{Error, ErrorCode, Result};

use crate::source::Mutation;
use crate::source::writer::{CheckedKind, CheckedPush, CheckedWrite};

/// What a write takes in the queue besides its document.
const WRITE_OVERHEAD_BYTES: usize = 200;

/// Checks all writes of a request, and says about how many bytes they are.
pub fn writes(writes: Vec<Write>, document_bytes_max: usize) -> Result<(Vec<CheckedWrite>, usize)> {
    let mut bytes = 0;
    let mut checked = Vec::with_capacity(writes.len());
    for Write { id, kind } in writes {
        check_id(&id)?;
        bytes += WRITE_OVERHEAD_BYTES;
        let kind = match kind {
            WriteKind::Insert(json) => {
                let value = document(&id, &json, document_bytes_max)?;
                bytes += json.len();
                CheckedKind::Insert(json, value)
            }
            WriteKind::Upsert(json) => {
                let value = document(&id, &json, document_bytes_max)?;
                bytes += json.len();
                CheckedKind::Upsert(json, value)
            }
            WriteKind::Delete => CheckedKind::Delete,
        };
        checked.push(CheckedWrite { id: Arc::from(id), kind });
    }
    Ok((checked, bytes))
}

fn document(id: &str, json: &[u8], bytes_max: usize) -> Result<Value> {
    if json.len() > bytes_max {
        let message =
            format!("document {id:?} takes {} bytes, the limit is {bytes_max}", json.len());
        return Err(Error::new(ErrorCode::OverLimit, message));
    }
    Value::parse_json(json).map_err(|error| error.context(format!("document {id:?}")))
}

/// Checks pushed mutations up to the first bad one, whose error comes back with those before it.
pub fn pushes(
    bucket: &BucketInfo,
    mutations: Vec<PushMutation>,
    document_bytes_max: usize,
) -> (Vec<CheckedPush>, Option<Error>, usize) {
    let mut bytes = 0;
    let mut checked = Vec::with_capacity(mutations.len());
    for mutation in mutations {
        bytes += WRITE_OVERHEAD_BYTES + mutation.document.len();
        match push(bucket, mutation, document_bytes_max) {
            Ok(mutation) => checked.push(mutation),
            Err(error) => return (checked, Some(error), bytes),
        }
    }
    (checked, None, bytes)
}

fn push(
    bucket: &BucketInfo,
    pushed: PushMutation,
    document_bytes_max: usize,
) -> Result<CheckedPush> {
    let PushMutation { vbucket, position, id, kind, document: json } = pushed;
    check_id(&id)?;
    let right = vbucket_of(&id, bucket.vbuckets);
    if right != vbucket {
        let message = format!(
            "document {id:?} belongs to vbucket {right} of {}, the producer says {vbucket}",
            bucket.vbuckets
        );
        return Err(Error::new(ErrorCode::InvalidParameter, message)
            .with_hint("the vbucket is XXH3-64 of the id, seed 0, modulo the number of vbuckets"));
    }
    let place = (vbucket, position.seqno);
    let mutation = match kind {
        MutationKind::Upsert => {
            let value = document(&id, &json, document_bytes_max)?;
            Mutation::new(place, Arc::from(id), kind, json).with_value(value)
        }
        MutationKind::Deletion => Mutation::new(place, Arc::from(id), kind, bytes::Bytes::new()),
    };
    Ok(CheckedPush { vbuuid: position.vbuuid, mutation })
}
