//! CREATE INDEX and COPY.
//!
//! A COPY loads a bucket with one index, and its measurement ends when a read that includes all
//! acknowledged writes is answered. At PostgreSQL the COPY loads a table with a primary key and an
//! equal index.

use std::time::Instant;

use bytes::Bytes;
use futures::SinkExt;

use super::super::super::Outcome;
use super::super::answers::{compare_whole, session};
use super::super::bench::{Bench, READ, WRITTEN, execute, until_quiet};
use super::super::documents::Documents;
use super::super::figures::{Group, Sample, Unit};
use super::super::peers::{EIGHT_SLICES, Peer};

/// The size of a piece of a COPY's text, in bytes.
const PIECE_BYTES: usize = 256 << 10;

/// Loads the bucket that is only read, and creates its indexes.
pub async fn load_read_bucket(bench: &Bench) -> Outcome<()> {
    for peer in bench.of_ranges() {
        let client = session(peer).await?;
        execute(&client, &peer.create_bucket(READ)).await?;
        copy(peer, READ, &pieces(peer, &bench.documents)).await?;
        for index in peer.read_indexes() {
            execute(&client, &peer.create_index(READ, *index)).await?;
        }
        for statement in peer.after_load(READ) {
            execute(&client, &statement).await?;
        }
    }
    until_quiet(&bench.of_ranges()).await
}

/// Measures CREATE INDEX over all documents: the index of eight slices is dropped and created again.
pub async fn create_index(bench: &mut Bench) -> Outcome<()> {
    let rows = bench.documents.rows();
    let measure = async |peer: &dyn Peer, _: u64| {
        let client = session(peer).await?;
        execute(&client, &peer.drop_index(READ, EIGHT_SLICES)).await?;
        until_quiet(&[peer]).await?;
        let (cpu_us, begun) = (peer.target().processes.cpu_us()?, Instant::now());
        execute(&client, &peer.create_index(READ, EIGHT_SLICES)).await?;
        Ok([sample(peer, rows, begun, cpu_us)?])
    };
    let [series] = bench.alternate(&bench.all(), measure).await?;
    compare_whole(&bench.all(), Some(&bench.documents), READ, EIGHT_SLICES).await?;
    bench.add("CREATE INDEX, 8 slices", Group::Loading, Unit::DocumentsPerS, &series)
}

/// Measures COPY into a new bucket with one index. The last bucket is kept, for the measurement of
/// writes.
pub async fn copy_in(bench: &mut Bench) -> Outcome<()> {
    let documents = bench.documents;
    let measure = async |peer: &dyn Peer, _: u64| {
        let client = session(peer).await?;
        execute(&client, &peer.drop_bucket(WRITTEN)).await?;
        execute(&client, &peer.create_bucket(WRITTEN)).await?;
        execute(&client, &peer.create_index(WRITTEN, EIGHT_SLICES)).await?;
        let pieces = pieces(peer, &documents);
        until_quiet(&[peer]).await?;
        let (cpu_us, begun) = (peer.target().processes.cpu_us()?, Instant::now());
        copy(peer, WRITTEN, &pieces).await?;
        see(peer, WRITTEN).await?;
        Ok([sample(peer, documents.rows(), begun, cpu_us)?])
    };
    let [series] = bench.alternate(&bench.all(), measure).await?;
    compare_whole(&bench.all(), Some(&documents), WRITTEN, EIGHT_SLICES).await?;
    let name = "COPY into a bucket with an index, until visible";
    bench.add(name, Group::Loading, Unit::DocumentsPerS, &series)?;
    for peer in bench.all() {
        let client = session(peer).await?;
        for statement in peer.after_load(WRITTEN) {
            execute(&client, &statement).await?;
        }
    }
    Ok(())
}

/// Waits until an index contains all acknowledged writes.
pub async fn see(peer: &dyn Peer, bucket: &str) -> Outcome<()> {
    let client = session(peer).await?;
    client.query(&peer.one_key(bucket, EIGHT_SLICES), &[&0i64]).await?;
    Ok(())
}

fn sample(peer: &dyn Peer, rows: u64, begun: Instant, cpu_us: f64) -> Outcome<Sample> {
    let value = rows as f64 / begun.elapsed().as_secs_f64();
    let cpu_us = (peer.target().processes.cpu_us()? - cpu_us) / rows as f64;
    Ok(Sample { value, cpu_us: Some(cpu_us) })
}

/// Returns the text of a COPY in pieces, prepared before the measurement begins.
fn pieces(peer: &dyn Peer, documents: &Documents) -> Vec<Bytes> {
    let (mut pieces, mut piece) = (Vec::new(), String::new());
    for document in documents.all() {
        piece += &peer.line(&document);
        piece.push('\n');
        if piece.len() >= PIECE_BYTES {
            pieces.push(Bytes::from(std::mem::take(&mut piece)));
        }
    }
    pieces.push(Bytes::from(piece));
    pieces
}

async fn copy(peer: &dyn Peer, bucket: &str, pieces: &[Bytes]) -> Outcome<()> {
    let client = session(peer).await?;
    let mut sink = Box::pin(client.copy_in(&peer.copy_in(bucket)).await?);
    for piece in pieces {
        sink.send(piece.clone()).await?;
    }
    sink.as_mut().finish().await?;
    Ok(())
}
