//! Checks the names and the definitions of indexes.

use proto::model::index::{
    BOUND_BYTES_MAX, COLUMNS_MAX, INCLUDED_KB_MAX, IndexSpec, PartitionBy, REPLICAS_MAX,
    RangePartition, SLICES_MAX,
};
use proto::value::key::decode_part;
use proto::{Error, ErrorCode, Result, expr::Expr};

/// The length limit of a name, in bytes. PostgreSQL's clients show about half of such a name.
const NAME_BYTES_MAX: usize = 128;

/// The length limit of the SQL text that defines an index, in bytes. The texts are sent with the
/// catalog.
const SQL_BYTES_MAX: usize = 64 << 10;

pub(in crate::state) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains('\0') {
        return Err(Error::new(
            ErrorCode::InvalidParameter,
            format!("a name has 1 to {NAME_BYTES_MAX} bytes, this one has {}", name.len()),
        ));
    }
    Ok(())
}

/// Checks that the parameter `what` has a value in a range.
pub(in crate::state) fn check_range(what: &str, value: u64, min: u64, max: u64) -> Result<()> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::InvalidParameter,
        format!("{what} = {value} is not between {min} and {max}"),
    ))
}

/// Checks that the split points of an index by ranges ascend, are short, and fit its number of
/// slices.
fn check_range_partition(range: &RangePartition, slices: u16) -> Result<()> {
    let bounds = &range.bounds;
    let ascend = bounds.windows(2).all(|two| two[0] < two[1]);
    let (count, longest) = (bounds.len(), bounds.iter().map(Vec::len).max().unwrap_or_default());
    if ascend && count + 1 == usize::from(slices) && longest <= BOUND_BYTES_MAX {
        return Ok(());
    }
    let what = format!(
        "{count} split points for {slices} slices: they ascend, are one less than slices, and have at most {BOUND_BYTES_MAX} bytes"
    );
    Err(Error::new(ErrorCode::InvalidParameter, what))
}

/// Checks the definition of an index after the leader has split a slice. The next ALTER INDEX
/// writes the split points into the SQL text, which must not become too long.
pub(in crate::state) fn check_split(spec: &IndexSpec) -> Result<()> {
    check_spec(spec)?;
    let PartitionBy::Range(range) = &spec.partition else { return Ok(()) };
    let text_bytes = |bound: &Vec<u8>| {
        let value = decode_part(&mut &bound[..], false);
        value.map_or(0, |value| Expr::Literal(value).to_string().len() + ", ".len())
    };
    // The declaration may have some of the points already. They count twice, which leaves room for other changes.
    let bytes = spec.sql.len() + range.bounds.iter().map(text_bytes).sum::<usize>();
    if bytes <= SQL_BYTES_MAX {
        return Ok(());
    }
    let what = format!(
        "the declaration of index \"{}\" would have up to {bytes} bytes with one split point more; at most {SQL_BYTES_MAX}",
        spec.name
    );
    Err(Error::new(ErrorCode::OverLimit, what).with_hint(
        "ALTER INDEX … PARTITION BY RANGE (…) SPLIT AT (…) with fewer or shorter split points, or ALTER INDEX … SET (slice_bytes_max = 0)",
    ))
}

pub(in crate::state) fn check_spec(spec: &IndexSpec) -> Result<()> {
    let bad = |what: &str| Err(Error::new(ErrorCode::InvalidParameter, what.to_owned()));
    check_range("slices", u64::from(spec.slices), 1, u64::from(SLICES_MAX))?;
    check_range("replicas", u64::from(spec.replicas), 0, u64::from(REPLICAS_MAX))?;
    let included_kb_max = u64::from(spec.included_kb_max);
    check_range("included_kb_max", included_kb_max, 1, u64::from(INCLUDED_KB_MAX))?;
    if spec.sql.len() > SQL_BYTES_MAX {
        let what = format!("the statement has {} bytes; at most {SQL_BYTES_MAX}", spec.sql.len());
        return Err(Error::new(ErrorCode::OverLimit, what));
    }
    if spec.keys.len() + spec.include.len() > COLUMNS_MAX {
        return Err(Error::new(
            ErrorCode::OverLimit,
            format!("an index has at most {COLUMNS_MAX} keys and included expressions"),
        ));
    }
    if spec.primary != spec.keys.is_empty() {
        return bad("an index has keys, unless it is PRIMARY; a PRIMARY index has none");
    }
    let arrays = spec.keys.iter().filter(|part| matches!(part.expr, Expr::Unnest(_))).count();
    if arrays > 1 {
        return Err(Error::new(ErrorCode::Unsupported, "an index has at most one array key")
            .with_hint("create one index per array"));
    }
    if let PartitionBy::Range(range) = &spec.partition {
        check_range_partition(range, spec.slices)?;
    }
    if matches!(&spec.partition, PartitionBy::Exprs(exprs) if exprs.is_empty()) {
        return bad("PARTITION BY HASH needs an expression");
    }
    Ok(())
}
