//! A model of Sextant's behaviour, by which tests judge its answers.
//!
//! The model shares no code with the product: values are those of `serde_json` (MISSING is `None`),
//! and expressions, three-valued logic, order and text output are the model's own. There are no
//! vbuckets, epochs, slices or encodings: a bucket is a map, and an index is computed from it on
//! each request.
//!
//! - [`json`]: the order of values, numbers by their mathematical value, and text.
//! - [`expr`]: expressions and predicates; [`text`]: their SQL.
//! - [`index`]: a definition and the entries of a document.
//! - [`scan`]: a SELECT over an index and its answer.
//! - [`generate`]: all of them at random, from one seed.

pub mod expr;
pub mod generate;
pub mod index;
pub mod json;
pub mod scan;
pub mod text;

use std::collections::BTreeMap;

use json::Json;

/// A bucket of documents.
#[derive(Clone, Debug, Default)]
pub struct Bucket {
    /// The documents by id.
    pub documents: BTreeMap<String, Document>,
}

/// A document of the model.
#[derive(Clone, Debug)]
pub struct Document {
    /// The JSON text as it was written, in any spelling.
    pub text: String,
    /// The value of the text.
    pub value: Json,
}
