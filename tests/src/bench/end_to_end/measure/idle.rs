//! The CPU time of servers without clients.

use std::time::Duration;

use super::super::super::Outcome;
use super::super::bench::{Bench, cpu_us, until_quiet};
use super::super::figures::{Group, Sample, Series, Unit};
use super::super::peers::Peer;

/// The time for which the servers get no requests.
const IDLE_TIME: Duration = Duration::from_secs(5);

/// Measures all servers at the same time, in one round.
pub async fn measure(bench: &mut Bench) -> Outcome<()> {
    let peers = bench.of_ranges();
    until_quiet(&peers).await?;
    let before = cpu_us(&peers)?;
    tokio::time::sleep(IDLE_TIME).await;
    let used = cpu_us(&peers)?.into_iter().zip(before).map(|(after, before)| after - before);
    let series = |(peer, us): (&&dyn Peer, f64)| {
        let value = us / 1e3 / IDLE_TIME.as_secs_f64();
        Series { peer: peer.name().into(), samples: vec![Sample { value, cpu_us: None }] }
    };
    let series: Vec<Series> = peers.iter().zip(used).map(series).collect();
    bench.add("CPU time without clients, over 5 s", Group::Idle, Unit::CpuMsPerS, &series)
}
