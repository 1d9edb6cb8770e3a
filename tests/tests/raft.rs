//! Simulates the coordinators' Raft core with an unreliable network and unreliable disks.
//! `simulate --layer raft` runs more seeds.

use std::sync::Mutex;

use coordinator::testing::{LogEntry, MemberChange, MessageKind, RaftCore, RaftMessage};
use proto::ErrorCode;
use proto::model::ids::NodeId;
use tests::harness::on_all_processors;
use tests::raft::{MEMBERS, World, config, run};

#[test]
fn faults_never_break_the_promises() {
    let seeds: Vec<u64> = (0..130).collect();
    let counts = Mutex::new((0, 0, 0, 0));
    on_all_processors(&seeds, |seed| {
        let world = run(*seed, 4000);
        let mut counts = counts.lock().expect("not poisoned");
        counts.0 += world.acknowledged.len();
        counts.1 += world.seen.leaders.len();
        counts.2 += world.snapshots_installed;
        counts.3 += world.changes;
    });
    let (acknowledged, terms, snapshots, changes) = counts.into_inner().expect("not poisoned");
    assert!(acknowledged > 1000 && terms > 200, "{acknowledged} commands, {terms} terms");
    assert!(snapshots > 0, "no member was ever far behind");
    assert!(changes > 200, "{changes} changes of the members");
}

#[test]
fn a_seed_always_gives_the_same_run() {
    for seed in [77, 78] {
        assert!(run(seed, 3000).digest() == run(seed, 3000).digest());
    }
}

#[test]
fn an_idle_proposal_commits_in_one_round_of_writes() {
    let mut world = World::new(1);
    world.run_ticks(40);
    let leader = world.leader().unwrap();
    assert!(world.propose(leader));
    let before = world.journal(leader).len();
    // The entries leave before the leader's own write; then each member writes once, at the same time.
    assert_eq!(world.network.iter().filter(|message| !message.entries.is_empty()).count(), 2);
    for _ in 0..2 {
        world.deliver();
    }
    (0..MEMBERS.len()).for_each(|at| world.write(at));
    while !world.network.is_empty() {
        world.deliver();
    }
    assert_eq!(world.journal(leader).len(), before + 1);
}

#[test]
fn a_leader_that_vanishes_is_replaced_within_a_second_and_a_half() {
    for seed in 0..10 {
        let mut world = World::new(seed);
        world.run_ticks(40);
        let leader = world.leader().unwrap();
        world.crash(leader);
        let ticks = (0..)
            .find(|_| {
                world.run_ticks(1);
                world.leader().is_some()
            })
            .unwrap();
        assert!(ticks * config(MEMBERS[0]).tick_ms <= 1500, "seed {seed}: {ticks} ticks");
    }
}

#[test]
fn a_member_that_was_down_for_long_gets_a_snapshot_and_a_short_log() {
    let mut world = World::new(3);
    world.run_ticks(40);
    let leader = world.leader().unwrap();
    let down = (leader + 1) % MEMBERS.len();
    world.crash(down);
    for _ in 0..100 {
        assert!(world.propose(leader));
        world.settle();
    }
    world.start(down);
    world.run_ticks(100);
    assert_eq!(world.snapshots_installed, 1);
    assert_eq!(world.journal(down), world.journal(leader));
    world.crash(down);
    world.start(down);
    world.run_ticks(20);
    assert_eq!(world.journal(down), world.journal(leader), "also after a restart");
    world.crash(leader);
    let log = world.log_on_disk(leader);
    assert!(log.last() > 100 && log.term_of(50).is_none(), "the log is kept short");
}

#[test]
fn invalid_messages_of_a_peer_are_dropped() {
    let mut world = World::new(1);
    world.run_ticks(40);
    let leader = world.leader().unwrap();
    let follower = (leader + 1) % MEMBERS.len();
    assert!(world.propose(leader));
    let good = world.network.iter().find(|message| !message.entries.is_empty()).unwrap().clone();
    let good = RaftMessage { to: MEMBERS[follower], ..good };
    let entry = good.entries[0].clone();
    let gap = vec![entry.clone(), LogEntry { index: entry.index + 5, ..entry }];
    let bad = [
        RaftMessage { from: NodeId(9), ..good.clone() },
        RaftMessage { to: NodeId(9), ..good.clone() },
        RaftMessage { from: good.to, ..good.clone() },
        RaftMessage { term: 0, ..good.clone() },
        RaftMessage { entries: gap, ..good.clone() },
        RaftMessage { kind: MessageKind::Snapshot, ..good.clone() },
    ];
    for message in bad {
        world.with_core(follower, |core| core.step(message).unwrap());
    }
    let heartbeat = RaftMessage {
        kind: MessageKind::Heartbeat,
        commit: 1_000_000,
        entries: Vec::new(),
        ..good
    };
    world.with_core(follower, |core| {
        assert_eq!(core.step(heartbeat).unwrap_err().code, ErrorCode::Corrupt);
    });
}

