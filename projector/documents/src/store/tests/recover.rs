//! Recovery of what damage has left: a moment of each vbucket, whole, and a report of all that is lost.

use std::path::{Path, PathBuf};

use proto::ErrorCode;
use proto::env::OpenMode;
use proto::model::ids::VbucketId;

use super::crashes::{BUCKET, World, documents};
use super::small;
use crate::document_store::DocumentStore;
use crate::store::{DiskStore, RecoveredBucket, recover, verify};

const DIR: &str = "/data";
const FAULTS: u64 = 300;

/// A store with fragments, segments, purge points, and a tail that no fragment has; it is closed.
fn closed(seed: u64) -> World {
    let mut world = World::new(seed);
    for _ in 0..60 {
        match world.below(12) {
            0 => world.purge(),
            1..=3 => world.maintain(),
            _ => world.commit(),
        }
    }
    world.store = None;
    world
}

fn files(world: &World, below: &str) -> Vec<PathBuf> {
    let dir = Path::new(DIR).join("buckets/00000000").join(below);
    let mut found = world.env.fs.list(&dir).expect("a directory");
    found.retain(|path| path.extension().is_none_or(|extension| extension != "index"));
    found
}

/// Flips a bit of a file, cuts it or removes it.
fn damage(world: &World, path: &Path) {
    let file = world.env.fs.open(path, OpenMode::ReadWrite).expect("a file");
    let len = file.len().expect("its length");
    match world.below(6) {
        0 => world.env.fs.remove_file(path).expect("removed"),
        1 => file.set_len(world.below(len)).expect("cut"),
        _ => {
            let (at, mut byte) = (world.below(len), [0]);
            file.read_exact_at(&mut byte, at).expect("a byte");
            byte[0] ^= 1 << world.below(8);
            file.write_all_at(&byte, at).expect("flipped");
        }
    }
}

fn recovered(world: &World) -> RecoveredBucket {
    recover(&world.env, Path::new(DIR), &small()).expect("recovered").remove(0)
}

/// Opens the store again, and compares it with the first mutations of each vbucket. Returns the number that is lost.
fn check(world: &mut World, found: &RecoveredBucket) -> u64 {
    world.open();
    assert!(world.store().accepts_loss().expect("a manifest"));
    let ends = world.store().all()[0].1.ends();
    let (mut left, mut lost) = (world.model.clone(), 0);
    for (vbucket, (log, end)) in (0..).map(VbucketId).zip(left.logs.iter_mut().zip(&ends)) {
        assert!(end.0 <= log.len() as u64, "nothing is made up");
        let missing = log.len() as u64 - end.0;
        // What was committed after the manifest was written last may be lost without a word of it here.
        let told = found.lost.iter().find(|(of, ..)| *of == vbucket);
        assert!(told.is_none_or(|(_, has, had)| has == end && had.0 <= log.len() as u64));
        lost += missing;
        log.truncate(end.0 as usize);
    }
    assert_eq!(documents(world.store()), left.documents());
    assert!(found.damage.is_some() || lost == 0, "a whole bucket has lost {lost} mutations");
    world.model = left;
    lost
}

#[test]
fn damage_of_the_log_leaves_a_moment_of_each_vbucket() {
    let (mut made_again, mut lost_some, mut lost_none) = (0, 0, 0);
    for seed in 0..FAULTS {
        let mut world = closed(seed);
        let all = files(&world, "log");
        let path = &all[world.below(all.len() as u64) as usize];
        eprintln!("seed {seed} {path:?}");
        damage(&world, path);
        let found = recovered(&world);
        made_again += u64::from(found.damage.is_some());
        match check(&mut world, &found) {
            0 => lost_none += u64::from(found.damage.is_some()),
            _ => lost_some += 1,
        }
        // It goes on as any other bucket.
        world.model.purged = world
            .store()
            .extents(BUCKET)
            .unwrap()
            .iter()
            .map(|e| e.purged.0)
            .collect::<Vec<_>>()
            .try_into()
            .unwrap();
        (0..5).for_each(|_| world.commit());
        assert_eq!(documents(world.store()), world.model.documents(), "seed {seed}");
        world.store = None;
        assert_eq!(verify(&world.env, Path::new(DIR)).findings, [], "seed {seed}");
    }
    assert!(
        made_again > FAULTS / 2 && lost_some > FAULTS / 10 && lost_none > FAULTS / 10,
        "{made_again} made again, {lost_some} with a loss, {lost_none} without"
    );
}

#[test]
fn a_whole_directory_stays_as_it_is_and_the_acceptance_is_noted() {
    let mut world = closed(3);
    let found = recovered(&world);
    assert_eq!((found.damage.as_ref(), found.lost.len(), &*found.name), (None, 0, "b"));
    assert_eq!(check(&mut world, &found), 0);
    world.store().put_accepts_loss(false).expect("forgotten");
    world.open();
    assert!(!world.store().accepts_loss().expect("a manifest"));
}

/// The log has no documents that are in fragments, so nothing is made up for them.
#[test]
fn a_damaged_fragment_is_named_and_nothing_is_changed() {
    let world = closed(4);
    let fragment = files(&world, "fragments").remove(0);
    let file = world.env.fs.open(&fragment, OpenMode::ReadWrite).expect("a fragment");
    file.set_len(file.len().expect("its length") / 2).expect("cut");
    let error = recover(&world.env, Path::new(DIR), &small()).expect_err("no other copy");
    assert_eq!(error.code, ErrorCode::Corrupt);
    assert!(error.message.contains(&*fragment.to_string_lossy()), "{error}");
    let opened = DiskStore::open(&world.env, Path::new(DIR), small()).map(|_| ());
    assert_eq!(opened.expect_err("still damaged").code, ErrorCode::Corrupt);
}

/// Whatever operation of the recovery a crash comes in: the next try finds the old bucket or the new one.
#[test]
fn a_recovery_that_a_crash_cuts_short_begins_again() {
    let mut cut_short = 0;
    for crash_at in 0..80 {
        let mut world = closed(11);
        let last = files(&world, "log")
            .into_iter()
            .filter(|p| p.extension().is_some_and(|e| e == "log"))
            .max();
        let file = world.env.fs.open(&last.expect("a segment"), OpenMode::ReadWrite).expect("it");
        file.set_len(file.len().expect("its length") - 30).expect("cut");
        file.sync().expect("durable");
        world.fs.crash_at(world.fs.operations() + crash_at * 3);
        cut_short += u64::from(recover(&world.env, Path::new(DIR), &small()).is_err());
        world.fs.crash();
        world.fs.restart();
        let found = recovered(&world);
        check(&mut world, &found);
        let left = world.env.fs.list(&Path::new(DIR).join("buckets")).expect("directories");
        while world.store().maintain().expect("maintained") {}
        assert_eq!(left.len(), 1, "{left:?}");
    }
    assert!(cut_short > 30, "{cut_short}");
}
