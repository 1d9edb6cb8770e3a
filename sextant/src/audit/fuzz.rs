//! Entry points for fuzzers: the file of facts.

use proto::model::catalog::Catalog;

use super::facts::Facts;
use super::facts_file::FILE;

/// Reads the file audit.facts, first unchanged, then with its head, its length and its checksum corrected.
pub fn facts(data: &[u8]) {
    FILE.fuzz(data);
}

/// A file with the facts of a catalog.
pub fn sample_of_facts(catalog: &Catalog) -> Vec<u8> {
    FILE.encode(&Facts::of(catalog)).expect("facts can be encoded")
}