/// Creates three members, and members that wait to be added; returns the world and the leader's
/// position.
fn with_joining(seed: u64) -> (World, usize) {
    let mut world = World::with_joining(seed);
    world.run_ticks(40);
    let leader = world.leader().expect("a leader");
    (world, leader)
}

#[test]
fn a_new_member_learns_first_and_votes_by_itself() {
    let (mut world, leader) = with_joining(1);
    (0..30).for_each(|_| assert!(world.propose(leader)));
    world.run_ticks(5);
    assert!(world.propose_next(leader));
    world.settle();
    assert_eq!(
        (&*world.members(leader).learners, &*world.members(leader).voters),
        (&[4][..], &[1, 2, 3][..])
    );
    world.run_ticks(60);
    assert_eq!(world.members(leader).voters, [1, 2, 3, 4]);
    assert_eq!(world.members(3), world.members(leader));
    assert_eq!(world.journal(3), world.journal(leader), "it has the whole state");
    // Two of four are no majority any more.
    world.crash((leader + 1) % 3);
    world.crash((leader + 2) % 3);
    world.run_ticks(60);
    assert_eq!(world.leader(), None);
}

/// The new member does not have the members at the beginning of the log, so it must begin with a
/// snapshot.
#[test]
fn a_member_that_joins_a_short_log_begins_with_a_snapshot() {
    let (mut world, leader) = with_joining(2);
    assert!(world.propose_next(leader));
    world.run_ticks(60);
    assert_eq!(world.snapshots_installed, 0, "there is no command yet");
    assert_eq!(world.members(3), world.members(leader));
    for at in [3, leader] {
        assert!(world.propose(world.leader().expect("a leader")));
        world.run_ticks(5);
        world.crash(at);
        assert!(world.log_on_disk(at).term_of(0).is_none(), "member {} can send the start", at + 1);
        world.start(at);
        world.run_ticks(60);
    }
    world.run_ticks(60);
    assert_eq!(world.members(3).voters, [1, 2, 3, 4], "also after a restart");
}

/// Until the learner has the log, a majority that needs its vote could commit nothing.
#[test]
fn a_learner_that_answers_but_has_nothing_does_not_vote() {
    let (mut world, leader) = with_joining(6);
    assert!(world.propose_next(leader));
    for _ in 0..40 {
        for at in 0..4 {
            world.with_core(at, RaftCore::tick);
        }
        for _ in 0..200 {
            world
                .network
                .retain(|sent| sent.to != NodeId(4) || sent.kind == MessageKind::Heartbeat);
            world.deliver();
            (0..4).for_each(|at| world.write(at));
        }
    }
    assert_eq!((world.members(leader).learners.len(), world.members(leader).voters.len()), (1, 3));
    world.run_ticks(60);
    assert_eq!(world.members(leader).voters.len(), 4, "it votes when it has the log");
}

#[test]
fn a_member_that_nobody_has_added_changes_nothing() {
    let (mut world, leader) = with_joining(3);
    world.run_ticks(100);
    assert_eq!(world.leader(), Some(leader));
    assert!(world.members(3).is_unknown());
    world.crash(leader);
    world.crash((leader + 1) % 3);
    world.run_ticks(100);
    assert_eq!(world.leader(), None, "it votes for nobody");
}

#[test]
fn a_leader_hands_over_and_is_removed_by_the_next_one() {
    let (mut world, first) = with_joining(4);
    let id = NodeId(first as u64 + 1);
    let remove = MemberChange::Remove { node: id };
    assert!(!world.propose_change(first, remove.clone()), "it does not remove itself");
    world.hand_over(first);
    world.settle();
    let second = world.leader().expect("at once, without a time-out");
    assert_ne!(second, first);
    assert!(world.propose_change(second, remove));
    world.run_ticks(60);
    assert!(world.members(second).is_removed(id));
    assert!(world.propose(second));
    world.run_ticks(5);
    assert_eq!(world.members(second).voters.len(), 2);
    assert!(!world.propose_change(second, MemberChange::Add { node: id, address: "h:1".into() }));
}

