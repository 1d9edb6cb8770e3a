//! Tests that a cluster in one process ends when one of its services ends.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proto::env::{File, FileSystem, OpenMode};
use proto::model::bucket::SourceKind;
use proto::rpc::command::{Command, CreateBucket};

use super::*;

/// A switch that makes all writes to the disk fail.
#[derive(Clone, Default)]
struct Full(Arc<AtomicBool>);

impl Full {
    fn check(&self) -> io::Result<()> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }
}

struct FullDisk(Arc<dyn FileSystem>, Full);
struct FullFile(Arc<dyn File>, Full);

impl FileSystem for FullDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(FullFile(self.0.open(path, mode)?, self.1.clone())))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.0.remove_file(path)
    }
    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.0.remove_dir_all(path)
    }
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.0.create_dir_all(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.0.sync_dir(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.0.list(path)
    }
    fn exists(&self, path: &Path) -> bool {
        self.0.exists(path)
    }
    fn lock_dir(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        self.0.lock_dir(path)
    }
}

impl File for FullFile {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buf, offset)
    }
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.1.check()?;
        self.0.write_all_at(buf, offset)
    }
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.1.check()?;
        self.0.set_len(len)
    }
    fn sync(&self) -> io::Result<()> {
        self.1.check()?;
        self.0.sync()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_cannot_write_its_files_ends_the_cluster() {
    let (mut env, full) = (Env::real(), Full::default());
    env.fs = Arc::new(FullDisk(Arc::clone(&env.fs), full.clone()));
    let data = tempfile::tempdir().expect("a directory");
    let config = ClusterConfig {
        data_dir: data.path().to_owned(),
        coordinators: 1,
        indexers: 1,
        log_bytes_max: None,
        files_dir: None,
        scans_max: None,
        memory_bytes: None,
        large_commit_changes: None,
        recovery: RecoveryFlags::default(),
    };
    let cluster = Cluster::start(config, env).await.expect("a cluster");
    let quiet = tokio::time::timeout(Duration::from_millis(300), cluster.stopped()).await;
    assert!(quiet.is_err(), "all services run");
    full.0.store(true, Ordering::Relaxed);
    let command = Command::CreateBucket(CreateBucket {
        name: "b".into(),
        vbuckets: 1,
        source: SourceKind::Embedded,
        projectors: 1,
        copies: None,
        if_not_exists: false,
    });
    let coordinator = cluster.directory().coordinator();
    let proposed = coordinator.propose(command.into());
    let _fails = tokio::time::timeout(Duration::from_secs(5), proposed).await;
    let stopped = tokio::time::timeout(Duration::from_secs(10), cluster.stopped()).await;
    let error = stopped.expect("the end of a service is noticed");
    assert!(error.message.contains("has stopped"), "{error}");
}
