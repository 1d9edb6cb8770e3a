//! Samples the documents of a bucket. The sample shows users which fields the documents have, and
//! determines where the ranges of an index are split.
//!
//! The documents are stored in the order of their ids, and the value of an expression may
//! correlate with the ids (a time, a counter). So documents are read at many places of that
//! order. The places are spread evenly between the first and the last id. For that, ids are read
//! as numbers whose digits are the characters that occur in ids: so a counter in digits or a hash
//! in hexadecimal digits is sampled evenly. A first pass, with places spread over all bytes,
//! finds these characters.

use std::collections::BTreeSet;

use bytes::Bytes;
use proto::Result;
use proto::model::ids::BucketId;

use crate::source::{DocumentStore, StoredDocument};

/// The number of places at which documents are read.
const PLACES: u64 = 64;
/// The number of documents that are read at each place.
const AT_EACH: usize = 16;
/// The maximum number of bytes that are determined of the last id.
const DEPTH_MAX: usize = 24;
/// The approximate bytes of documents that are read at each place.
const BYTES_AT_EACH: usize = 16 << 10;

/// Returns documents from all over the range of a bucket's ids, without duplicates.
pub(super) fn sample(store: &dyn DocumentStore, bucket: BucketId) -> Result<Vec<Bytes>> {
    let read = |after: Option<&str>| -> Result<Vec<StoredDocument>> {
        let mut found = store.snapshot_after(bucket, after)?.next_chunk(BYTES_AT_EACH)?;
        found.truncate(AT_EACH);
        Ok(found)
    };
    let sampled = read(None)?;
    let Some(first) = sampled.first().map(|document| document.id.clone()) else {
        return Ok(Vec::new());
    };
    let last = last_id(store, bucket, &first)?;
    let prefix = common_prefix(&first, &last);
    let all = (0..0x80).collect();
    let found = documents_at_places(
        &read,
        &sampled,
        prefix,
        &Digits(all).texts_between(&first, &last, prefix),
    )?;
    let ids = found.iter().map(|document| &*document.id).chain([&*last]);
    let digits = Digits::of(ids.filter_map(|id| id.strip_prefix(prefix)));
    let sampled =
        documents_at_places(&read, &sampled, prefix, &digits.texts_between(&first, &last, prefix))?;
    Ok(sampled.into_iter().map(|stored| stored.document).collect())
}

/// Returns the first documents of a bucket and the documents after each of the places, without
/// duplicates.
fn documents_at_places(
    read: &impl Fn(Option<&str>) -> Result<Vec<StoredDocument>>,
    first: &[StoredDocument],
    prefix: &str,
    places: &[String],
) -> Result<Vec<StoredDocument>> {
    let mut sampled = first.to_vec();
    for place in places {
        let last = sampled.last().map_or("", |document| &document.id).to_owned();
        let after = format!("{prefix}{place}");
        // Documents that an earlier place has are not read again.
        sampled.extend(read(Some(if after > last { &after } else { &last }))?);
    }
    Ok(sampled)
}

/// Returns an id near the end of the bucket: closer to the last document than two sampled places
/// are to each other.
fn last_id(store: &dyn DocumentStore, bucket: BucketId, first: &str) -> Result<String> {
    let mut last = first.to_owned();
    // The bytes of the last id are found one after another, each by a binary search.
    for depth in 0..=first.len().clamp(8, DEPTH_MAX) {
        let prefix = last.get(..depth).unwrap_or(&last).to_owned();
        let (mut low, mut high) = (0_u8, 0x7f_u8);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let probe = format!("{prefix}{}", char::from(middle));
            let found = store.snapshot_after(bucket, Some(&probe))?.next_chunk(1)?;
            match found.into_iter().next() {
                Some(document) => {
                    low = middle;
                    last = document.id;
                }
                None => high = middle - 1,
            }
        }
        if !last.starts_with(&prefix) || last.len() <= depth {
            break;
        }
    }
    Ok(last)
}

fn common_prefix<'a>(one: &'a str, other: &str) -> &'a str {
    let same = one.char_indices().zip(other.chars()).find(|((_, a), b)| a != b);
    &one[..same.map_or(one.len().min(other.len()), |((at, _), _)| at)]
}

/// The characters that ids have, in ascending order, each of which is a digit of a number.
struct Digits(Vec<u8>);

