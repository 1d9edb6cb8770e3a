//! Entry points for fuzzers of gRPC requests, after the library has decoded them.

use proto::grpc::{CommitPushRequest, DocumentWrite, PushRequest, ScanRequest};
use proto::model::cut::WritePosition;

use super::decode::{decode_branch, decode_part, decode_push, decode_push_in, decode_write};
use super::query::parts;
use super::reply_form::Form;

/// Decodes the writes of a request.
pub fn writes(writes: Vec<DocumentWrite>) {
    writes.into_iter().map(decode_write).for_each(drop);
}

/// Decodes the mutations of a producer.
pub fn push(request: PushRequest) {
    for mutation in request.mutations {
        let _ = decode_push(mutation.clone());
        let _ = decode_push_in(mutation);
    }
    request.branches.into_iter().map(decode_branch).for_each(drop);
}

/// Decodes the commit of a producer.
pub fn commit_push(request: CommitPushRequest) {
    request.parts.into_iter().map(decode_part).for_each(drop);
}

/// Decodes a scan.
pub fn scan(request: &ScanRequest) {
    let _ = (Form::of(request), parts(request).parse());
    let positions = request.at_plus.split_whitespace().map(str::parse::<WritePosition>);
    for position in positions.flatten() {
        let again = position.to_string().parse::<WritePosition>();
        assert_eq!(again.as_ref(), Ok(&position), "a position is read as it is printed");
    }
}
