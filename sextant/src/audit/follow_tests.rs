use proto::env::{FileSystem, OpenMode};
use proto::model::identity::ClusterId;
use proto::model::ids::NodeId;
use proto::model::node::{NodeInfo, Role};
use serde_json::Value;

use super::super::tests::{MIB, World};
use super::*;
use crate::audit::Audit;

/// Returns a follower to which the test passes the catalogs.
async fn follower(audit: &Audit) -> Follower {
    let nobody = Arc::new(|| unreachable!("no coordinator is asked"));
    Follower::new(audit.0.clone().expect("an audit"), nobody).await
}

/// Returns a catalog with `cas` nodes.
fn catalog(cluster: u128, cas: u64) -> Arc<Catalog> {
    let node = |id| {
        let (address, zone) = (format!("host-{id}"), String::new());
        (NodeId(id), Arc::new(NodeInfo { id: NodeId(id), role: Role::Router, address, zone }))
    };
    let cluster = Some(ClusterId(cluster));
    Arc::new(Catalog { cas, cluster, nodes: (1..=cas).map(node).collect(), ..Catalog::default() })
}

/// Returns the lines about facts as `object cas`.
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
    follower.write_changes(catalog(1, 2)).await.expect("lines");
    follower.write_changes(catalog(1, 3)).await.expect("a line");
    assert_eq!(told(&world), ["node 1 2", "node 2 2", "node 3 3"]);
    let line = world.text("audit.jsonl").lines().last().expect("a line").to_owned();
    let wanted = format!(
        r#"{{"at":"2024-01-01T00:00:00.000Z","node":301,"what":"node","outcome":"done","cluster":"{}","cas":3,"of":"node 3","is":"router at host-3"}}"#,
        ClusterId(1)
    );
    assert_eq!(line, wanted);
    // Another member lags.
    follower.write_changes(catalog(1, 2)).await.expect("nothing");
    follower.write_changes(catalog(1, 3)).await.expect("nothing");
    assert_eq!(told(&world).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_starts_again_goes_on_from_what_it_has_told() {
    let world = World::new(2);
    let audit = world.audit(MIB).await;
    follower(&audit).await.write_changes(catalog(1, 3)).await.expect("lines");
    let before = told(&world).len();
    // The member replays its log, and the follower receives some of the catalogs: none, an empty one, one that was
    // written already.
    for seen in [&[][..], &[0], &[2], &[0, 3]] {
        let mut again = follower(&audit).await;
        for cas in seen {
            again.write_changes(catalog(1, *cas)).await.expect("nothing");
        }
        again.write_changes(catalog(1, 3)).await.expect("nothing");
        assert_eq!(told(&world).len(), before, "{seen:?}");
    }
    // A catalog of which only the number has grown causes no line.
    let same = Catalog { cas: 7, ..Catalog::clone(&catalog(1, 3)) };
    follower(&audit).await.write_changes(Arc::new(same)).await.expect("nothing");
    assert_eq!(told(&world).len(), before);
    // Other members continued meanwhile: the changes are written when the follower receives them.
    follower(&audit).await.write_changes(catalog(1, 5)).await.expect("lines");
    assert_eq!(told(&world)[before..], ["node 4 5", "node 5 5"]);
}

#[tokio::test(start_paused = true)]
async fn an_older_copy_is_told_when_it_counts_above_what_was_told() {
    let world = World::new(5);
    let audit = world.audit(MIB).await;
    follower(&audit).await.write_changes(catalog(1, 5)).await.expect("lines");
    let before = told(&world).len();
    let mut copy = follower(&audit).await;
    copy.write_changes(catalog(1, 3)).await.expect("nothing");
    let skipped = Catalog { cas: 1 << 33, ..Catalog::clone(&catalog(1, 3)) };
    copy.write_changes(Arc::new(skipped)).await.expect("lines");
    assert_eq!(told(&world)[before..], ["node 4 8589934592", "node 5 8589934592"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_cluster_is_told_whole() {
    let world = World::new(3);
    let audit = world.audit(MIB).await;
    follower(&audit).await.write_changes(catalog(1, 50)).await.expect("lines");
    let before = told(&world).len();
    let mut next = follower(&audit).await;
    // The cluster is about to be founded.
    let unfounded = Catalog { cluster: None, ..Catalog::clone(&catalog(2, 1)) };
    next.write_changes(Arc::new(unfounded)).await.expect("nothing");
    next.write_changes(catalog(2, 1)).await.expect("lines");
    next.write_changes(catalog(2, 2)).await.expect("a line");
    assert_eq!(told(&world)[before..], ["node 1 1", "node 2 2"]);
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_time_loses_no_change() {
    let mut twice = 0;
    for seed in 0..40 {
        let world = World::new(seed);
        let audit = world.audit(MIB).await;
        let mut live = follower(&audit).await;
        live.write_changes(catalog(1, 3)).await.expect("lines");
        // As much of the next lines and facts is written as there is room for.
        world.fs.set_capacity(world.text("audit.jsonl").len() as u64 + 300 + 60 * seed);
        let _ended = live.write_changes(catalog(1, 9)).await;
        world.fs.crash();
        world.fs.restart();
        world.fs.set_capacity(u64::MAX);
        drop((live, audit));
        let audit = world.audit(MIB).await;
        follower(&audit).await.write_changes(catalog(1, 9)).await.expect("lines");
        let lines = told(&world);
        for node in 1..=9 {
            let count =
                lines.iter().filter(|line| line.starts_with(&format!("node {node} "))).count();
            assert!((1..=2).contains(&count), "seed {seed}: node {node} of {lines:?}");
            twice += usize::from(count == 2);
        }
    }
    assert!(twice > 0, "no crash came between the lines and the facts");
}

#[tokio::test(start_paused = true)]
async fn facts_for_which_there_is_no_room_refuse_no_statement() {
    let world = World::new(7);
    let audit = world.audit(MIB).await;
    let mut follower = follower(&audit).await;
    follower.write_changes(catalog(1, 1)).await.expect("a line");
    let used = |world: &World| {
        ["audit.jsonl", "audit.facts"].map(|name| world.bytes(name)).iter().sum::<u64>()
    };
    world.fs.set_capacity(used(&world) + 2_000);
    let (taken, ()) = tokio::join!(follower.write_changes(catalog(1, 60)), audit.changed());
    taken.expect_err("no room for 59 lines");
    assert_eq!(world.lines().iter().filter(|line| line["what"] == "ddl").count(), 2);
    // A catalog that was compared is written, even if it is outdated by now.
    world.fs.set_capacity(u64::MAX);
    let gone = Catalog { cas: 61, ..Catalog::clone(&catalog(1, 1)) };
    follower.write_changes(Arc::new(gone)).await.expect("lines");
    let lines = self::told(&world);
    assert_eq!(lines.iter().filter(|line| line.ends_with(" 60")).count(), 59);
    assert_eq!(lines.iter().filter(|line| line.ends_with(" 61")).count(), 59);
}

#[tokio::test(start_paused = true)]
async fn facts_that_cannot_be_read_are_told_anew() {
    let world = World::new(6);
    let audit = world.audit(MIB).await;
    follower(&audit).await.write_changes(catalog(1, 2)).await.expect("lines");
    let path = world.dir.join("audit.facts");
    let file = world.fs.open(&path, OpenMode::ReadWrite).expect("the facts");
    let len = file.len().expect("a length");
    file.write_all_at(b"?", len - 1).expect("a byte");
    follower(&audit).await.write_changes(catalog(1, 2)).await.expect("lines");
    assert_eq!(told(&world), ["node 1 2", "node 2 2", "node 1 2", "node 2 2"]);
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_delays_lines_and_loses_none() {
    let world = World::new(4);
    let audit = world.audit(MIB).await;
    let mut follower = follower(&audit).await;
    follower.write_changes(catalog(1, 1)).await.expect("a line");
    world.fs.set_capacity(0);
    for cas in 2..4 {
        follower.write_changes(catalog(1, cas)).await.expect_err("no room");
    }
    world.fs.set_capacity(u64::MAX);
    follower.write_changes(catalog(1, 4)).await.expect("lines");
    assert_eq!(told(&world), ["node 1 1", "node 2 2", "node 3 4", "node 4 4"]);
}
