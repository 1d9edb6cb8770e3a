//! The rule that chooses which neighbouring tables (in memory or in fragments) are merged, by
//! their sizes alone.

use std::ops::Range;

/// Minimum number of tables in a merge in memory. The number is small because merges in memory are
/// cheap and each read searches every table.
pub const RUNS_MIN: usize = 4;
/// Minimum number of fragments in a compaction. A read searches eight fragments in about half a
/// microsecond, and with fewer each row would be rewritten more often.
pub const FRAGMENTS_MIN: usize = 8;

/// Chooses neighbouring tables to merge into one; `None` if no merge is worthwhile. `bytes` has
/// the size of each table, oldest first. No merge takes fewer than `tables_min` tables or more
/// than `bytes_max` bytes.
///
/// The choice begins at the oldest table that is at most twice as large as all younger tables
/// together. So the sizes decrease geometrically, the number of tables is logarithmic, and each row
/// is merged a logarithmic number of times (the logarithmic method of Bentley and Saxe, 1980).
pub fn choose_node(bytes: &[u64], tables_min: usize, bytes_max: u64) -> Option<Range<usize>> {
    let mut younger = 0;
    let mut choice = None;
    for at in (0..bytes.len()).rev() {
        let this = bytes[at];
        if younger + this > bytes_max {
            break;
        }
        if bytes.len() - at >= tables_min && 2 * younger >= this {
            choice = Some(at..bytes.len());
        }
        younger += this;
    }
    choice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_stay_few_and_rows_are_merged_seldom() {
        let (mut runs, mut merged) = (Vec::new(), 0);
        for _ in 0..10_000 {
            runs.push(100);
            if let Some(range) = choose_node(&runs, 4, u64::MAX) {
                let sum: u64 = runs[range.clone()].iter().sum();
                merged += sum;
                runs.splice(range, [sum]);
            }
            assert!(runs.len() <= 32, "{} runs", runs.len());
        }
        assert!(merged / 1_000_000 <= 32, "each row was merged {} times", merged / 1_000_000);
    }

    #[test]
    fn large_old_tables_stay_and_no_merge_is_too_large() {
        assert_eq!(choose_node(&[1_000_000, 1, 1, 1, 1], 4, u64::MAX), Some(1..5));
        assert_eq!(choose_node(&[500; 4], 4, 999), None);
    }
}
