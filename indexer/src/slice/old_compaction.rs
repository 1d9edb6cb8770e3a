//! Which runs to merge: a pure choice.

use std::ops::Range;

use super::run::RUN_BYTES_MAX;

/// Fewer runs than this are not worth a merge.
const RUNS_MIN: usize = 4;

/// Chooses a contiguous piece of the runs (bytes of each, the oldest first) to merge into one; `None`
/// if there is nothing to gain. No merge makes a run above [`RUN_BYTES_MAX`].
///
/// The oldest run is taken that the younger ones together have outgrown by half: so the sizes fall
/// off geometrically, the number of runs is logarithmic, and each row is merged a logarithmic number
/// of times (the logarithmic method of Bentley and Saxe, 1980).
pub fn choose(bytes: &[usize]) -> Option<Range<usize>> {
    let mut younger = 0;
    let mut choice = None;
    for at in (0..bytes.len()).rev() {
        let this = bytes[at];
        if younger + this > RUN_BYTES_MAX {
            break;
        }
        if bytes.len() - at >= RUNS_MIN && 2 * younger >= this {
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
    fn runs_stay_few_and_rows_are_merged_seldom() {
        let (mut runs, mut merged) = (Vec::new(), 0);
        for _ in 0..10_000 {
            runs.push(100);
            if let Some(range) = choose(&runs) {
                let sum: usize = runs[range.clone()].iter().sum();
                merged += sum;
                runs.splice(range, [sum]);
            }
            assert!(runs.len() <= 32, "{} runs", runs.len());
        }
        assert!(merged / 1_000_000 <= 32, "each row was merged {} times", merged / 1_000_000);
    }

    #[test]
    fn large_old_runs_stay_and_no_merge_is_too_large() {
        assert_eq!(choose(&[1_000_000, 1, 1, 1, 1]), Some(1..5));
        assert_eq!(choose(&[RUN_BYTES_MAX / 2; 4]), None);
    }
}
