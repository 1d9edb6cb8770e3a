//! The leading key parts of an entry, by which DISTINCT compares rows.

use super::part::skip_part;
use super::reader::{MISSING, NULL, mask};
use crate::Result;

/// The leading key parts of an entry, as encoded bytes.
#[derive(Clone, Copy, Debug)]
pub struct LeadingParts<'a> {
    bytes: &'a [u8],
    /// The offset of the last leading part in the entry, in bytes.
    last: usize,
    is_last_descending: bool,
}

impl<'a> LeadingParts<'a> {
    /// Returns the leading parts of an entry, as many as there are directions in `descending`.
    /// Returns an error if a part is unreadable.
    #[inline]
    pub fn of(entry: &'a [u8], descending: impl IntoIterator<Item = bool>) -> Result<Self> {
        let (mut len, mut last, mut is_last_descending) = (0, 0, false);
        for descending in descending {
            (last, is_last_descending) = (len, descending);
            len += skip_part(&entry[len..], descending)?;
        }
        Ok(Self { bytes: &entry[..len], last, is_last_descending })
    }

    /// Returns the bytes of the leading parts.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns true if SQL shows these parts and those of the previous row (`before`) as equal.
    /// They are equal, or differ only in the last part, which is MISSING in one and NULL in the
    /// other. In the order of entries, no other value lies between MISSING and NULL.
    #[inline]
    pub fn looks_equal_to(&self, before: &[u8]) -> bool {
        if self.bytes == before {
            return true;
        }
        let is_absent = |byte: u8| matches!(byte ^ mask(self.is_last_descending), MISSING | NULL);
        match (self.bytes[self.last..].split_first(), before.get(self.last..)) {
            (Some((last, [])), Some([other])) => {
                is_absent(*last)
                    && is_absent(*other)
                    && self.bytes[..self.last] == before[..self.last]
            }
            _ => false,
        }
    }
}

/// Returns an entry's bytes in which NULL replaces MISSING in the key parts with the numbers
/// `parts`, which are ascending. By these bytes, rows that differ only in NULL and MISSING are
/// adjacent.
pub fn replace_missing_by_null(
    entry: &[u8],
    descending: &[bool],
    parts: &[u16],
) -> Result<Vec<u8>> {
    let (mut read, mut at) = (entry.to_vec(), 0);
    let last = parts.last().map_or(0, |last| usize::from(*last) + 1);
    for (n, descending) in descending.iter().enumerate().take(last) {
        if parts.contains(&(n as u16)) && entry.get(at) == Some(&(MISSING ^ mask(*descending))) {
            read[at] = NULL ^ mask(*descending);
        }
        at += skip_part(&entry[at..], *descending)?;
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::super::part::encode_part;
    use super::*;
    use crate::value::tree::Value;

    #[test]
    fn missing_reads_like_null_in_the_last_part_alone() {
        let values = [
            Value::Missing,
            Value::Null,
            Value::Bool(false),
            Value::int(0),
            Value::from("a"),
            Value::float(0.1),
        ];
        for descending in [[false, false], [true, false], [false, true], [true, true]] {
            let entry = |pair: [&Value; 2]| {
                let mut entry = Vec::new();
                pair.iter().zip(descending).for_each(|(v, d)| encode_part(v, d, &mut entry));
                entry
            };
            let pairs = || values.iter().flat_map(|a| values.iter().map(move |b| [a, b]));
            for (one, other) in pairs().flat_map(|one| pairs().map(move |other| (one, other))) {
                let (bytes, before) = (entry(one), entry(other));
                let followed = [&bytes[..], b"id"].concat();
                let parts = LeadingParts::of(&followed, descending).expect("well formed");
                assert_eq!(parts.bytes(), bytes);
                let both_absent = one[1].is_absent() && other[1].is_absent();
                let alike = one[0] == other[0] && (one[1] == other[1] || both_absent);
                assert_eq!(parts.looks_equal_to(&before), alike, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn missing_is_read_as_null_in_the_named_parts_only() {
        let entry = |values: [Value; 3]| {
            let mut entry = Vec::new();
            let parts = values.iter().zip([false, true, false]);
            parts.for_each(|(value, descending)| encode_part(value, descending, &mut entry));
            [&entry[..], b"id"].concat()
        };
        let read = |values, parts: &[u16]| {
            replace_missing_by_null(&entry(values), &[false, true, false], parts)
                .expect("well formed")
        };
        let all = || [Value::Missing, Value::Missing, Value::Missing];
        assert_eq!(read(all(), &[]), entry(all()));
        assert_eq!(read(all(), &[1]), entry([Value::Missing, Value::Null, Value::Missing]));
        assert_eq!(read(all(), &[0, 2]), entry([Value::Null, Value::Missing, Value::Null]));
        let others = || [Value::from("a"), Value::Null, Value::int(1)];
        assert_eq!(read(others(), &[0, 1, 2]), entry(others()));
    }
}
