//! Tests of the data directory of a router, and of the replacement of its catalog by the
//! coordinators' catalog.

use proto::env::FileSystem;
use proto::env::sim::{SimClock, SimFs, world};
use proto::model::ids::NodeId;
use proto::model::node::Role;
use proto::rpc::api::{CoordinatorApi, Directory, IndexerApi, ProjectorApi};

use super::super::file::FILE;
use super::super::file::tests::{catalog, kept};
use super::*;
use crate::context::tests::context_of;

const DIR: &str = "/router";

fn node(id: u64) -> NodeInfo {
    NodeInfo { id: NodeId(id), role: Role::Router, address: "host:1".into(), zone: String::new() }
}

fn open(env: &Env) -> RouterData {
    RouterData::open(env, Path::new(DIR), &node(301)).expect("its own directory")
}

/// Returns a data directory with a stored catalog.
fn filled() -> (Env, SimFs) {
    let (env, _, fs) = world(1);
    let data = open(&env);
    assert!(data.take_stored().is_none(), "a new directory");
    data.write(&kept(30)).expect("written");
    (env, fs)
}

#[test]
fn the_next_process_finds_what_the_last_one_has_kept() {
    let (env, _) = filled();
    let data = open(&env);
    assert_eq!(data.take_stored(), Some(kept(30)));
    assert_eq!(data.take_stored(), None, "it is taken over once");
    data.remove_file().expect("removed");
    data.write(&kept(31)).expect("nothing is written any more");
    drop(data);
    assert_eq!(open(&env).take_stored(), None);
}

#[test]
fn a_directory_belongs_to_one_process_and_one_router() {
    let (env, _) = filled();
    let held = open(&env);
    assert!(RouterData::open(&env, Path::new(DIR), &node(301)).is_err(), "locked");
    drop(held);
    let refused = RouterData::open(&env, Path::new(DIR), &node(302)).err().expect("another router");
    assert!(refused.message.contains("router 301"), "{refused}");
}

#[test]
fn a_damaged_file_and_one_of_another_cluster_are_ignored_and_replaced() {
    let (env, fs) = filled();
    fs.flip_bit(&FILE.path(Path::new(DIR)), 500).expect("flipped");
    let data = open(&env);
    assert_eq!(data.take_stored(), None, "damaged");
    data.write(&kept(31)).expect("written");
    drop(data);
    assert_eq!(open(&env).take_stored(), Some(kept(31)));

    let mut foreign = kept(32);
    Arc::make_mut(&mut foreign.catalog).cluster = Some(ClusterId(77));
    FILE.write(&*env.fs, Path::new(DIR), &foreign).expect("a file from elsewhere");
    let data = open(&env);
    assert_eq!(data.take_stored(), None, "of another cluster");
    data.write(&foreign).expect("the router has followed that cluster");
    drop(data);
    assert_eq!(open(&env).take_stored(), Some(foreign), "the directory belongs to it now");
}

#[test]
fn a_file_without_the_identity_of_its_directory_is_ignored() {
    let (env, fs) = filled();
    fs.remove_file(&Path::new(DIR).join("IDENTITY")).expect("removed");
    assert_eq!(open(&env).take_stored(), None);
}

/// A directory of services without any service.
struct NoServices;

impl Directory for NoServices {
    fn coordinator(&self) -> Arc<dyn CoordinatorApi> {
        unreachable!("the task asks nobody")
    }
    fn coordinator_member(&self, _: NodeId) -> Result<Arc<dyn CoordinatorApi>> {
        unreachable!("the task asks nobody")
    }
    fn projector(&self, _: &NodeInfo) -> Arc<dyn ProjectorApi> {
        unreachable!("the task asks nobody")
    }
    fn indexer(&self, _: &NodeInfo) -> Arc<dyn IndexerApi> {
        unreachable!("the task asks nobody")
    }
}

/// A router with simulated coordinators, and the task that stores their catalog.
struct Kept301 {
    context: RouterContext,
    fs: SimFs,
    clock: Arc<SimClock>,
    _task: proto::env::Task,
}

impl Kept301 {
    fn start() -> Self {
        let (env, clock, fs) = world(1);
        let mut context = context_of(0, Arc::new(NoServices));
        context.env = env.clone();
        let (data, its_context) = (Arc::new(open(&env)), context.clone());
        let task = env.spawn_restarted("kept catalog", move || {
            keep_file_current(its_context.clone(), Arc::clone(&data))
        });
        Self { context, fs, clock, _task: task }
    }

    fn hears(&self, cas: u64) {
        self.context.catalog.store(Arc::new(catalog(cas)));
        self.context.heard.note_catalog();
        self.context.catalog_changed.send_modify(|count| *count += 1);
    }

    /// Returns the number of the catalog in the file after a pause.
    async fn kept_after(&self, pause: Duration) -> Option<u64> {
        sleep(pause).await;
        let kept = FILE.read(&self.fs, Path::new(DIR)).expect("a file, if any");
        kept.map(|kept| kept.catalog.cas)
    }

    fn heard_unix_ms(&self) -> u64 {
        let kept = FILE.read(&self.fs, Path::new(DIR)).expect("a file");
        kept.expect("a file").heard_unix_ms
    }
}

#[tokio::test(start_paused = true)]
async fn a_catalog_is_kept_at_once_and_the_following_ones_after_a_pause() {
    let router = Kept301::start();
    let short = Duration::from_millis(10);
    assert_eq!(router.kept_after(WRITE_EVERY * 2).await, None, "there is nothing to keep");
    router.hears(30);
    assert_eq!(router.kept_after(short).await, Some(30));
    router.hears(31);
    router.hears(32);
    assert_eq!(router.kept_after(short).await, Some(30), "many changes are few writes");
    assert_eq!(router.kept_after(WRITE_EVERY).await, Some(32));
}

#[tokio::test(start_paused = true)]
async fn the_time_of_the_last_answer_is_kept_without_a_change() {
    let router = Kept301::start();
    router.hears(30);
    assert_eq!(router.kept_after(WRITE_EVERY).await, Some(30));
    let (first, written) = (router.heard_unix_ms(), router.fs.written_bytes());
    assert_eq!(router.kept_after(REFRESH * 3).await, Some(30));
    assert_eq!(router.fs.written_bytes(), written, "nobody has answered meanwhile");
    router.clock.advance(600_000);
    router.context.heard.note_catalog();
    assert_eq!(router.kept_after(REFRESH * 2).await, Some(30));
    assert!(router.fs.written_bytes() > written);
    assert!(first + 500_000 < router.heard_unix_ms());
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_fails_once_is_tried_again() {
    let router = Kept301::start();
    router.fs.fail_at(router.fs.operations() + 1);
    router.hears(30);
    assert_eq!(router.kept_after(REFRESH * 2).await, Some(30));
}
