//! The state of a run (the servers, the documents, the measured figures), and the rounds in which
//! the servers are measured in turn.

use std::time::{Duration, Instant};

use tokio_postgres::Client;

use super::super::Outcome;
use super::super::workload::mix;
use super::documents::Documents;
use super::figures::{Figure, Group, Sample, Series, Unit};
use super::peers::Peer;

/// The bucket that is only read.
pub const READ: &str = "docs";
/// The bucket that is loaded and written.
pub const WRITTEN: &str = "loaded";
/// The number of clients of most loads.
pub const CLIENTS: u64 = 8;
/// The share of a processor below which a server counts as quiet.
const QUIET_SHARE_MAX: f64 = 0.1;
const QUIET_FOR: Duration = Duration::from_millis(400);
/// The time after which a server that is not quiet is measured nevertheless.
const QUIET_WAIT_MAX: Duration = Duration::from_secs(20);

/// The state of a run.
pub struct Bench {
    /// The servers that are measured in all figures; the first one is `sextant dev`.
    pub peers: Vec<Box<dyn Peer>>,
    /// One more server, which is measured only in ranges.
    pub beside: Option<Box<dyn Peer>>,
    /// The documents of the run.
    pub documents: Documents,
    /// The time of each measurement.
    pub time: Duration,
    /// The number of rounds of each figure.
    pub rounds: u64,
    /// The figures measured so far.
    pub figures: Vec<Figure>,
}

impl Bench {
    /// Returns the servers that are measured in all figures.
    pub fn all(&self) -> Vec<&dyn Peer> {
        self.peers.iter().map(|peer| &**peer).collect()
    }

    /// Returns the servers that are measured in ranges.
    pub fn of_ranges(&self) -> Vec<&dyn Peer> {
        self.peers.iter().chain(&self.beside).map(|peer| &**peer).collect()
    }

    /// Measures each server once in each round, in changing order. `measure` returns a sample for
    /// each of K figures; the result contains the series of each figure.
    pub async fn alternate<const K: usize>(
        &self,
        peers: &[&dyn Peer],
        measure: impl AsyncFn(&dyn Peer, u64) -> Outcome<[Sample; K]>,
    ) -> Outcome<[Vec<Series>; K]> {
        let none = |peer: &&dyn Peer| Series { peer: peer.name().into(), samples: Vec::new() };
        let mut all: [Vec<Series>; K] =
            std::array::from_fn(|_| peers.iter().map(none).collect::<Vec<_>>());
        for round in 0..self.rounds {
            let mut order: Vec<usize> = (0..peers.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for peer in order {
                let measured = measure(peers[peer], mix(round)).await;
                let measured = measured.map_err(|error| format!("{}: {error}", peers[peer].name()));
                for (series, sample) in all.iter_mut().zip(measured?) {
                    series[peer].samples.push(sample);
                }
            }
        }
        Ok(all)
    }

    /// Adds a figure and prints it.
    pub fn add(&mut self, name: &str, group: Group, unit: Unit, all: &[Series]) -> Outcome<()> {
        let figure = Figure::from_series(name, group, unit, all)?;
        let side = |side: &super::figures::Side| format!("{} {:.2}", side.peer, side.value.median);
        let sides: Vec<String> = figure.sides.iter().map(side).collect();
        eprintln!("{name}: {} {}", sides.join(", "), unit.text());
        self.figures.push(figure);
        Ok(())
    }
}

/// Waits until the background work of servers is done.
pub async fn until_quiet(peers: &[&dyn Peer]) -> Outcome<()> {
    let deadline = Instant::now() + QUIET_WAIT_MAX;
    while Instant::now() < deadline {
        let before = cpu_us(peers)?;
        tokio::time::sleep(QUIET_FOR).await;
        let used = cpu_us(peers)?.into_iter().zip(before).map(|(after, before)| after - before);
        let quiet_us_max = QUIET_FOR.as_micros() as f64 * QUIET_SHARE_MAX;
        if used.into_iter().all(|us| us < quiet_us_max) {
            break;
        }
    }
    Ok(())
}

/// Returns the CPU time of each server, in microseconds.
pub fn cpu_us(peers: &[&dyn Peer]) -> Outcome<Vec<f64>> {
    peers.iter().map(|peer| peer.target().processes.cpu_us()).collect()
}

/// Runs a statement; an error names it.
pub async fn execute(client: &Client, statement: &str) -> Outcome<()> {
    let done = client.batch_execute(statement).await;
    done.map_err(|error| match error.as_db_error() {
        Some(told) => format!("{statement}: {told}").into(),
        None => format!("{statement}: {error}").into(),
    })
}
