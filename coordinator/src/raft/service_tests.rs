//! Tests members as tasks, with real files and real time.

use std::sync::Mutex;

use bytes::Bytes;
use proto::ErrorCode;
use proto::env::{BoxFuture, Spawner, Task};
use proto::model::ids::NodeId;

use super::*;

/// A state machine that adds numbers up.
#[derive(Default)]
struct Sum(u64);

impl StateMachine for Sum {
    type Outcome = u64;

    fn apply(&mut self, _index: u64, data: &[u8]) -> Result<u64> {
        self.0 += u64::from(data[0]);
        Ok(self.0)
    }

    fn snapshot(&self) -> Result<Vec<u8>> {
        Ok(self.0.to_le_bytes().to_vec())
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<()> {
        self.0 = u64::from_le_bytes(snapshot.try_into().unwrap());
        Ok(())
    }
}

#[derive(Default)]
struct Switch(Mutex<BTreeMap<NodeId, RaftHandle<u64>>>);

impl PeerTransport for Switch {
    fn send(&self, to: NodeId, message: RaftMessage) {
        if let Some(handle) = self.0.lock().unwrap().get(&to) {
            handle.deliver(message);
        }
    }
}

/// The behaviour of a member's disk.
#[derive(Clone, Copy, PartialEq)]
enum Disk {
    Works,
    Hangs,
    Panics,
}

/// A spawner of real tasks over a disk that can be made to fail.
struct OverDisk(Arc<dyn Spawner>, watch::Receiver<Disk>);

impl Spawner for OverDisk {
    fn spawn(&self, name: &'static str, future: BoxFuture<()>) -> Task {
        self.0.spawn(name, future)
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        let mut disk = self.1.clone();
        let write = async move {
            let found = disk.wait_for(|disk| *disk != Disk::Hangs).await.map(|disk| *disk);
            assert!(found.ok() != Some(Disk::Panics), "as the disk was told");
            work();
        };
        self.0.spawn("disk", Box::pin(write)).detach();
    }
}

struct Cluster {
    switch: Arc<Switch>,
    members: BTreeMap<NodeId, (RaftHandle<u64>, Task)>,
    disks: BTreeMap<NodeId, watch::Sender<Disk>>,
    dir: tempfile::TempDir,
}

impl Cluster {
    fn new(size: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (switch, members, disks) = Default::default();
        let mut cluster = Self { switch, members, disks, dir };
        (1..=size).for_each(|id| cluster.start(NodeId(id), size));
        cluster
    }

    fn start(&mut self, id: NodeId, size: u64) {
        let config = RaftConfig::new(id, (1..=size).map(NodeId).collect());
        let dir = self.dir.path().join(id.to_string());
        let disk = watch::Sender::new(Disk::Works);
        let mut env = Env::real();
        env.spawner = Arc::new(OverDisk(env.spawner, disk.subscribe()));
        self.disks.insert(id, disk);
        let (service, handle) =
            RaftService::open(config, &dir, Sum::default(), env.clone(), self.switch.clone())
                .unwrap();
        self.switch.0.lock().unwrap().insert(id, handle.clone());
        let task = env.spawn_request("raft", async move {
            let _ = service.run().await;
        });
        self.members.insert(id, (handle, task));
    }

    fn stop(&mut self, id: NodeId) {
        self.switch.0.lock().unwrap().remove(&id);
        self.members.remove(&id);
    }

    /// Waits for another leader than `first`.
    async fn leader_after(&self, first: NodeId) -> RaftHandle<u64> {
        let other = async {
            loop {
                let others = self.members.iter().filter(|(id, _)| **id != first);
                for (_, (handle, _)) in others {
                    if handle.role().borrow().leads {
                        return handle.clone();
                    }
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), other).await.expect("another leader")
    }

    async fn leader(&self) -> (NodeId, RaftHandle<u64>) {
        loop {
            for (id, (handle, _)) in &self.members {
                if handle.role().borrow().leads {
                    return (*id, handle.clone());
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn proposals_are_answered_and_survive_restarts() {
    let mut cluster = Cluster::new(1);
    let (id, handle) = cluster.leader().await;
    assert_eq!(handle.propose(Bytes::from_static(&[3])).await.unwrap(), 3);
    assert_eq!(handle.propose(Bytes::from_static(&[4])).await.unwrap(), 7);
    cluster.stop(id);
    // The log is free when the last write of the old task has ended.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(
        handle.propose(Bytes::from_static(&[4])).await.unwrap_err().code,
        ErrorCode::Unavailable
    );
    cluster.start(id, 1);
    let (_, handle) = cluster.leader().await;
    assert_eq!(handle.propose(Bytes::from_static(&[5])).await.unwrap(), 12);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_members_survive_the_loss_of_their_leader() {
    let mut cluster = Cluster::new(3);
    let (first, handle) = cluster.leader().await;
    let many = (0..200).map(|_| handle.propose(Bytes::from_static(&[1])));
    let mut sums: Vec<u64> =
        futures::future::join_all(many).await.into_iter().map(Result::unwrap).collect();
    sums.sort_unstable();
    assert_eq!(sums, (1..=200).collect::<Vec<_>>(), "each proposal is applied once, in one order");

    let follower = cluster.members.iter().find(|(id, _)| **id != first).unwrap().1.0.clone();
    let refused = follower.propose(Bytes::from_static(&[1])).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::NotLeader);

    cluster.stop(first);
    let handle = cluster.leader_after(first).await;
    assert_eq!(handle.propose(Bytes::from_static(&[1])).await.unwrap(), 201);
    tokio::time::sleep(Duration::from_millis(100)).await;
    cluster.start(first, 3);
    let (_, handle) = cluster.leader().await;
    assert_eq!(handle.propose(Bytes::from_static(&[1])).await.unwrap(), 202);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_disk_hangs_or_whose_write_panics_loses_leadership() {
    for disk in [Disk::Hangs, Disk::Panics] {
        let cluster = Cluster::new(3);
        let (first, handle) = cluster.leader().await;
        assert_eq!(handle.propose(Bytes::from_static(&[1])).await.unwrap(), 1);
        cluster.disks[&first].send_replace(disk);
        let lost =
            tokio::time::timeout(Duration::from_secs(10), handle.propose(Bytes::from_static(&[1])));
        let (lost, second) = tokio::join!(lost, cluster.leader_after(first));
        assert!(lost.expect("a waiting proposer gets an error").is_err());
        // The earlier proposal may have been applied.
        let sum = second.propose(Bytes::from_static(&[1])).await.unwrap();
        assert!((2..=3).contains(&sum), "{sum}");
        if disk == Disk::Hangs {
            cluster.disks[&first].send_replace(Disk::Works);
            let (mine, _) = &cluster.members[&first];
            tokio::time::timeout(Duration::from_secs(10), async {
                while mine.progress().1 < second.progress().1 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            })
            .await
            .expect("it catches up");
        }
    }
}
