//! Decoders of ingest requests, and encoders of their replies.

use proto::env::Env;
use proto::grpc::VbucketPosition;
use proto::grpc::document_write::Kind;
use proto::model::cut::Position;
use proto::model::ids::{Seqno, VbucketId, Vbuuid};
use proto::model::pushed_commit::PushedPart;
use proto::rpc::api;
use proto::rpc::mutation::MutationKind;
use proto::value::DOCUMENT_BYTES_MAX;
use proto::{Error, ErrorCode, Result};

/// The number of bytes of documents up to which they are checked on the thread of the call, which
/// takes less than a millisecond.
const INLINE_BYTES_MAX: usize = 64 << 10;

/// Encodes a position for a reply.
pub(super) fn position((vbucket, position): (VbucketId, Position)) -> VbucketPosition {
    VbucketPosition {
        vbucket: vbucket.0.into(),
        vbuuid: position.vbuuid.0,
        seqno: position.seqno.0,
    }
}

/// Decodes a write of a document. Returns an error if the kind of the write is missing.
pub(super) fn decode_write(write: proto::grpc::DocumentWrite) -> Result<api::Write> {
    let kind = match write.kind {
        Some(Kind::Insert(document)) => api::WriteKind::Insert(document),
        Some(Kind::Upsert(document)) => api::WriteKind::Upsert(document),
        Some(Kind::Delete(true)) => api::WriteKind::Delete,
        _ => {
            let message = format!("document {:?} needs one of insert, upsert and delete", write.id);
            return Err(Error::new(ErrorCode::InvalidParameter, message));
        }
    };
    Ok(api::Write { id: write.id, kind })
}

/// Decodes and checks the writes of a request. Long documents are checked on a blocking thread.
pub(super) async fn decode_writes(
    env: &Env,
    writes: Vec<proto::grpc::DocumentWrite>,
) -> Result<api::CheckedWrites> {
    let writes = writes.into_iter().map(decode_write).collect::<Result<Vec<_>>>()?;
    let bytes = |write: &api::Write| match &write.kind {
        api::WriteKind::Insert(document) | api::WriteKind::Upsert(document) => document.len(),
        api::WriteKind::Delete => 0,
    };
    let is_long = writes.iter().map(bytes).sum::<usize>() > INLINE_BYTES_MAX;
    let check = move || api::CheckedWrites::new(writes, DOCUMENT_BYTES_MAX);
    match is_long {
        true => env.blocking(check).await,
        false => check(),
    }
}

/// Decodes a mutation that a producer pushes with its position in the vbucket.
pub(super) fn decode_mutation(mutation: proto::grpc::PushMutation) -> Result<api::PushMutation> {
    if mutation.position != 0 {
        let message = format!("document {:?} has a position, and no transaction", mutation.id);
        return Err(Error::new(ErrorCode::InvalidParameter, message));
    }
    let vbucket = u16::try_from(mutation.vbucket).map_err(|_| {
        let message = format!("document {:?}: vbucket {}", mutation.id, mutation.vbucket);
        Error::new(ErrorCode::InvalidParameter, message)
    })?;
    Ok(api::PushMutation {
        vbucket: VbucketId(vbucket),
        position: Position { vbuuid: Vbuuid(mutation.vbuuid), seqno: Seqno(mutation.seqno) },
        id: mutation.id,
        kind: match mutation.document {
            Some(_) => MutationKind::Upsert,
            None => MutationKind::Deletion,
        },
        document: mutation.document.unwrap_or_default(),
    })
}

/// Decodes a mutation of a producer's transaction. It has no position before the commit.
pub(super) fn decode_uncommitted(mutation: proto::grpc::PushMutation) -> Result<api::PushMutation> {
    if mutation.vbuuid != 0 || mutation.seqno != 0 || mutation.position == 0 {
        let message = format!(
            "document {:?}: a mutation of a transaction has a position above 0, and no vbuuid and seqno",
            mutation.id
        );
        return Err(Error::new(ErrorCode::InvalidParameter, message)
            .with_hint("CommitPush names vbuuid and seqno"));
    }
    let seqno = mutation.position;
    decode_mutation(proto::grpc::PushMutation { seqno, position: 0, ..mutation })
}

/// Decodes the description of the mutations that a commit has in one vbucket.
pub(super) fn decode_commit_part(part: proto::grpc::PushedPart) -> Result<PushedPart> {
    let proto::grpc::PushedPart { vbucket, vbuuid, seqno, mutations } = part;
    let bad = |what: String| Error::new(ErrorCode::InvalidParameter, what);
    let number = u16::try_from(vbucket)
        .map_err(|_| bad(format!("a part names vbucket {vbucket}, which is out of range")))?;
    let after = seqno.checked_sub(mutations).ok_or_else(|| {
        bad(format!("vbucket {vbucket}: {mutations} mutations cannot end at seqno {seqno}"))
    })?;
    let end = Position { vbuuid: Vbuuid(vbuuid), seqno: Seqno(seqno) };
    Ok(PushedPart { vbucket: VbucketId(number), after: Seqno(after), end })
}

/// Decodes the position at which a branch begins.
pub(super) fn decode_branch(branch: VbucketPosition) -> Result<(VbucketId, Position)> {
    let vbucket = u16::try_from(branch.vbucket).map_err(|_| {
        let message = format!("a branch names vbucket {}, which is out of range", branch.vbucket);
        Error::new(ErrorCode::InvalidParameter, message)
    })?;
    let (vbuuid, seqno) = (Vbuuid(branch.vbuuid), Seqno(branch.seqno));
    Ok((VbucketId(vbucket), Position { vbuuid, seqno }))
}
