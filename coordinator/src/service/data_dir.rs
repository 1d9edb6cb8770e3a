//! Opens the data directory of a member, and keeps the id of the cluster in it.

use std::fmt::Display;
use std::sync::Arc;

use proto::client::{DataDir, NodeIdentity};
use proto::env::Env;
use proto::model::node::{NodeInfo, Role};
use proto::{Error, ErrorCode, Result};

use crate::config::Config;
use crate::raft::has_log;
use crate::replica::Replica;

/// The content of the data directory's VERSION file.
const DATA_VERSION: &str = "sextant coordinator, format 3\n";

/// Opens the data directory of a member. Returns an error if the member belongs to a cluster and
/// has lost its log. Without the log a single member would lead with an empty state, to which the
/// data of other processes does not belong. A member of several has forgotten its votes. Blocks
/// the thread.
pub(super) fn open_data_dir(env: &Env, config: &Config) -> Result<DataDir> {
    let dir = &config.dir;
    let node = NodeInfo {
        id: config.node,
        role: Role::Coordinator,
        address: String::new(),
        zone: String::new(),
    };
    let opened = DataDir::open(env, dir, DATA_VERSION, &node, || has_log(&*env.fs, dir))?;
    if let Some(cluster) = opened.identity.cluster().filter(|_| !opened.had_data) {
        if !config.force_new_cluster {
            let what = format!(
                "the raft log in {} is missing, though the directory belongs to cluster {cluster}",
                dir.display()
            );
            return Err(Error::new(ErrorCode::Corrupt, what).with_hint(
                "restore the log; if the other members run, they go on without this one: REMOVE COORDINATOR removes it, \
                 and ADD COORDINATOR adds one with a new --id and an empty directory; if no member has a log, \
                 --force-new-cluster begins a new cluster, which refuses the data of all other processes",
            ));
        }
        tracing::warn!(%cluster, "a new cluster begins: the data of the old one is refused");
        opened.identity.leave_cluster()?;
    }
    Ok(opened)
}

/// Stores the cluster's id in the directory as soon as the log contains it. Ends only with an
/// error: the log belongs to another cluster, or the member has stopped.
pub(super) async fn store_cluster_id(
    env: Env,
    identity: Arc<NodeIdentity>,
    replica: Arc<Replica>,
) -> impl Display + Send {
    let mut changes = replica.changes();
    loop {
        let cluster = replica.view().state.cluster();
        if cluster.is_some() && identity.cluster() != cluster {
            let identity = Arc::clone(&identity);
            if let Err(error) = env.blocking(move || identity.accept_cluster(cluster)).await {
                return error.to_string();
            }
        }
        if changes.changed().await.is_err() {
            return "the member has stopped".to_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proto::env::sim;
    use proto::model::identity::ClusterId;
    use proto::model::ids::NodeId;

    use super::*;

    #[test]
    fn a_member_that_lost_its_log_starts_only_when_an_operator_gives_the_cluster_up() {
        let (env, _, _fs) = sim::world(1);
        let members = vec![(NodeId(1), "a:1".to_owned())];
        let mut config = Config::new(NodeId(1), members, PathBuf::from("/coordinator"));
        let opened = open_data_dir(&env, &config).expect("a new directory");
        opened.identity.accept_cluster(Some(ClusterId(7))).unwrap();
        drop(opened);
        let error = open_data_dir(&env, &config).err().expect("the log is gone");
        assert_eq!(error.code, ErrorCode::Corrupt);
        assert!(error.message.contains("/coordinator"), "{error}");
        let hint = error.hint.expect("the ways out");
        for way in ["--force-new-cluster", "REMOVE COORDINATOR", "ADD COORDINATOR"] {
            assert!(hint.contains(way), "{hint}");
        }
        config.force_new_cluster = true;
        assert_eq!(open_data_dir(&env, &config).expect("given up").identity.cluster(), None);
        config.force_new_cluster = false;
        open_data_dir(&env, &config).expect("a new directory again");
        env.fs.remove_file(std::path::Path::new("/coordinator/VERSION")).unwrap();
        let log = env.fs.open(&config.dir.join("raft.redb"), proto::env::OpenMode::Create);
        drop(log.unwrap());
        let error = open_data_dir(&env, &config).err().expect("no version");
        assert!(error.message.contains("/coordinator/VERSION"), "{error}");
    }
}
