//! Entry points for fuzzers: continuation tokens, which clients send, and the file of the stored
//! catalog.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proto::model::catalog::Catalog;
use proto::model::index::IndexInfo;
use proto::rpc::scan::ScanRequest;
use xxhash_rust::xxh3::xxh3_64;

use crate::Token;
use crate::offline::file::{FILE, StoredKnowledge};
use crate::scan::resume;

/// Decodes a token: `data` as text, then as the body of a token with a correct version and
/// checksum. The index and the request in the body are also replaced by `index` and `request`, so
/// that the further checks run too.
pub fn token(index: &IndexInfo, request: &ScanRequest, data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = resume::decode_for_request(text, index, request);
    }
    let mut bytes = vec![1];
    bytes.extend_from_slice(data);
    bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
    let Ok(token) = Token::decode(&URL_SAFE_NO_PAD.encode(&bytes)) else { return };
    let Ok(request_hash) = resume::fingerprint(request) else { return };
    let (of, generation) = (index.id, index.generation);
    let fitting = Token { index: of, generation, request_hash, ..token };
    let text = fitting.encode().expect("a token that was read can be encoded");
    let accepted = resume::decode_for_request(&text, index, request);
    assert_eq!(accepted.as_ref(), Ok(&fitting), "a token is read as it is printed");
}

/// Decodes the file CATALOG with a stored catalog: first `data` unchanged, then with a correct
/// head, length and checksum.
pub fn stored_catalog(data: &[u8]) {
    FILE.fuzz(data);
}

/// Returns a file CATALOG with a catalog, as a starting point for a fuzzer.
pub fn sample_of_stored_catalog(catalog: Catalog) -> Vec<u8> {
    let kept = StoredKnowledge {
        heard_unix_ms: 1,
        moment: 2,
        floors: Default::default(),
        catalog: catalog.into(),
    };
    FILE.encode(&kept).unwrap_or_default()
}
