//! Entry points for fuzzers of the contents of gRPC requests. The requests are already decoded by
//! the library.

use proto::grpc::{CommitPushRequest, DocumentWrite, PushRequest, ScanRequest};
use proto::model::cut::WritePosition;

use super::decode::{
    decode_branch, decode_commit_part, decode_mutation, decode_uncommitted, decode_write,
};
use super::query::parts;
use super::reply_form::Form;

/// Decodes the writes of a request.
pub fn writes(writes: Vec<DocumentWrite>) {
    writes.into_iter().map(decode_write).for_each(drop);
}

/// Decodes a producer's mutations.
pub fn push(request: PushRequest) {
    for mutation in request.mutations {
        let _ = decode_mutation(mutation.clone());
        let _ = decode_uncommitted(mutation);
    }
    request.branches.into_iter().map(decode_branch).for_each(drop);
}

/// Decodes a producer's commit.
pub fn commit_push(request: CommitPushRequest) {
    request.parts.into_iter().map(decode_commit_part).for_each(drop);
}

/// Decodes the clauses of a scan.
pub fn scan(request: &ScanRequest) {
    let _ = (Form::of(request), parts(request).parse());
    let positions = request.at_plus.split_whitespace().map(str::parse::<WritePosition>);
    for position in positions.flatten() {
        let again = position.to_string().parse::<WritePosition>();
        assert_eq!(again.as_ref(), Ok(&position), "a position is read as it is printed");
    }
}
