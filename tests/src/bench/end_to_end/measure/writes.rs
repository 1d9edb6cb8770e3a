//! Writes of single documents, each by a statement that is acknowledged when the document is
//! durable.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::super::super::Outcome;
use super::super::answers::{compare_whole, session};
use super::super::bench::{Bench, CLIENTS, WRITTEN, until_quiet};
use super::super::documents::Documents;
use super::super::figures::{Group, Sample, Unit};
use super::super::load::{Draw, Load, Request, run};
use super::super::peers::{EIGHT_SLICES, Peer};
use super::loading::see;

/// The number of clients that write many documents at once.
pub const MANY_CLIENTS: u64 = 64;
/// The number of requests of each client before a measurement.
const WARM_UP: u64 = 5;
/// The number of writes after which the answers of all servers are compared.
const COMPARED: u64 = 1_000;

/// Compares the servers after equal writes, and measures upserts of random documents.
pub async fn measure(bench: &mut Bench) -> Outcome<()> {
    compare_after_writes(bench).await?;
    for clients in [CLIENTS, MANY_CLIENTS] {
        let (documents, time) = (bench.documents, bench.time);
        let one = async |peer: &dyn Peer, seed: u64| {
            until_quiet(&[peer]).await?;
            let upserted = upsert(peer, &documents, clients, time, None, seed).await?;
            Ok([Sample { value: upserted.per_s, cpu_us: Some(upserted.cpu_us_each) }])
        };
        let [series] = bench.alternate(&bench.all(), one).await?;
        let name = format!("upserts, {clients} clients");
        bench.add(&name, Group::Writes, Unit::DocumentsPerS, &series)?;
    }
    Ok(())
}

/// The result of a load of upserts.
pub struct Upserted {
    /// Acknowledged writes per second.
    pub per_s: f64,
    /// The number of writes per second until the index contained all of them.
    pub visible_per_s: f64,
    /// The CPU time of the server for each write until the index contained all of them, in
    /// microseconds.
    pub cpu_us_each: f64,
}

/// Upserts random documents, all of which exist, with random keys.
pub async fn upsert(
    peer: &dyn Peer,
    documents: &Documents,
    clients: u64,
    time: Duration,
    per_s: Option<f64>,
    seed: u64,
) -> Outcome<Upserted> {
    let (statement, draw) = (peer.upsert(WRITTEN), draw(peer, documents));
    let warm_up = if per_s.is_some() { 0 } else { WARM_UP };
    let load = Load { statement, session: "", draw, clients, time, per_s, warm_up, seed };
    let done = run(peer.target(), load).await?;
    let acknowledged = Instant::now();
    see(peer, WRITTEN).await?;
    let until_visible = done.elapsed + acknowledged.elapsed();
    let (writes, cpu_us) = (done.ms.len() as f64, peer.target().processes.cpu_us()?);
    Ok(Upserted {
        per_s: done.per_s(),
        visible_per_s: writes / until_visible.as_secs_f64(),
        cpu_us_each: (cpu_us - done.cpu_us_before) / writes,
    })
}

/// Returns a function that draws a document and a new key for it.
fn draw(peer: &dyn Peer, documents: &Documents) -> Draw {
    let (documents, parameters) = (*documents, peer.upsert_parameters());
    Arc::new(move |rng| {
        let document = documents.with_key(rng.u64(0..documents.rows()), key(rng, &documents));
        Request { parameters: parameters(&document), rows: 0 }
    })
}

/// Draws a key.
fn key(rng: &mut Rng, documents: &Documents) -> i64 {
    rng.u64(0..documents.rows()) as i64
}

/// Writes equal documents to all servers and compares their indexes. Each written key is new and
/// distinct, so that there is only one order of the rows.
async fn compare_after_writes(bench: &Bench) -> Outcome<()> {
    for peer in bench.all() {
        let client = session(peer).await?;
        let upsert = client.prepare(&peer.upsert(WRITTEN)).await?;
        let mut rng = Rng::with_seed(COMPARED);
        for _ in 0..COMPARED {
            let i = rng.u64(0..bench.documents.rows());
            let document = bench.documents.with_key(i, (bench.documents.rows() + i) as i64);
            let parameters = peer.upsert_parameters()(&document);
            client.execute_raw(&upsert, parameters).await?;
        }
    }
    compare_whole(&bench.all(), None, WRITTEN, EIGHT_SLICES).await
}
