//! The order-preserving encoding of values and composite keys. Comparing the encoded bytes
//! (`memcmp`) gives the order of [`compare`](crate::value::tree::compare), key part by key part.
//! The bytes can be decoded to the value again.
//!
//! **A key part** is encoded as a tag, and then as the type needs:
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
//! A *magnitude* is the whole part in as few bytes as possible, big-endian. If the whole part
//! takes less than 8 bytes, there may be a fraction: 00 follows if there is none, otherwise 01
//! and the first 56 bits of the fraction. A double of at least 1 has at most 52 bits after the
//! point. Integers and doubles are so ordered exactly. A *double* is stored as its IEEE 754 bits,
//! big-endian, whose order is that of non-negative doubles.
//!
//! In strings 00 is escaped as 01 01, and 01 as 01 02. So the single byte 00 ends a string, and a
//! shorter string sorts before its continuations. Tags are above 00, so the same holds for
//! arrays.
//!
//! No encoded part is a prefix of another one, so parts can be concatenated. The bytes of a DESC
//! part are those of an ascending part, inverted. **An entry** is the parts of its key followed
//! by the raw bytes of the document's id, which needs no end mark because it is last.

mod compare;
mod leading;
mod number;
mod part;
mod reader;
mod text;

pub use compare::{EncodedConstant, part_as_bool, part_type_rank};
pub use leading::{LeadingParts, replace_missing_by_null};
pub use number::leading_int;
pub use part::{
    ID_BYTES_MAX, KEY_BYTES_MAX, check_id, decode_part, encode_entry, encode_part, id_offset,
    range_of_present_values, skip_part, successor,
};
pub use text::{write_number, write_part_text};
