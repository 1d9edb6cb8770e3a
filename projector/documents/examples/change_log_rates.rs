//! Measures the rates of a change log on this machine: appends in large and in small groups,
//! reads of one vbucket, and the size of the log's index. `cargo run --release -p
//! sextant-documents --example change_log_rates [DIR]`

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use documents::Mutation;
use documents::change_log::{ChangeLog, ChangeLogOptions, GroupBuilder, LogState, VbucketRange};
use proto::Result;
use proto::env::Env;
use proto::model::ids::{Seqno, VbucketId, Vbuuid};
use proto::rpc::mutation::MutationKind;
use tokio::time::Instant;

const VBUCKETS: u16 = 64;
const DOCUMENT_BYTES: usize = 170;

/// Returns `count` mutations, each of another document, distributed evenly over the vbuckets.
fn mutations(count: u64) -> Vec<Mutation> {
    let document = Bytes::from(vec![b'x'; DOCUMENT_BYTES]);
    let mutation = |n: u64| {
        let vbucket = VbucketId((n % u64::from(VBUCKETS)) as u16);
        let place = (vbucket, Seqno(n / u64::from(VBUCKETS) + 1));
        let id = format!("user::{n:012}").into();
        Mutation::new(place, id, MutationKind::Upsert, document.clone())
    };
    (0..count).map(mutation).collect()
}

fn per_second(count: u64, spent: Duration) -> String {
    format!("{:.2} million/s", count as f64 / spent.as_secs_f64() / 1e6)
}

fn index_bytes(dir: &Path, env: &Env) -> Result<u64> {
    let names = env.fs.list(dir)?;
    let indexes = names.iter().filter(|path| path.extension().is_some_and(|e| e == "index"));
    let len = |path: &PathBuf| Ok(env.fs.open(path, proto::env::OpenMode::Read)?.len()?);
    indexes.map(len).sum()
}

fn measure(env: &Env, dir: &Path, group_len: usize, all: &[Mutation]) -> Result<()> {
    if env.fs.exists(dir) {
        env.fs.remove_dir_all(dir)?;
    }
    let (options, state) = (ChangeLogOptions::default(), LogState::new(VBUCKETS));
    let log = ChangeLog::open(env, dir, &options, &state, &mut |_, _| Ok(()))?;
    let (mut group, begun) = (GroupBuilder::default(), Instant::now());
    let mut building = Duration::ZERO;
    for chunk in all.chunks(group_len) {
        let at = Instant::now();
        group.clear();
        chunk.iter().for_each(|mutation| group.mutation(Vbuuid(1), mutation));
        building += at.elapsed();
        log.append(&group)?;
    }
    let (spent, count) = (begun.elapsed(), all.len() as u64);
    println!("groups of {group_len}: append {}", per_second(count, spent));
    println!(
        "  of which building the groups: {:.0}%",
        building.as_secs_f64() / spent.as_secs_f64() * 100.0
    );
    let at = Instant::now();
    log.sync()?;
    println!("  sync at the end: {:?}", at.elapsed());
    let at = Instant::now();
    let (mut after, mut read) = (Seqno(0), 0);
    loop {
        let range = VbucketRange { vbucket: VbucketId(7), after, to: Seqno(u64::MAX) };
        let found = log.read(range, 1 << 20)?;
        let Some(last) = found.last() else { break };
        (after, read) = (last.seqno, read + found.len() as u64);
    }
    println!("  read one vbucket: {} ({read} mutations)", per_second(read, at.elapsed()));
    let held = log.retained_bytes();
    println!("  {:.1} bytes of log for each mutation", held as f64 / count as f64);
    let closed = *log.segments().last().unwrap_or(&1) as f64 / held as f64;
    let index = index_bytes(dir, env)? as f64 / (count as f64 * closed);
    println!("  {index:.2} bytes of side files for each mutation");
    drop(log);
    let at = Instant::now();
    let log = ChangeLog::open(env, dir, &options, &state, &mut |_, _| Ok(()))?;
    println!("  open and replay everything: {}", per_second(count, at.elapsed()));
    let state = log.state();
    drop(log);
    let at = Instant::now();
    ChangeLog::open(env, dir, &options, &state, &mut |_, _| Ok(()))?;
    println!("  open at the end: {:?}", at.elapsed());
    Ok(env.fs.remove_dir_all(dir)?)
}

fn main() -> Result<()> {
    let env = Env::real();
    let dir =
        PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "change_log_rates.tmp".into()));
    let all = mutations(2_000_000);
    for _ in 0..2 {
        measure(&env, &dir, 10_000, &all)?;
    }
    measure(&env, &dir, 1, &all[..500_000])
}
