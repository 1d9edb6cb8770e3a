//! Which runs to merge: a pure choice.

use std::ops::Range;

/// Fewer runs than this are not worth a merge.
const RUNS_MIN: usize = 4;
/// A merge never makes more rows than this, so that offsets stay within a run's 32 bits.
const ROWS_MAX: u64 = 8 << 20;

/// Chooses a contiguous piece of the runs (rows of each, the oldest first), from `frozen` on, to merge
/// into one; `None` if there is nothing to gain.
///
/// The oldest run is taken that the younger ones together have outgrown by half: so the sizes fall
/// off geometrically, the number of runs is logarithmic, and each row is merged a logarithmic number
/// of times (the logarithmic method of Bentley and Saxe, 1980).
pub fn choose(rows: &[u32], frozen: usize) -> Option<Range<usize>> {
    let mut younger = 0u64;
    let mut choice = None;
    for at in (frozen..rows.len()).rev() {
        let this = u64::from(rows[at]);
        if younger + this > ROWS_MAX {
            break;
        }
        if rows.len() - at >= RUNS_MIN && 2 * younger >= this {
            choice = Some(at..rows.len());
        }
        younger += this;
    }
    choice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_stay_few_and_rows_are_merged_seldom() {
        let (mut runs, mut merged) = (Vec::new(), 0u64);
        for _ in 0..10_000 {
            runs.push(100u32);
            if let Some(range) = choose(&runs, 0) {
                let sum: u32 = runs[range.clone()].iter().sum();
                merged += u64::from(sum);
                runs.splice(range, [sum]);
            }
            assert!(runs.len() <= 32, "{} runs", runs.len());
        }
        assert!(merged / 1_000_000 <= 32, "each row was merged {} times", merged / 1_000_000);
    }

    #[test]
    fn frozen_runs_are_left_alone() {
        assert_eq!(choose(&[1; 10], 4), Some(4..10));
        assert_eq!(choose(&[1; 10], 8), None);
        assert_eq!(choose(&[1_000_000, 1, 1, 1, 1], 0), Some(1..5), "a large old run stays");
    }
}
