//! Ranges and single keys by an index, at random places.

use std::sync::Arc;

use super::super::super::Outcome;
use super::super::answers::{compare_ranges, compare_whole};
use super::super::bench::{Bench, CLIENTS, READ};
use super::super::documents::Documents;
use super::super::figures::{Group, Sample, Unit};
use super::super::load::{Draw, Load, Request, run};
use super::super::peers::{BY_KEY, EIGHT_SLICES, Index, ONE_SLICE, Peer};

/// The number of requests of each client before a measurement.
const WARM_UP: u64 = 20;

/// The width of a range; or a single key.
#[derive(Clone, Copy)]
enum Width {
    Rows(u64),
    Key,
}

/// The reads that are measured, by name, index and width.
const READS: [(&str, Index, Width); 7] = [
    ("range of 100 rows, 1 slice", ONE_SLICE, Width::Rows(100)),
    ("range of 1 row, 8 slices", EIGHT_SLICES, Width::Rows(1)),
    ("range of 10 rows, 8 slices", EIGHT_SLICES, Width::Rows(10)),
    ("range of 100 rows, 8 slices", EIGHT_SLICES, Width::Rows(100)),
    ("range of 1,000 rows, 8 slices", EIGHT_SLICES, Width::Rows(1_000)),
    ("one key, 8 slices", EIGHT_SLICES, Width::Key),
    ("one key, partitioned by the key", BY_KEY, Width::Key),
];

/// Compares the answers of all reads, and measures the reads.
pub async fn measure(bench: &mut Bench) -> Outcome<()> {
    for index in [ONE_SLICE, EIGHT_SLICES, BY_KEY] {
        compare_whole(&bench.of_ranges(), Some(&bench.documents), READ, index).await?;
    }
    for (name, index, width) in READS {
        let rows = match width {
            Width::Rows(rows) => rows,
            Width::Key => 1,
        };
        compare_ranges(&bench.of_ranges(), &bench.documents, READ, index, rows).await?;
        let (documents, time) = (bench.documents, bench.time);
        let one = async |peer: &dyn Peer, seed: u64| {
            let (statement, draw) = match width {
                Width::Rows(rows) => (peer.range(READ, index), draw_range(&documents, rows)),
                Width::Key => (peer.one_key(READ, index), draw_key(&documents)),
            };
            let warm_up = WARM_UP;
            let (session, clients, per_s) = ("", CLIENTS, None);
            let load = Load { statement, session, draw, clients, time, per_s, warm_up, seed };
            let done = run(peer.target(), load).await?;
            Ok([Sample { value: done.per_s(), cpu_us: Some(done.cpu_us_each()) }])
        };
        let [series] = bench.alternate(&bench.of_ranges(), one).await?;
        bench.add(name, Group::Ranges, Unit::RequestsPerS, &series)?;
    }
    Ok(())
}

/// Returns a function that draws ranges of n within the documents.
pub fn draw_range(documents: &Documents, width: u64) -> Draw {
    let rows = documents.rows();
    Arc::new(move |rng| {
        let from = rng.u64(0..=rows - width) as i64;
        Request { parameters: vec![Box::new(from), Box::new(from + width as i64)], rows: width }
    })
}

/// Returns a function that draws values of n.
fn draw_key(documents: &Documents) -> Draw {
    let rows = documents.rows();
    Arc::new(move |rng| Request { parameters: vec![Box::new(rng.u64(0..rows) as i64)], rows: 1 })
}
