//! Entry points for fuzzers of the file audit.facts.

use proto::model::catalog::Catalog;

use super::facts::Facts;
use super::facts_file::FILE;

/// Reads `data` as the file audit.facts, first unchanged, then with its head, length and checksum
/// corrected.
pub fn facts(data: &[u8]) {
    FILE.fuzz(data);
}

/// Returns the bytes of a file audit.facts with the facts of a catalog.
pub fn sample_of_facts(catalog: &Catalog) -> Vec<u8> {
    FILE.encode(&Facts::of(catalog)).expect("facts can be encoded")
}
