//! The measured figures, in the form of the JSON file.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::super::Outcome;
use super::spread::Spread;

/// The name of the server to which ratios refer.
pub const POSTGRESQL: &str = "PostgreSQL";

/// A group of figures: a table and a plot of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Ranges and single keys by an index.
    Ranges,
    /// Scans and aggregates of a whole index.
    WholeIndex,
    /// CREATE INDEX and COPY.
    Loading,
    /// Writes of single documents.
    Writes,
    /// The time until a write is visible.
    Freshness,
    /// Servers without load.
    Idle,
}

impl Group {
    /// All groups in the order of the report.
    pub const ALL: [Self; 6] =
        [Self::Ranges, Self::WholeIndex, Self::Loading, Self::Writes, Self::Freshness, Self::Idle];

    /// Returns the heading of the group.
    pub fn title(self) -> &'static str {
        match self {
            Self::Ranges => "Ranges and single keys",
            Self::WholeIndex => "Whole indexes",
            Self::Loading => "Loading and building",
            Self::Writes => "Writes of single documents",
            Self::Freshness => "Freshness",
            Self::Idle => "Idle servers",
        }
    }

    /// Returns the name of the plot's file, without an extension.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Ranges => "ranges",
            Self::WholeIndex => "whole-index",
            Self::Loading => "loading",
            Self::Writes => "writes",
            Self::Freshness => "freshness",
            Self::Idle => "idle",
        }
    }
}

/// The unit of a figure's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Requests per second.
    RequestsPerS,
    /// Rows per second.
    RowsPerS,
    /// Documents per second.
    DocumentsPerS,
    /// Milliseconds.
    Ms,
    /// Milliseconds of CPU time per second.
    CpuMsPerS,
}

impl Unit {
    /// The unit as text.
    pub fn text(self) -> &'static str {
        match self {
            Self::RequestsPerS => "requests/s",
            Self::RowsPerS => "rows/s",
            Self::DocumentsPerS => "documents/s",
            Self::Ms => "ms",
            Self::CpuMsPerS => "CPU ms/s",
        }
    }

    /// True for rates; false for times.
    pub fn is_rate(self) -> bool {
        !matches!(self, Self::Ms | Self::CpuMsPerS)
    }
}

/// The measured value of one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The value in the figure's unit.
    pub value: f64,
    /// The CPU time of the server for each request, row or document, in microseconds.
    pub cpu_us: Option<f64>,
}

/// The samples of one server, one for each round.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name of the server.
    pub peer: String,
    /// The samples, one for each round.
    pub samples: Vec<Sample>,
}

/// The values of one server in a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// The name of the server.
    pub peer: String,
    /// The spread of the values of all rounds.
    pub value: Spread,
    /// The CPU time of the server for each request, row or document, in microseconds.
    pub cpu_us: Option<Spread>,
    /// The spread of the ratio to PostgreSQL by round: of the rates, or the inverse ratio of the
    /// times. Below 1 PostgreSQL is faster.
    pub ratio: Option<Spread>,
}

/// A figure, with the values of each server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The name of the measurement.
    pub name: String,
    /// The group of the report.
    pub group: Group,
    /// The unit of the values.
    pub unit: Unit,
    /// The values of each server, Sextant first.
    pub sides: Vec<Side>,
}

impl Figure {
    /// Returns the figure of the samples of all servers.
    pub fn from_series(name: &str, group: Group, unit: Unit, all: &[Series]) -> Outcome<Self> {
        let reference = all.iter().find(|series| series.peer == POSTGRESQL);
        let side = |series: &Series| {
            let values: Vec<f64> = series.samples.iter().map(|sample| sample.value).collect();
            let cpu: Vec<f64> = series.samples.iter().filter_map(|sample| sample.cpu_us).collect();
            let reference = reference.filter(|reference| reference.peer != series.peer);
            let ratios = reference.map(|reference| ratios(unit, series, reference));
            Some(Side {
                peer: series.peer.clone(),
                value: Spread::of(&values)?,
                cpu_us: Spread::of(&cpu),
                ratio: ratios.and_then(|ratios| Spread::of(&ratios)),
            })
        };
        let sides: Option<Vec<Side>> = all.iter().map(side).collect();
        let sides = sides.ok_or_else(|| format!("{name}: no round was measured"))?;
        Ok(Self { name: name.to_owned(), group, unit, sides })
    }
}

/// Returns the ratio of each round: of the rates, or the inverse ratio of the times. A round with a
/// zero is omitted.
fn ratios(unit: Unit, ours: &Series, theirs: &Series) -> Vec<f64> {
    let pairs = ours.samples.iter().zip(&theirs.samples);
    let pairs = pairs.filter(|(ours, theirs)| ours.value > 0.0 && theirs.value > 0.0);
    let ratio = |(ours, theirs): (&Sample, &Sample)| match unit.is_rate() {
        true => ours.value / theirs.value,
        false => theirs.value / ours.value,
    };
    pairs.map(ratio).collect()
}

/// The machine of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The number of processors that this process may use.
    pub cores: u64,
    /// The model of the processors.
    pub cpu_model: String,
    /// The main memory, in MiB.
    pub memory_mb: u64,
}

/// The version of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// The name of the server.
    pub peer: String,
    /// The version of the server, as text.
    pub version: String,
}

/// All figures of a run, with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The day of the run, in UTC.
    pub date: String,
    /// The commands that repeat the run, in the top directory of the repository.
    pub commands: Vec<String>,
    /// The machine on which the figures were measured.
    pub machine: Machine,
    /// The versions of the servers.
    pub versions: Vec<Version>,
    /// The number of documents of each bucket.
    pub rows: u64,
    /// The duration of each measurement, in seconds.
    pub seconds: u64,
    /// The number of rounds of each figure.
    pub rounds: u64,
    /// The figures in the order of their measurement.
    pub figures: Vec<Figure>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(peer: &str, values: &[f64]) -> Series {
        let sample = |value: &f64| Sample { value: *value, cpu_us: Some(2.0) };
        Series { peer: peer.into(), samples: values.iter().map(sample).collect() }
    }

    #[test]
    fn ratios_are_formed_round_by_round() {
        let all = [series("Sextant", &[10.0, 30.0, 20.0]), series(POSTGRESQL, &[20.0, 10.0, 10.0])];
        let figure = |unit| Figure::from_series("x", Group::Ranges, unit, &all).expect("rounds");
        let rates = figure(Unit::RowsPerS);
        assert_eq!(rates.sides[0].ratio, Some(Spread { median: 2.0, min: 0.5, max: 3.0 }));
        assert_eq!(rates.sides[1].ratio, None);
        let times = figure(Unit::Ms);
        assert_eq!(times.sides[0].ratio.map(|ratio| ratio.median), Some(0.5));
    }

    #[test]
    fn a_figure_without_rounds_is_an_error_and_a_zero_has_no_ratio() {
        let none = [series("Sextant", &[])];
        assert!(Figure::from_series("x", Group::Idle, Unit::CpuMsPerS, &none).is_err());
        let zero = [series("Sextant", &[1.0]), series(POSTGRESQL, &[0.0])];
        let figure = Figure::from_series("x", Group::Idle, Unit::CpuMsPerS, &zero);
        assert_eq!(figure.expect("a round").sides[0].ratio, None);
    }
}
