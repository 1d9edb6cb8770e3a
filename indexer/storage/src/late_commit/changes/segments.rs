//! Division of the changes of one message into *segments*, in which no document occurs twice.
//!
//! An epoch retains only the last change of each document. An open transaction is also read, and
//! rolled back, to a place between two changes of one document. So each change is stored with its
//! place, the number that it has in the transaction. A segment is a sequence of neighbouring
//! changes, and becomes one table in memory. The number of segments of a message is the largest
//! number of changes of one document in it, which is almost always one.

use hashbrown::HashTable;
use proto::model::ids::hash_id;
use proto::rpc::mutation::{KeyVersionsReader, UncommittedChanges};
use proto::{Error, ErrorCode, Result};

use crate::apply::documents::Document;

/// Returns the error of a message with changes outside of its range of places.
fn out_of_range(bodies: &UncommittedChanges) -> Error {
    let UncommittedChanges { transaction, from, to, .. } = bodies;
    let text =
        format!("changes of transaction {transaction} are not all between places {from} and {to}");
    Error::new(ErrorCode::Corrupt, text)
}

/// Returns the changes of a message in segments, each change with its distance from the message's
/// first place.
pub fn split_into_segments(bodies: &UncommittedChanges) -> Result<Vec<Vec<Document<'_>>>> {
    let most = bodies.to.0.checked_sub(bodies.from.0).ok_or_else(|| out_of_range(bodies))?;
    let (mut segments, mut segment) = (Vec::new(), Vec::<Document<'_>>::new());
    let mut places = HashTable::<u32>::new();
    let mut last = 0;
    for versions in KeyVersionsReader::new(&bodies.body) {
        let versions = versions?;
        let place = versions.seqno_minus_base;
        let later = u32::try_from(place).ok().filter(|_| place > last && place <= most);
        let later = later.ok_or_else(|| out_of_range(bodies))?;
        last = place;
        let hash = hash_id(versions.id);
        let is_same = |at: &u32| segment[*at as usize].versions.id == versions.id;
        if places.find(hash, is_same).is_some() {
            segments.push(std::mem::take(&mut segment));
            places.clear();
        }
        // A segment has fewer documents than `later`, which fits.
        let at = segment.len() as u32;
        segment.push(Document { hash, later, versions });
        places.insert_unique(hash, at, |at| segment[*at as usize].hash);
    }
    segments.push(segment);
    Ok(segments)
}

#[cfg(test)]
mod tests {
    use proto::model::ids::{TransactionId, TransactionPlace};
    use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};

    use super::*;

    fn bodies(from: u64, to: u64, changes: &[(u64, &str)]) -> UncommittedChanges {
        let mut writer = KeyVersionsWriter::default();
        for (place, id) in changes {
            writer.mutation(*place, MutationKind::Upsert, id, 0);
        }
        let (from, to) = (TransactionPlace(from), TransactionPlace(to));
        UncommittedChanges { transaction: TransactionId(1), from, to, body: writer.finish() }
    }

    #[test]
    fn no_document_is_twice_in_a_segment() {
        let bodies = bodies(7, 15, &[(1, "a"), (2, "b"), (4, "a"), (5, "c"), (6, "b"), (8, "b")]);
        let segments = split_into_segments(&bodies).unwrap();
        let found: Vec<Vec<_>> =
            segments.iter().map(|s| s.iter().map(|d| (d.later, d.versions.id)).collect()).collect();
        let expected =
            [vec![(1, "a"), (2, "b")], vec![(4, "a"), (5, "c"), (6, "b")], vec![(8, "b")]];
        assert_eq!(found, expected);
    }

    #[test]
    fn places_out_of_range_or_order_and_damage_are_errors() {
        for changes in [&[(0, "a")][..], &[(9, "a")], &[(2, "a"), (2, "b")], &[(2, "a"), (1, "b")]]
        {
            let error = split_into_segments(&bodies(7, 15, changes)).unwrap_err();
            assert_eq!(error.code, ErrorCode::Corrupt, "{changes:?}");
        }
        assert!(split_into_segments(&bodies(7, 6, &[])).is_err());
        let mut torn = bodies(0, 9, &[(1, "abc")]);
        torn.body.truncate(3);
        assert!(split_into_segments(&torn).is_err());
    }
}
