//! Scans and aggregates of a whole index.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::super::super::Outcome;
use super::super::answers::{Answer, Whole, all_by_grpc, expect_same, whole};
use super::super::bench::{Bench, CLIENTS, READ};
use super::super::figures::{Group, Sample, Unit};
use super::super::load::{Load, Request, run};
use super::super::peers::{EIGHT_SLICES, Peer};

/// Measures the ordered scan, whose answers are compared, and the aggregates.
pub async fn measure(bench: &mut Bench) -> Outcome<()> {
    scan(bench, "all rows in order, by COPY", By::Copy).await?;
    scan(bench, "all rows in order, by gRPC (PostgreSQL: by COPY)", By::Grpc).await?;
    aggregate(bench, "min and max", "min(n), max(n)", CLIENTS).await?;
    aggregate(bench, "count(*), 1 client", "count(*)", 1).await
}

/// The protocol by which all rows are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Copy,
    /// The gRPC port; at a server without one, COPY.
    Grpc,
}

/// Measures reads of all rows in order, and compares each of these answers.
async fn scan(bench: &mut Bench, name: &str, by: By) -> Outcome<()> {
    let answers: Mutex<Vec<Answer<Whole>>> = Mutex::default();
    let measure = async |peer: &dyn Peer, _: u64| {
        let (cpu_us, begun) = (peer.target().processes.cpu_us()?, Instant::now());
        let cpu_until_now = || -> Outcome<f64> { Ok(peer.target().processes.cpu_us()? - cpu_us) };
        let (whole, elapsed, cpu_us) = match (by, peer.target().grpc) {
            (By::Grpc, Some(port)) => {
                let received = all_by_grpc(port, &peer.relation(READ, EIGHT_SLICES)).await?;
                let cpu_us = cpu_until_now()?;
                (received.whole(), received.elapsed, cpu_us)
            }
            _ => {
                let whole = whole(peer, &peer.all(READ, EIGHT_SLICES)).await?;
                (whole, begun.elapsed(), cpu_until_now()?)
            }
        };
        let rows = whole.rows as f64;
        answers.lock().map_err(|_| "a measurement panicked")?.push((peer.name(), whole));
        Ok([Sample { value: rows / elapsed.as_secs_f64(), cpu_us: Some(cpu_us / rows) }])
    };
    let [series] = bench.alternate(&bench.all(), measure).await?;
    let answers = answers.into_inner().map_err(|_| "a measurement panicked")?;
    expect_same(&bench.peers[0].all(READ, EIGHT_SLICES), &answers)?;
    bench.add(name, Group::WholeIndex, Unit::RowsPerS, &series)
}

async fn aggregate(bench: &mut Bench, name: &str, selected: &str, clients: u64) -> Outcome<()> {
    let time = bench.time;
    let measure = async |peer: &dyn Peer, seed: u64| {
        let statement = format!("SELECT {selected} FROM {}", peer.relation(READ, EIGHT_SLICES));
        let draw = Arc::new(|_: &mut fastrand::Rng| Request { parameters: Vec::new(), rows: 1 });
        let (session, per_s, warm_up) = ("", None, 1);
        let load = Load { statement, session, draw, clients, time, per_s, warm_up, seed };
        let done = run(peer.target(), load).await?;
        Ok([Sample { value: done.per_s(), cpu_us: Some(done.cpu_us_each()) }])
    };
    let [series] = bench.alternate(&bench.all(), measure).await?;
    bench.add(name, Group::WholeIndex, Unit::RequestsPerS, &series)
}
