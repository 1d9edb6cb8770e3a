//! The median, the range and the percentiles of measured values.

use serde::{Deserialize, Serialize};

/// The median, the minimum and the maximum of a figure's rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The median; for an even number of values, the mean of the two middle ones.
    pub median: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
}

impl Spread {
    /// Returns the spread of some values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let sorted = sorted(values);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = match sorted.len().is_multiple_of(2) {
            true => (sorted[middle - 1] + sorted[middle]) / 2.0,
            false => sorted[middle],
        };
        Some(Self { median, min, max })
    }
}

/// Returns the smallest value that at least `percent` percent of the values do not exceed; `None`
/// if there are none.
pub fn percentile(values: &[f64], percent: u64) -> Option<f64> {
    let sorted = sorted(values);
    let rank = (sorted.len() as u64 * percent).div_ceil(100).max(1);
    sorted.get(rank as usize - 1).copied()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_lies_in_the_middle() {
        let spread = |values: &[f64]| Spread::of(values);
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[4.0]), Some(Spread { median: 4.0, min: 4.0, max: 4.0 }));
        assert_eq!(spread(&[9.0, 1.0, 4.0]), Some(Spread { median: 4.0, min: 1.0, max: 9.0 }));
        assert_eq!(spread(&[9.0, 1.0, 4.0, 2.0]), Some(Spread { median: 3.0, min: 1.0, max: 9.0 }));
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(percentile(&values, 50), Some(100.0));
        assert_eq!(percentile(&values, 99), Some(198.0));
        assert_eq!(percentile(&values, 100), Some(200.0));
        assert_eq!(percentile(&[7.0], 0), Some(7.0));
        assert_eq!(percentile(&[], 50), None);
    }
}
