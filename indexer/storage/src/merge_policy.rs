//! Which runs or fragments to merge: a pure choice.

use std::ops::Range;

/// Fewer runs than this are not worth a merge: in memory merges are cheap, and reads ask each run.
pub const RUNS_MIN: usize = 4;
/// Fewer fragments than this are not worth a merge: with eight, a read asks each in half a microsecond
/// or so, and every row is written less often.
pub const FRAGMENTS_MIN: usize = 8;

/// Chooses a contiguous piece of some tables (bytes of each, the oldest first) to merge into one; `None`
/// if there is nothing to gain. No merge takes in fewer than `tables_min` or more than `bytes_max`.
///
/// The oldest table is taken that the younger ones together have outgrown by half: so the sizes fall
/// off geometrically, the number of tables is logarithmic, and each row is merged a logarithmic number
/// of times (the logarithmic method of Bentley and Saxe, 1980).
pub fn choose(bytes: &[u64], tables_min: usize, bytes_max: u64) -> Option<Range<usize>> {
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
            if let Some(range) = choose(&runs, 4, u64::MAX) {
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
        assert_eq!(choose(&[1_000_000, 1, 1, 1, 1], 4, u64::MAX), Some(1..5));
        assert_eq!(choose(&[500; 4], 4, 999), None);
    }
}
