//! Measures for how long a large commit delays the other writers of its bucket: `cargo run
//! --release -p sextant-documents --example large_group [DOCUMENTS] [DIR]`
//!
//! A commit is one group of mutations, sorted by vbucket. First the group is built, appended to
//! the log, and synced; during the last two steps its sorted runs for the document table are
//! built by other threads. Then the runs are added to the table. A write after the commit waits
//! for all of this.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use documents::change_log::{ChangeLog, ChangeLogOptions, GroupBuilder, LogState};
use documents::ownership::Ownership;
use documents::store::{DiskStore, DiskStoreOptions};
use documents::{Batch, BucketRecord, DocumentStore, Mutation};
use proto::Result;
use proto::env::Env;
use proto::model::assignment::VbucketSet;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::ids::{BucketId, NodeId, Seqno, Vbuuid, vbucket_of};
use proto::rpc::mutation::MutationKind;
use tokio::time::Instant;

const VBUCKETS: u16 = 64;
const DOCUMENT_BYTES: usize = 150;
const BUCKET: BucketId = BucketId(1);
const BRANCH: Vbuuid = Vbuuid(1);

/// Returns `count` mutations, each of a new document; the ids are in random order.
fn mutations(count: u64, name: &str, ends: &mut [u64]) -> Vec<Arc<Mutation>> {
    let document = Bytes::from(vec![b'x'; DOCUMENT_BYTES]);
    let mutation = |n: u64| {
        let id: Arc<str> =
            format!("{name}:{:08}", n.wrapping_mul(0x9e37_79b1) % 100_000_000).into();
        let vbucket = vbucket_of(&id, VBUCKETS);
        let end = &mut ends[usize::from(vbucket.0)];
        *end += 1;
        Arc::new(Mutation::new((vbucket, Seqno(*end)), id, MutationKind::Upsert, document.clone()))
    };
    (0..count).map(mutation).collect()
}

fn log_alone(env: &Env, dir: &Path, all: &[Arc<Mutation>]) -> Result<()> {
    let (options, state) = (ChangeLogOptions::default(), LogState::new(VBUCKETS));
    let log = ChangeLog::open(env, dir, &options, &state, &mut |_, _| Ok(()))?;
    let (mut group, at) = (GroupBuilder::default(), Instant::now());
    all.iter().for_each(|mutation| group.mutation(BRANCH, mutation));
    println!("  build the group:  {:?}", at.elapsed());
    let at = Instant::now();
    log.append(&group)?;
    println!("  append it:        {:?}", at.elapsed());
    let at = Instant::now();
    log.sync()?;
    println!("  sync:             {:?}", at.elapsed());
    Ok(())
}

fn store(env: &Env, dir: &Path, count: u64) -> Result<()> {
    let store = DiskStore::open(env, dir, DiskStoreOptions::default())?;
    let record = BucketRecord {
        info: BucketInfo::new(BUCKET, "b", VBUCKETS, SourceKind::Embedded, NodeId(1)),
        branches: vec![vec![(BRANCH, 0)]; usize::from(VBUCKETS)],
        ownership: Ownership { owned: VbucketSet::all(VBUCKETS), ..Ownership::default() },
        given_up: Default::default(),
        commits: Default::default(),
    };
    store.apply_catalog(1, &[record], &[])?;
    let mut ends = vec![0; usize::from(VBUCKETS)];
    for name in ["first", "second"] {
        let mut mutations = mutations(count, name, &mut ends);
        mutations.sort_by_key(|mutation| mutation.vbucket);
        let batch = Arc::new(Batch { mutations, ..Batch::default() });
        let at = Instant::now();
        let show = store.log(BUCKET, &batch)?;
        println!("  log, {name} group:  {:?}", at.elapsed());
        let at = Instant::now();
        show()?;
        println!("  show, {name} group: {:?}", at.elapsed());
        while store.maintain()? {}
    }
    Ok(())
}

fn main() -> Result<()> {
    let env = Env::real();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count = arguments.first().and_then(|count| count.parse().ok()).unwrap_or(500_000);
    let dir = PathBuf::from(arguments.get(1).map_or("large_group.tmp", String::as_str));
    if env.fs.exists(&dir) {
        env.fs.remove_dir_all(&dir)?;
    }
    println!("{count} documents, the log alone:");
    log_alone(&env, &dir.join("log"), &mutations(count, "first", &mut vec![0; VBUCKETS.into()]))?;
    println!("the store:");
    store(&env, &dir.join("store"), count)?;
    Ok(env.fs.remove_dir_all(&dir)?)
}
