//! Determines the slices that can have matching entries. In an index partitioned by hash,
//! conditions can give single values to all partition expressions; then only the slices of these
//! values are read. In an index partitioned by ranges of an expression, conditions on this
//! expression exclude the slices of other ranges.

use bytes::Bytes;
use proto::expr::Expr;
use proto::model::index::{IndexSpec, PartitionBy, RangePartition};

use super::value_set::{PartSet, Set};

/// The maximum number of partition keys of a scan. With more keys, most slices are read anyway.
const PARTITIONS_MAX: usize = 64;

/// Returns all partition keys that matching entries can have; `None` if they are unknown. `sets`
/// contains the possible values of each key part and of the id.
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
        PartitionBy::Range(range) => {
            let part = part_of(&range.expr).filter(|part| *part != id)?;
            let (set, _) = sets[part].as_ref()?;
            return Some(keys_of_ranges(range, set));
        }
    };
    let mut keys = vec![Vec::new()];
    for part in parts {
        // The set of an id contains raw bytes, but a partition key of expressions contains the id
        // as an encoded key part.
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

/// Returns one partition key for each range that contains values of `set`: the lowest value, and
/// the range bounds between the lowest and the highest value.
fn keys_of_ranges(range: &RangePartition, set: &Set) -> Vec<Bytes> {
    let mut keys = Vec::new();
    for interval in set {
        let Some(low) = interval.low.position(&[]) else { continue };
        let high = interval.high.position(&[]);
        let first = usize::from(range.slice(&low).0);
        let is_met = |bound: &&Vec<u8>| high.as_ref().is_none_or(|high| *bound < high);
        let met = range.bounds[first..].iter().take_while(is_met);
        keys.extend([low].iter().chain(met).cloned().map(Bytes::from));
    }
    keys
}
