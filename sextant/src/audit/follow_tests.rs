use proto::env::FileSystem;
use proto::model::identity::ClusterId;
use proto::model::ids::NodeId;
use proto::model::node::{NodeInfo, Role};
use serde_json::Value;

use super::super::tests::{MIB, World};
use super::*;
use crate::audit::Audit;

type Nobody = fn() -> Arc<dyn CoordinatorApi>;

/// A follower whose catalogs are given by hand.
async fn follower(audit: &Audit) -> Follower<Nobody> {
    let nobody: Nobody = || unreachable!("no coordinator is asked");
    let audit = audit.0.clone().expect("an audit");
    let told = audit.told().await.expect("files that can be read");
    Follower { told: Some(told), ..Follower::new(audit, nobody) }
}

/// A catalog in which the nodes up to a number have joined.
fn catalog(cluster: u128, cas: u64) -> Arc<Catalog> {
    let node = |id| {
        let (address, zone) = (format!("host-{id}"), String::new());
        (NodeId(id), Arc::new(NodeInfo { id: NodeId(id), role: Role::Router, address, zone }))
    };
    let cluster = Some(ClusterId(cluster));
    Arc::new(Catalog { cas, cluster, nodes: (1..=cas).map(node).collect(), ..Catalog::default() })
}

/// The lines about facts as `object cas`.
fn told(world: &World) -> Vec<String> {
    let text = world.text("audit.jsonl");
    let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let of = |line: Value| Some(format!("{} {}", line["of"].as_str()?, line["cas"]));
    lines.filter_map(of).collect()
}

#[tokio::test(start_paused = true)]
async fn each_change_has_a_line_with_its_catalog() {
    let world = World::new(1);
    let audit = world.audit(MIB).await;
    let mut follower = follower(&audit).await;
    follower.take(catalog(1, 2)).await.expect("lines");
    follower.take(catalog(1, 3)).await.expect("a line");
    assert_eq!(told(&world), ["node 1 2", "node 2 2", "node 3 3"]);
    let line = world.text("audit.jsonl").lines().last().expect("a line").to_owned();
    let wanted = format!(
        r#"{{"at":"2024-01-01T00:00:00.000Z","node":301,"what":"node","outcome":"done","cluster":"{}","cas":3,"of":"node 3","is":"router at host-3"}}"#,
        ClusterId(1)
    );
    assert_eq!(line, wanted);
    // Another member is behind.
    follower.take(catalog(1, 2)).await.expect("nothing");
    follower.take(catalog(1, 3)).await.expect("nothing");
    assert_eq!(told(&world).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_starts_again_goes_on_behind_its_last_line() {
    let world = World::new(2);
    let audit = world.audit(MIB).await;
    follower(&audit).await.take(catalog(1, 3)).await.expect("lines");
    let before = told(&world).len();
    // It applies its log again, and then goes on.
    let mut again = follower(&audit).await;
    for cas in [2, 3] {
        again.take(catalog(1, cas)).await.expect("nothing");
    }
    assert_eq!(told(&world).len(), before);
    again.take(catalog(1, 4)).await.expect("a line");
    assert_eq!(told(&world)[before..], ["node 4 4"]);
    // Others went on meanwhile: it has not seen how.
    let mut late = follower(&audit).await;
    late.take(catalog(1, 9)).await.expect("a line");
    late.take(catalog(1, 10)).await.expect("a line");
    assert_eq!(told(&world)[before + 1..], ["catalogs 5 to 9 9", "node 10 10"]);
    // The lines of an older file count too.
    let file = |name: &str| world.dir.join(name);
    world.fs.rename(&file("audit.jsonl"), &file("audit.1.jsonl")).expect("a full file");
    let mut again = follower(&audit).await;
    again.take(catalog(1, 10)).await.expect("nothing");
    assert_eq!(told(&world).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_new_cluster_is_told_whole() {
    let world = World::new(3);
    let audit = world.audit(MIB).await;
    follower(&audit).await.take(catalog(1, 50)).await.expect("lines");
    let before = told(&world).len();
    let mut next = follower(&audit).await;
    next.take(catalog(2, 1)).await.expect("lines");
    next.take(catalog(2, 2)).await.expect("a line");
    assert_eq!(told(&world)[before..], ["node 1 1", "node 2 2"]);
    // A catalog without a cluster: the coordinator applies its log again, or its cluster is about to be founded.
    let founded = |cas| Catalog { cluster: None, ..Catalog::clone(&catalog(2, cas)) };
    let mut again = follower(&audit).await;
    again.take(Arc::new(founded(0))).await.expect("nothing");
    again.take(catalog(2, 3)).await.expect("a line");
    let mut third = follower(&audit).await;
    third.take(Arc::new(founded(1))).await.expect("nothing");
    third.take(catalog(3, 2)).await.expect("lines");
    let wanted = ["node 1 3", "node 2 3", "node 3 3", "node 1 2", "node 2 2"];
    assert_eq!(told(&world)[before + 2..], wanted);
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_delays_lines_and_loses_none() {
    let world = World::new(4);
    let audit = world.audit(MIB).await;
    let mut follower = follower(&audit).await;
    follower.take(catalog(1, 1)).await.expect("a line");
    world.fs.set_capacity(world.text("audit.jsonl").len() as u64 + 20);
    for cas in 2..4 {
        follower.take(catalog(1, cas)).await.expect_err("no room");
    }
    world.fs.set_capacity(u64::MAX);
    follower.take(catalog(1, 4)).await.expect("lines");
    assert_eq!(told(&world), ["node 1 1", "node 2 4", "node 3 4", "node 4 4"]);
}
