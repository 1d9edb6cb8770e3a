//! JSON values: the tree, numbers, text, paths, and the order-preserving key encoding.

mod json;
pub mod key;
mod number;
pub mod path;
mod spelling;
mod tree;

pub use json::{CheckedField, check_json, check_json_with_field, text, write_json_text};
pub use number::Number;
pub use path::Step;
pub use spelling::is_number;
pub use tree::{DOCUMENT_BYTES_MAX, MAX_DEPTH, MISSING, NULL, Object, Value, compare};
