//! The order-preserving encoding of values and composite keys: `memcmp` order of the bytes is the
//! order of [`compare`](crate::value::tree::compare), part by part, and the bytes decode to the value again.
//!
//! **A part** is a tag and what the type needs:
//!
//! | tag | value | then |
//! |---|---|---|
//! | 10 11 12 13 | MISSING, NULL, false, true | nothing |
//! | 20 | number below -2^63, -Infinity | double, inverted |
//! | 21 … 28 | negative, magnitude ≥ 1 whose whole part takes 8 … 1 bytes | magnitude, inverted |
//! | 29 | number in (-1, 0) | double, inverted |
//! | 2a | 0 | nothing |
//! | 2b | number in (0, 1) | double |
//! | 2c … 33 | positive, ≥ 1, whose whole part takes 1 … 8 bytes | magnitude |
//! | 34 | number above 2^64 - 1, Infinity | double |
//! | 40 | string | UTF-8, escaped, and 00 |
//! | 50 | array | its elements as parts, and 00 |
//! | 60 | object | number of fields (4 bytes), then name (as a string without tag) and value of each |
//!
//! A *magnitude* is the whole part in as few bytes as hold it, big-endian; where that is under 8 bytes
//! there may be a fraction, so 00 follows, or 01 and the fraction's first 56 bits: a double at or
//! above 1 has 52 bits after the point at most. Integers and doubles so interleave exactly. A *double* is stored as its
//! IEEE 754 bits, big-endian, whose order is that of non-negative doubles.
//!
//! In strings 00 is escaped as 01 01, and 01 as 01 02, so that the one byte 00 ends a string and a
//! shorter string sorts before its continuations. Tags are above 00, so an array sorts likewise.
//!
//! No encoding of a part is a prefix of another's, so parts concatenate, and a DESC part is the same
//! bytes inverted. **An entry** is the parts of its key followed by the raw bytes of the document's id,
//! which as the last needs no end.

mod compare;
mod leading;
mod number;
mod part;
mod reader;
mod text;

pub use compare::{EncodedConstant, part_as_bool, part_type_rank};
pub use leading::{LeadingParts, missing_as_null};
pub use number::leading_int;
pub use part::{
    ID_BYTES_MAX, KEY_BYTES_MAX, check_id, decode_part, encode_entry, encode_part, id_offset,
    skip_part, successor, values_known,
};
pub use text::{write_number, write_part_text};
