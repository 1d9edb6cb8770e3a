//! Comparison of encoded key parts with constants, without decoding the parts.
//!
//! The encoded bytes are in the order of the values, and no encoded part is a prefix of another.
//! So the first byte that differs from the constant's bytes lies within the part. The part need
//! not be extracted from its entry, because the bytes after it have no influence. A DESC part is
//! compared with the inverted bytes of the constant, and the order is reversed.
//!
//! Bytes that do not begin with a valid tag count as MISSING.

use std::cmp::Ordering;

use super::part::encode_part;
use super::reader::{
    ARRAY, FALSE, MISSING, NULL, NUMBER_FIRST, NUMBER_LAST, OBJECT, STRING, TRUE, mask,
};
use crate::value::tree::Value;

/// A constant, encoded like the key parts with which it is compared.
#[derive(Clone, Debug)]
pub struct EncodedConstant {
    bytes: Box<[u8]>,
    type_rank: u8,
    is_inverted: bool,
}

impl EncodedConstant {
    /// Encodes a constant for the comparison with ascending or descending parts.
    pub fn new(value: &Value, descending: bool) -> Self {
        let mut bytes = Vec::new();
        encode_part(value, descending, &mut bytes);
        Self {
            bytes: bytes.into(),
            type_rank: value.type_rank(),
            is_inverted: mask(descending) != 0,
        }
    }

    /// Returns the rank of the constant's type ([`Value::type_rank`]).
    pub fn type_rank(&self) -> u8 {
        self.type_rank
    }

    /// Returns the length of the encoded constant in bytes. A comparison reads at most so many
    /// bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Compares the key part at the beginning of `bytes` with the constant. The types may differ.
    pub fn order_of(&self, bytes: &[u8]) -> Ordering {
        let order = bytes[..self.bytes.len().min(bytes.len())].cmp(&self.bytes);
        if self.is_inverted { order.reverse() } else { order }
    }
}

/// Returns the rank of the type ([`Value::type_rank`]) of the key part at the beginning of
/// `bytes`.
pub fn part_type_rank(bytes: &[u8], descending: bool) -> u8 {
    match tag(bytes, descending) {
        NULL => 1,
        FALSE | TRUE => 2,
        NUMBER_FIRST..=NUMBER_LAST => 3,
        STRING => 4,
        ARRAY => 5,
        OBJECT => 6,
        _ => 0,
    }
}

/// Returns the boolean that is the key part at the beginning of `bytes`; `None` if the part has
/// another type.
pub fn part_as_bool(bytes: &[u8], descending: bool) -> Option<bool> {
    match tag(bytes, descending) {
        FALSE => Some(false),
        TRUE => Some(true),
        _ => None,
    }
}

fn tag(bytes: &[u8], descending: bool) -> u8 {
    bytes.first().map_or(MISSING, |byte| byte ^ mask(descending))
}
