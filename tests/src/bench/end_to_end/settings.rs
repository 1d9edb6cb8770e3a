//! The settings of a run, which are the flags of the command.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::super::Outcome;
use super::figures::Group;

/// Another server to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Other {
    /// PostgreSQL from /usr/lib/postgresql or the PATH
    Postgres,
}

/// The flags of `bench end-to-end`.
#[derive(Args, Clone, Debug)]
pub struct Settings {
    /// Other servers to measure beside `sextant dev`
    #[arg(long, value_delimiter = ',')]
    pub peers: Vec<Other>,
    /// Measure ranges in a cluster of one process for each member too
    #[arg(long)]
    pub processes: bool,
    /// Documents of each bucket; no multiple of 7919
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(10_000..=90_000_000))]
    pub rows: u64,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// Rounds of each figure, in which the servers take turns
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub rounds: u64,
    /// Measure only these groups of figures
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<Group>,
    /// Write the figures into this file
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// The binary `sextant`; by default the one beside this binary
    #[arg(long)]
    pub binary: Option<PathBuf>,
    /// Parent of the data directory, which is removed at the end; by default the system's temporary directory
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

/// Returns the path of a binary under measurement: the named one, or the one in the folder of this
/// program.
pub fn sextant_binary(named: Option<&Path>) -> Outcome<PathBuf> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => std::env::current_exe()?.with_file_name("sextant"),
    };
    if !path.is_file() {
        let path = path.display();
        let what =
            "build it with `cargo build --profile dist --bin sextant`, or name it with --binary";
        return Err(format!("no file {path}: {what}").into());
    }
    Ok(std::path::absolute(path)?)
}

impl Settings {
    /// Returns the path of the binary under measurement.
    pub fn sextant(&self) -> Outcome<PathBuf> {
        sextant_binary(self.binary.as_deref())
    }

    /// True if some of these groups are to be measured.
    pub fn wants(&self, groups: &[Group]) -> bool {
        self.only.is_empty() || groups.iter().any(|group| self.only.contains(group))
    }

    /// Returns an error if the JSON file could not be written at the end of the run.
    pub fn check_json(&self) -> Outcome<()> {
        let Some(path) = &self.json else { return Ok(()) };
        let parent = std::path::absolute(path)?;
        match parent.parent().is_some_and(|parent| parent.is_dir()) && !path.is_dir() {
            true => Ok(()),
            false => Err(format!("--json {}: no such directory", path.display()).into()),
        }
    }

    /// Returns the commands that repeat the run. They contain no paths of this machine.
    pub fn commands(&self) -> Vec<String> {
        let mut run = "cargo run --profile dist -p tests --bin bench -- end-to-end".to_owned();
        if self.peers.contains(&Other::Postgres) {
            run += " --peers postgres";
        }
        if self.processes {
            run += " --processes";
        }
        if !self.only.is_empty() {
            let names = self.only.iter().filter_map(|group| group.to_possible_value());
            let names: Vec<String> = names.map(|name| name.get_name().to_owned()).collect();
            run += &format!(" --only {}", names.join(","));
        }
        let Self { rows, seconds, rounds, .. } = self;
        run += &format!(" --rows {rows} --seconds {seconds} --rounds {rounds} --json figures.json");
        vec![
            "cargo build --profile dist --bin sextant".into(),
            run,
            "cargo run --profile dist -p tests --bin bench -- report --json figures.json --out docs/performance.md"
                .into(),
        ]
    }
}
