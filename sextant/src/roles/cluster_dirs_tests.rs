//! Tests of the checks of several nodes' directories.
#![allow(clippy::disallowed_methods, reason = "a test that plays the operator of real files")]

use proto::model::ids::NodeId;
use proto::model::node::Role;

use super::*;

/// A data directory of a process with three coordinators and a projector.
struct Data {
    dir: tempfile::TempDir,
    env: Env,
}

impl Data {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), env: Env::real() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Creates the directory of a node of a cluster.
    fn node(&self, name: &str, role: Role, cluster: u128) {
        let dir = self.path(name);
        std::fs::create_dir(&dir).unwrap();
        let mut identity = DirectoryIdentity::open(
            &*self.env.fs,
            &dir,
            (role, NodeId(1)),
            &*self.env.random,
            false,
        )
        .unwrap();
        identity.cluster = Some(ClusterId(cluster));
        identity.write(&*self.env.fs, &dir).unwrap();
    }

    fn coordinator(&self, name: &str, cluster: u128, has_log: bool) {
        self.node(name, Role::Coordinator, cluster);
        if has_log {
            std::fs::write(self.path(name).join("raft.redb"), "a log").unwrap();
        }
    }

    fn prepare(&self, force_new_cluster: bool) -> Result<()> {
        let coordinators = [1, 2, 3].map(|n| self.path(&format!("coordinator-{n}")));
        prepare_directories(&self.env, self.dir.path(), &coordinators, force_new_cluster)
    }
}

/// A coordinator without its log must not start, since it would vote as if it had confirmed
/// nothing.
#[test]
fn a_coordinator_without_its_log_is_refused_beside_others_that_have_theirs() {
    let data = Data::new();
    data.coordinator("coordinator-1", 7, true);
    data.coordinator("coordinator-2", 7, false);
    let error = data.prepare(false).unwrap_err();
    assert!(error.message.contains("coordinator-2 has lost its log"), "{error}");
    data.prepare(true).expect("the cluster is given up");
    let old = data.path("old-cluster-1");
    assert!(old.join("coordinator-1/raft.redb").exists() && old.join("coordinator-2").exists());
    assert!(!data.path("coordinator-1").exists() && !data.path("coordinator-2").exists());
}

#[test]
fn a_whole_cluster_stays_whatever_the_flag_says() {
    let data = Data::new();
    data.coordinator("coordinator-1", 7, true);
    data.node("projector-1", Role::Projector, 7);
    data.prepare(false).unwrap();
    data.prepare(true).unwrap();
    assert!(data.path("coordinator-1/raft.redb").exists() && !data.path("old-cluster-1").exists());
}

/// A copy of a directory next to the others is not a node. If it were, each start with the flag
/// would begin another cluster.
#[test]
fn a_copy_of_a_directory_beside_it_counts_for_nothing() {
    let data = Data::new();
    data.coordinator("coordinator-1.bak", 7, true);
    data.node("projector-1", Role::Projector, 7);
    assert!(data.prepare(false).is_err(), "no coordinator has a log");
    data.prepare(true).unwrap();
    assert!(data.path("old-cluster-1/projector-1").exists());
    // The new cluster.
    data.coordinator("coordinator-1", 8, true);
    data.prepare(false).expect("the copy is of another cluster");
    data.prepare(true).unwrap();
    assert!(data.path("coordinator-1/raft.redb").exists(), "nothing is moved again");
}
