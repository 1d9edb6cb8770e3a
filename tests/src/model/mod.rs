//! A plain model of what Sextant promises, to judge its answers by. It shares no code with the
//! product: values are those of `serde_json` (MISSING is `None`), and it has its own expressions,
//! its own three-valued logic, its own order and its own text output. It knows nothing of vbuckets,
//! epochs, slices or encodings: a bucket is a map, an index is computed from it whenever it is asked.
//!
//! - [`json`]: the order of values, numbers by their mathematical value, and text.
//! - [`expr`]: expressions and predicates, and what they mean; [`text`]: how SQL writes them.
//! - [`index`]: a definition and the entries of a document.
//! - [`scan`]: a SELECT over an index and the answer to it.
//! - [`generate`]: all of them at random, from one seed.

pub mod expr;
pub mod generate;
pub mod index;
pub mod json;
pub mod scan;
pub mod text;

use std::collections::BTreeMap;

use json::Json;

/// A bucket: each document as it was sent, and what it means.
#[derive(Clone, Debug, Default)]
pub struct Bucket {
    /// By document id.
    pub documents: BTreeMap<String, Document>,
}

/// A document.
#[derive(Clone, Debug)]
pub struct Document {
    /// As it was written, in one of JSON's many spellings.
    pub text: String,
    /// What it says.
    pub value: Json,
}