#[test]
fn the_last_member_leads_alone_if_it_crashes_right_after_the_answer_to_a_removal() {
    let (mut world, leader) = with_joining(6);
    let [one, other] = [(leader + 1) % 3, (leader + 2) % 3];
    let remove = |at: usize| MemberChange::Remove { node: NodeId(at as u64 + 1) };
    assert!(world.propose_change(leader, remove(one)));
    world.run_ticks(5);
    assert!(!world.members(other).is_removed(NodeId(other as u64 + 1)));
    let answered = world.answered;
    assert!(world.propose_change(leader, remove(other)));
    while world.answered == answered {
        world.deliver();
        world.write(other);
        world.write(leader);
    }
    world.crash(leader);
    world.start(leader);
    world.run_ticks(60);
    assert_eq!(world.leader(), Some(leader));
    assert!(world.propose(leader));
}

#[test]
fn a_removed_member_hears_of_its_removal_only_from_a_leader_that_has_settled_it() {
    let (mut world, leader) = with_joining(7);
    let removed = (leader + 1) % 3;
    let node = NodeId(removed as u64 + 1);
    let answered = world.answered;
    assert!(world.propose_change(leader, MemberChange::Remove { node }));
    let mut told = Vec::new();
    while world.answered == answered {
        world.deliver();
        (0..3).for_each(|at| world.write(at));
        world.with_core(removed, |core| told.push(core.is_removed()));
    }
    assert!(told.iter().all(|told| !told), "the log does not tell it");
    let mut has_settled = false;
    world.with_core(leader, |core| has_settled = core.has_settled());
    assert!(has_settled);
}

#[test]
fn a_learner_that_hears_of_no_leader_for_long_knows_none() {
    let (mut world, leader) = with_joining(9);
    assert!(world.propose_next(leader));
    let new = MEMBERS.len();
    let knows = |world: &mut World| {
        let mut known = None;
        world.with_core(new, |core| known = core.role().leader);
        known.is_some()
    };
    while !knows(&mut world) {
        world.with_core(leader, RaftCore::tick);
        world.deliver();
        (0..=new).for_each(|at| world.write(at));
    }
    assert!(!world.members(new).is_voter(NodeId(new as u64 + 1)));
    (0..new).for_each(|at| world.crash(at));
    (0..100).for_each(|_| world.with_core(new, RaftCore::tick));
    assert!(!knows(&mut world), "it was removed, or is cut off");
}

#[test]
fn a_member_that_finds_its_removal_in_its_own_log_still_helps_those_that_stay() {
    let (mut world, first) = with_joining(10);
    let [second, third] = [(first + 1) % 3, (first + 2) % 3];
    let node = |at: usize| NodeId(at as u64 + 1);
    // The second member has the entry of its own removal, and leads before it is committed.
    assert!(world.propose_change(first, MemberChange::Remove { node: node(third) }));
    world.run_ticks(5);
    assert!(world.propose_change(first, MemberChange::Remove { node: node(second) }));
    while world.log_end(second) < world.log_end(first) {
        world.deliver();
        world.write(second);
    }
    world.crash(first);
    world.network.clear();
    world.start(first);
    world.run_ticks(100);
    let leader = world.leader().expect("one of two leads");
    assert!(world.propose(leader));
    world.run_ticks(60);
    assert_eq!(world.leader(), Some(first), "the other one was removed");
    assert!(world.members(first).is_removed(node(second)));
    assert!(world.propose(first));
}

#[test]
fn a_removal_needs_a_majority_that_follows_the_leader() {
    let (mut world, leader) = with_joining(8);
    let [live, dead] = [(leader + 1) % 3, (leader + 2) % 3];
    let remove = |at: usize| MemberChange::Remove { node: NodeId(at as u64 + 1) };
    world.crash(dead);
    world.run_ticks(40);
    assert!(!world.propose_change(leader, remove(live)), "one of two would be left");
    assert!(world.propose_change(leader, remove(dead)));
    world.run_ticks(5);
    assert!(world.propose_change(leader, remove(live)));
}

#[test]
fn the_second_change_waits_for_the_first() {
    let (mut world, leader) = with_joining(5);
    let others = [(leader + 1) % 3, (leader + 2) % 3].map(|at| NodeId(at as u64 + 1));
    assert!(world.propose_change(leader, MemberChange::Remove { node: others[0] }));
    assert!(!world.propose_change(leader, MemberChange::Remove { node: others[1] }));
    world.run_ticks(5);
    assert!(world.propose_change(leader, MemberChange::Remove { node: others[1] }));
    world.run_ticks(60);
    assert_eq!(world.members(leader).voters, [leader as u64 + 1]);
    assert!(world.propose(leader));
    world.run_ticks(2);
    let last = MemberChange::Remove { node: NodeId(leader as u64 + 1) };
    assert!(!world.propose_change(leader, last), "the last one stays");
}
