//! The slices that conditions leave: an index is spread by the hash of its partition expressions, so conditions that give each of them
//! single values exclude all slices but those of these values.

use bytes::Bytes;
use proto::expr::Expr;
use proto::model::index::{IndexSpec, PartitionBy};

use super::value_set::PartSet;

/// Maximum of partition keys of a scan. With more, most slices are read anyway.
const PARTITIONS_MAX: usize = 64;

/// Returns all partition keys that entries in these sets of the key parts, and then of the id, can have; `None` if they are unknown.
pub(super) fn partition_keys(spec: &IndexSpec, sets: &[PartSet]) -> Option<Vec<Bytes>> {
    let id = spec.keys.len();
    let part_of = |expr: &Expr| match expr {
        Expr::DocumentId => Some(id),
        // The values of an array key are its elements.
        Expr::Unnest(_) => None,
        expr => spec.keys.iter().position(|part| part.expr == *expr),
    };
    let parts: Vec<usize> = match &spec.partition {
        PartitionBy::DocumentId => vec![id],
        PartitionBy::Exprs(exprs) => exprs.iter().map(part_of).collect::<Option<_>>()?,
    };
    let mut keys = vec![Vec::new()];
    for part in parts {
        // The values of an id stand in its set as raw bytes, and in a partition key of expressions as a key part.
        let is_raw = part == id && spec.partition != PartitionBy::DocumentId;
        let (set, _) = sets[part].as_ref().filter(|_| !is_raw)?;
        let values: Vec<&Vec<u8>> =
            set.iter().map(|interval| interval.point.as_ref()).collect::<Option<_>>()?;
        if keys.len() * values.len() > PARTITIONS_MAX {
            return None;
        }
        keys = keys
            .iter()
            .flat_map(|key| values.iter().map(move |value| [&key[..], value].concat()))
            .collect();
    }
    Some(keys.into_iter().map(Bytes::from).collect())
}
