//! The command `simulate control-plane`.

use std::process::ExitCode;

use super::run;
use super::scale::Scale;

/// Measure the traffic of the coordinators in clusters of several sizes
#[derive(clap::Args, Debug)]
pub struct ControlPlane {
    /// Numbers of indexers
    #[arg(long, value_delimiter = ',', default_values_t = [10, 100, 1_000])]
    indexers: Vec<u64>,
    /// Number of buckets
    #[arg(long, default_value_t = 32)]
    buckets: u64,
    /// Vbuckets of each bucket
    #[arg(long, default_value_t = 1_024)]
    vbuckets: u16,
    /// Slices of each index; by default two for each indexer, and 8 at least
    #[arg(long)]
    slices: Option<u16>,
    /// Mutations of each bucket in a second
    #[arg(long, default_value_t = 1_000)]
    rate: u64,
    /// Simulated seconds of each phase
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Seed of the run
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON lines only
    #[arg(long)]
    json: bool,
}

impl ControlPlane {
    /// Measures the clusters one after the other.
    pub fn run(&self) -> ExitCode {
        let Self { buckets, vbuckets, rate, seconds, seed, .. } = *self;
        for indexers in self.indexers.iter().copied() {
            let slices = self.slices.unwrap_or_else(|| Scale::slices_for(indexers, buckets));
            let scale = Scale { indexers, buckets, vbuckets, slices, rate, seconds, seed };
            match run(scale) {
                Ok(figures) if self.json => {
                    println!("{}", serde_json::to_string(&figures).expect("figures are JSON"));
                }
                Ok(figures) => println!("{figures}"),
                Err(error) => {
                    eprintln!("{indexers} indexers: {error}");
                    return ExitCode::FAILURE;
                }
            }
        }
        ExitCode::SUCCESS
    }
}
