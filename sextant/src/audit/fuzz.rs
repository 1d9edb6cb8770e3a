//! Entry points for fuzzers: the file of facts.

use proto::model::catalog::Catalog;

use super::facts::Facts;
use super::facts_file::{ENVELOPE, decode, encode};

/// Reads the file audit.facts, first unchanged, then with its head, its length and its checksum corrected.
pub fn facts(data: &[u8]) {
    let _ = decode(data);
    let Some(body) = data.get(ENVELOPE.bytes_before()..) else { return };
    if let Ok(read) = decode(&ENVELOPE.seal(body)) {
        encode(&read).expect("facts that were read can be encoded");
    }
}

/// A file with the facts of a catalog.
pub fn sample_of_facts(catalog: &Catalog) -> Vec<u8> {
    encode(&Facts::of(catalog)).expect("facts can be encoded")
}
