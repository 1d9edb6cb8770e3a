//! Measures the time until a write is visible, under a load of writes.
//!
//! The load is half of the rate that a server sustains, which is the rate of upserts of 64 clients
//! until the index contains all of them. One additional writer upserts a document with a new key,
//! and reads the key from the acknowledgement on until the document is visible (*freshness*). Then
//! one client scans ranges of 100 rows with all writes acknowledged before (`request_plus`). At
//! PostgreSQL every read includes them.

use std::time::{Duration, Instant};

use super::super::super::Outcome;
use super::super::answers::session;
use super::super::bench::{Bench, WRITTEN, until_quiet};
use super::super::documents::Documents;
use super::super::figures::{Group, Sample, Unit};
use super::super::peers::{EIGHT_SLICES, Peer};
use super::super::spread::percentile;
use super::writes::{MANY_CLIENTS, upsert};

/// The number of the document that the additional writer writes.
const PROBE: u64 = 99_999_999;
/// The time limit for a write to become visible.
const SEEN_TIME_MAX: Duration = Duration::from_secs(10);
/// The maximum pause between probes in milliseconds. The pauses are random, so that probes are not
/// synchronous with epochs.
const PAUSE_MS_MAX: u64 = 20;
/// The number of rows of the ranges with all acknowledged writes.
const WIDTH: u64 = 100;

/// Measures freshness and the time of reads that wait for it.
pub async fn measure(bench: &mut Bench) -> Outcome<()> {
    let (documents, time) = (bench.documents, bench.time);
    let one = async |peer: &dyn Peer, seed: u64| {
        until_quiet(&[peer]).await?;
        let full = upsert(peer, &documents, MANY_CLIENTS, time, None, seed).await?;
        let half = Some(full.visible_per_s / 2.0);
        let load = || upsert(peer, &documents, MANY_CLIENTS, time, half, seed);
        let (_, fresh) = tokio::try_join!(load(), probe(peer, &documents, time, seed))?;
        let (_, scans) =
            tokio::try_join!(load(), scans_of_everything(peer, &documents, time, seed))?;
        let rate = Sample { value: full.visible_per_s, cpu_us: Some(full.cpu_us_each) };
        let [fresh_50, fresh_99] = percentiles(&fresh)?;
        let [scan_50, scan_99] = percentiles(&scans)?;
        Ok([rate, fresh_50, fresh_99, scan_50, scan_99])
    };
    let [rate, fresh_50, fresh_99, scan_50, scan_99] = bench.alternate(&bench.all(), one).await?;
    let rate_name = "upserts, 64 clients, until visible";
    bench.add(rate_name, Group::Writes, Unit::DocumentsPerS, &rate)?;
    for (name, series) in [
        ("from acknowledged to seen by a default scan, p50", fresh_50),
        ("from acknowledged to seen by a default scan, p99", fresh_99),
        ("range of 100 rows with request_plus, p50", scan_50),
        ("range of 100 rows with request_plus, p99", scan_99),
    ] {
        bench.add(name, Group::Freshness, Unit::Ms, &series)?;
    }
    Ok(())
}

/// Returns the median and the 99th percentile of some durations.
fn percentiles(ms: &[f64]) -> Outcome<[Sample; 2]> {
    let sample = |percent| match percentile(ms, percent) {
        Some(value) => Ok(Sample { value, cpu_us: None }),
        None => Err("no request was measured"),
    };
    Ok([sample(50)?, sample(99)?])
}

/// Writes one document repeatedly; returns the milliseconds from each acknowledgement until a scan
/// with the default consistency includes the write.
async fn probe(
    peer: &dyn Peer,
    documents: &Documents,
    time: Duration,
    seed: u64,
) -> Outcome<Vec<f64>> {
    let client = peer.target().connect().await?;
    let upsert = client.prepare(&peer.upsert(WRITTEN)).await?;
    let select = client.prepare(&peer.one_key(WRITTEN, EIGHT_SLICES)).await?;
    let mut rng = fastrand::Rng::with_seed(seed);
    let (begun, mut ms) = (Instant::now(), Vec::new());
    // Above all other keys, and unlike those of other rounds.
    let first = (documents.rows() as i64) * 4 + (seed >> 24) as i64;
    for key in first.. {
        if begun.elapsed() >= time {
            break;
        }
        let document = documents.with_key(PROBE, key);
        client.execute_raw(&upsert, peer.upsert_parameters()(&document)).await?;
        let acknowledged = Instant::now();
        while client.query(&select, &[&key]).await?.is_empty() {
            if acknowledged.elapsed() > SEEN_TIME_MAX {
                return Err(format!("{}: not seen for 10 s: n = {key}", peer.name()).into());
            }
        }
        ms.push(acknowledged.elapsed().as_secs_f64() * 1e3);
        tokio::time::sleep(Duration::from_millis(rng.u64(0..=PAUSE_MS_MAX))).await;
    }
    Ok(ms)
}

/// Scans ranges one after another, each with all writes acknowledged before; returns the duration
/// of each in milliseconds.
async fn scans_of_everything(
    peer: &dyn Peer,
    documents: &Documents,
    time: Duration,
    seed: u64,
) -> Outcome<Vec<f64>> {
    let client = session(peer).await?;
    let range = client.prepare(&peer.range(WRITTEN, EIGHT_SLICES)).await?;
    let mut rng = fastrand::Rng::with_seed(seed);
    let (begun, mut ms) = (Instant::now(), Vec::new());
    while begun.elapsed() < time {
        // The load changes keys, so that the number of rows varies.
        let from = rng.u64(0..documents.rows() - WIDTH) as i64;
        let sent = Instant::now();
        client.query(&range, &[&from, &(from + WIDTH as i64)]).await?;
        ms.push(sent.elapsed().as_secs_f64() * 1e3);
    }
    Ok(ms)
}