impl Digits {
    /// Returns the digits for some texts: their characters, and all other characters of the same
    /// classes (such as all decimal digits).
    fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut found: BTreeSet<u8> = texts.flat_map(str::bytes).filter(u8::is_ascii).collect();
        for kind in [b'0'..=b'9', b'A'..=b'F', b'G'..=b'Z', b'a'..=b'f', b'g'..=b'z'] {
            if kind.clone().any(|byte| found.contains(&byte)) {
                found.extend(kind);
            }
        }
        Self(found.into_iter().collect())
    }

    /// Returns texts at even distances between two ids. The common prefix of the ids is left out.
    fn texts_between(&self, first: &str, last: &str, prefix: &str) -> Vec<String> {
        let base = self.0.len() as u64;
        if base < 2 {
            return Vec::new();
        }
        let length =
            (1..).take_while(|n| base.checked_pow(*n).is_some_and(|all| all < 1 << 62)).count();
        let (low, high) = (
            self.number(&first[prefix.len()..], length),
            self.number(&last[prefix.len()..], length),
        );
        let span = u128::from(high.saturating_sub(low));
        let place = |n: u64| low + (span * u128::from(n) / u128::from(PLACES)) as u64;
        (1..PLACES).map(|n| self.text_of_number(place(n), length)).collect()
    }

    /// Returns the number that the first `length` characters of a text mean. A character that is
    /// not a digit counts as the next greater digit.
    fn number(&self, text: &str, length: usize) -> u64 {
        let base = self.0.len() as u64;
        let digit = |n: usize| {
            let byte = text.as_bytes().get(n).copied().unwrap_or(0);
            (self.0.partition_point(|known| *known < byte) as u64).min(base - 1)
        };
        (0..length).fold(0, |number, n| number * base + digit(n))
    }

    /// Returns the text of `length` characters that means a number.
    fn text_of_number(&self, mut number: u64, length: usize) -> String {
        let base = self.0.len() as u64;
        let mut text = vec![0; length];
        for at in text.iter_mut().rev() {
            *at = self.0[(number % base) as usize];
            number /= base;
        }
        text.into_iter().map(char::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use proto::model::bucket::{BucketInfo, SourceKind};
    use proto::model::ids::{NodeId, Seqno, VbucketId, Vbuuid};
    use proto::rpc::mutation::MutationKind;

    use super::*;
    use crate::source::{Batch, BucketRecord, MemoryStore, Mutation};

    const BUCKET: BucketId = BucketId(1);

    /// A store with documents of these ids, each of which contains its id.
    fn store(ids: &[String]) -> MemoryStore {
        let record = BucketRecord {
            info: BucketInfo::new(BUCKET, "b", 1, SourceKind::Embedded, NodeId(1)),
            branches: vec![vec![(Vbuuid(1), 0)]],
            ownership: Default::default(),
            given_up: Default::default(),
            commits: Default::default(),
        };
        let store = MemoryStore::default();
        store.apply_catalog(1, &[record], &[]).unwrap();
        let mutation = |(n, id): (usize, &String)| {
            let document = Bytes::from(id.clone().into_bytes());
            let place = (VbucketId(0), Seqno(n as u64 + 1));
            Arc::new(Mutation::new(place, Arc::from(&**id), MutationKind::Upsert, document))
        };
        let mutations = ids.iter().enumerate().map(mutation).collect();
        store.commit(BUCKET, Batch { mutations, ..Batch::default() }).unwrap();
        store
    }

    fn sampled(ids: &[String]) -> Vec<String> {
        let sampled = sample(&store(ids), BUCKET).unwrap();
        let text = |id: Bytes| String::from_utf8(id.to_vec()).unwrap();
        sampled.into_iter().map(text).collect()
    }

    #[test]
    fn sample_covers_the_whole_range_of_ids() {
        let counted = (0..20_000).map(|n| format!("user-{n:06}")).collect::<Vec<_>>();
        let plain = (0..20_000).map(|n| format!("d{n}")).collect::<Vec<_>>();
        let hashed = (0..20_000_u64)
            .map(|n| format!("{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .collect::<Vec<_>>();
        for mut ids in [counted, plain, hashed] {
            let found = sampled(&ids);
            ids.sort();
            let places: Vec<_> = found.iter().map(|id| ids.binary_search(id).unwrap()).collect();
            assert!(
                places.is_sorted() && places.len() == places.iter().collect::<BTreeSet<_>>().len()
            );
            let tenths: BTreeSet<_> = places.iter().map(|place| place * 10 / ids.len()).collect();
            assert_eq!(tenths.len(), 10, "{}: {places:?}", ids[0]);
        }
    }

    #[test]
    fn a_small_bucket_is_sampled_as_a_whole() {
        assert!(sampled(&[]).is_empty());
        for count in [1, 2, 15, 16] {
            let ids: Vec<_> = (0..count).map(|n| format!("\u{fc}{n}")).collect();
            assert_eq!(sampled(&ids).len(), count, "{count} documents");
        }
    }
}
