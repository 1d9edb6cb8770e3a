//! Reader and writer of JSON text (RFC 8259), with exact [`Number`](crate::value::number::Number)s and the limits of
//! documents. This is our own code because the doubles of libraries lose integers spelled `9007199254740993.0`, and a
//! value's canonical form must not depend on its spelling.

mod parse;
mod write;

pub use write::text;
