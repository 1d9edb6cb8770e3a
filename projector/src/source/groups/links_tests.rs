//! Tests of groups, sessions and leases, step by step.

use proto::model::commits::TransactionEvent;
use proto::model::copies::CopiesChange;

use super::super::link::NEAR_BYTES;
use super::*;

const ME: NodeId = NodeId(1);
const OTHER: NodeId = NodeId(2);

fn leased() -> Duration {
    Duration::from_millis(COPY_LEASE_MS)
}

/// Returns a leader with another copy that is in sync, or is joining.
fn world(now: Instant, is_in_sync: bool) -> (Links, Copies) {
    let mut copies = Copies::single(ME);
    copies.change(copies.revision, CopiesChange::Join(OTHER)).expect("joins");
    if is_in_sync {
        copies.change(copies.revision, CopiesChange::Grow(OTHER)).expect("grows");
    }
    let links = Links::default();
    assert!(links.set_configuration(&copies, ME, now));
    (links, copies)
}

fn group(links: &Links) -> u64 {
    links.add_group(Some(&Arc::new(Batch::default())))
}

#[test]
fn a_group_is_durable_when_the_copy_in_sync_has_it_in_this_session() {
    let now = Instant::now();
    let (links, _) = world(now, true);
    let first = group(&links);
    assert!(links.last_durable_group() < first, "the copy has no session");
    links.begin_session(OTHER, 7, now).expect("a session");
    assert!(links.last_durable_group() < first, "the copy has not said that it has the beginning");
    links.record_durable_group(OTHER, 7, (0, 0), now).expect("filled");
    assert_eq!(links.last_durable_group(), first, "the session began behind the group");
    let second = group(&links);
    let next = links.next_groups(OTHER, 7, 1 << 20, now).expect("an answer");
    assert_eq!((next.first, next.groups.len()), (second, 1));
    assert!(links.last_durable_group() < second, "the copy was told and has not answered");
    links.record_durable_group(OTHER, 7, (second, 1), now).expect("acknowledged");
    assert_eq!(links.last_durable_group(), second);
    links.begin_session(OTHER, 8, now).expect("another session");
    assert!(links.last_durable_group() < second, "whoever begins again may have lost it");
    let late = links.record_durable_group(OTHER, 7, (second, 1), now).expect_err("an old session");
    assert_eq!(late.code, ErrorCode::OutOfOrder);
}

#[test]
fn a_copy_that_names_a_group_which_was_never_numbered_is_refused() {
    let now = Instant::now();
    let (links, _) = world(now, true);
    links.begin_session(OTHER, 7, now).expect("a session");
    let last = group(&links);
    for number in [last + 1, u64::MAX] {
        let error =
            links.record_durable_group(OTHER, 7, (number, 0), now).expect_err("no such group");
        assert_eq!(error.code, ErrorCode::OutOfOrder);
        assert!(links.last_durable_group() < last);
    }
    assert_eq!(links.next_groups(OTHER, 7, 1, now).expect("an answer").first, last);
}

#[test]
fn lease_counts_from_a_confirmed_answer() {
    let now = Instant::now();
    let (links, _) = world(now, true);
    assert!(!links.may_answer(now), "nobody has granted anything");
    links.begin_session(OTHER, 7, now).expect("a session");
    links.record_durable_group(OTHER, 7, (0, 0), now).expect("the first question");
    assert!(!links.may_answer(now), "a question grants nothing by itself");
    links.next_groups(OTHER, 7, 1, now).expect("the first answer");
    let later = now + Duration::from_millis(900);
    // The first answer was lost, and the follower retries.
    links.next_groups(OTHER, 7, 1, later).expect("the second answer");
    links.record_durable_group(OTHER, 7, (0, 0), later).expect("heard nothing");
    assert!(!links.may_answer(later));
    links.record_durable_group(OTHER, 7, (0, 1), later).expect("heard the first answer late");
    assert!(links.may_answer(later));
    assert!(!links.may_answer(now + leased()), "counted from the moment of that answer");
    links.record_durable_group(OTHER, 7, (0, 2), later).expect("heard the second answer");
    assert!(links.may_answer(now + leased()));
    assert!(!links.may_answer(later + leased()));
}

fn prepared(bytes: usize) -> Arc<Batch> {
    let document = Some(bytes::Bytes::from(vec![b' '; bytes]));
    let changes = vec![proto::model::joint::PreparedChange { id: "p".into(), document }];
    let transaction = proto::model::ids::TransactionId(7);
    let prepared = Arc::new(proto::model::joint::PreparedTransaction {
        transaction,
        participants: Vec::new(),
        changes,
    });
    Arc::new(Batch { commits: vec![TransactionEvent::Prepared(prepared)], ..Batch::default() })
}

#[test]
fn copy_that_fetches_prepared_changes_is_alive() {
    let now = Instant::now();
    let (links, _) = world(now, true);
    links.record_durable_group(OTHER, 7, (0, 0), now).expect_err("no session yet");
    let bytes = 32 << 20;
    links.begin_session(OTHER, 7, now).expect("a session");
    links.keep_prepared(OTHER, 7, prepared(bytes)).expect("kept");
    let at = |tenths: u32| now + Duration::from_millis(100) * tenths;
    for tenths in [8, 16, 24] {
        links.prepared(OTHER, 7, at(tenths)).expect("a piece");
        assert_eq!(links.change_to_request(at(tenths + 1)), None, "it takes them");
    }
    assert!(!links.record_busy(OTHER, 7, 0, at(32)).expect("busy"), "it has not begun");
    assert_eq!(links.change_to_request(at(40)), None, "it makes them durable");
    // Another session of the copy does not restart the time.
    for (number, tenths) in [(8, 40), (9, 48), (10, 56)] {
        links.begin_session(OTHER, number, at(tenths)).expect("another session");
        links.keep_prepared(OTHER, number, prepared(bytes)).expect("kept");
        links.prepared(OTHER, number, at(tenths)).expect("a piece");
    }
    let (_, change) = links.change_to_request(at(56)).expect("a change");
    assert_eq!(change, CopiesChange::Shrink(OTHER));
}

#[test]
fn a_silent_copy_is_awaited_until_the_coordinators_have_shrunk_the_set() {
    let now = Instant::now();
    let (links, mut copies) = world(now, true);
    let number = group(&links);
    assert_eq!(links.change_to_request(now + leased()), None, "not silent for long enough");
    let late = now + leased() + Duration::from_millis(1);
    let (revision, change) = links.change_to_request(late).expect("a change");
    assert_eq!(change, CopiesChange::Shrink(OTHER));
    assert!(links.last_durable_group() < number && !links.may_answer(late));
    copies.change(revision, change).expect("shrunk");
    assert!(links.set_configuration(&copies, ME, late));
    assert!(links.is_alone() && links.last_durable_group() >= number && links.may_answer(late));
}

#[test]
fn joining_copy_gets_in_sync_when_complete() {
    let now = Instant::now();
    let (links, mut copies) = world(now, false);
    links.begin_session(OTHER, 7, now).expect("a session");
    assert_eq!(links.change_to_request(now), None, "it has not said that it has the beginning");
    let shown = group(&links);
    assert_eq!(links.last_durable_group(), u64::MAX, "nobody waits for it");
    links.record_durable_group(OTHER, 7, (0, 0), now).expect("filled");
    assert_eq!(links.change_to_request(now), None, "it lacks a group that was shown");
    assert!(
        !links.may_answer(now) && links.last_durable_group() < shown,
        "it is awaited from now on"
    );
    let later = group(&links);
    links.record_durable_group(OTHER, 7, (shown, 0), now).expect("acknowledged");
    let (revision, change) = links.change_to_request(now).expect("a change");
    assert_eq!(change, CopiesChange::Grow(OTHER));
    assert!(links.last_durable_group() < later, "later groups wait for it");
    links.record_change_answer(OTHER);
    assert_eq!(links.last_durable_group(), u64::MAX, "the coordinators have refused it");
    assert_eq!(links.change_to_request(now), None, "another group was shown");
    links.record_durable_group(OTHER, 7, (later, 0), now).expect("acknowledged");
    links.change_to_request(now).expect("again");
    let last = group(&links);
    copies.change(revision, change).expect("grown");
    assert!(links.set_configuration(&copies, ME, now));
    links.record_change_answer(OTHER);
    assert_eq!(links.last_durable_group(), later, "a copy in sync is awaited");
    assert!(!links.has_all_groups(OTHER, now));
    links.record_durable_group(OTHER, 7, (last, 0), now).expect("acknowledged");
    assert!(links.has_all_groups(OTHER, now));
    assert!(!links.has_all_groups(OTHER, now + 2 * leased()), "it may be dead");
}

#[test]
fn a_joining_copy_that_falls_silent_or_begins_again_is_no_longer_awaited() {
    let now = Instant::now();
    let (links, _) = world(now, false);
    let near = |at| {
        links.begin_session(OTHER, 7, at).expect("a session");
        group(&links);
        links.record_durable_group(OTHER, 7, (0, 0), at).expect("filled");
        assert_eq!(links.change_to_request(at), None, "it lacks a group");
        assert_ne!(links.last_durable_group(), u64::MAX, "it is awaited");
    };
    near(now);
    let late = now + leased() + Duration::from_millis(1);
    assert_eq!(
        (links.change_to_request(late), links.last_durable_group()),
        (None, u64::MAX),
        "silent"
    );
    near(late);
    links.begin_session(OTHER, 8, late).expect("another session");
    assert_eq!(
        (links.change_to_request(late), links.last_durable_group()),
        (None, u64::MAX),
        "not filled"
    );
}

#[test]
fn a_joining_copy_far_behind_is_not_awaited_and_one_that_is_awaited_stays_so_under_load() {
    let now = Instant::now();
    let (links, _) = world(now, false);
    let large = || {
        let place = (proto::model::ids::VbucketId(0), proto::model::ids::Seqno(1));
        let document = bytes::Bytes::from(vec![b' '; NEAR_BYTES]);
        let kind = proto::rpc::mutation::MutationKind::Upsert;
        let mutation = documents::mutation::Mutation::new(place, "id".into(), kind, document);
        links.add_group(Some(&Arc::new(Batch {
            mutations: vec![Arc::new(mutation)],
            ..Batch::default()
        })))
    };
    links.begin_session(OTHER, 7, now).expect("a session");
    links.record_durable_group(OTHER, 7, (0, 0), now).expect("filled");
    let far = large();
    assert_eq!(
        (links.change_to_request(now), links.last_durable_group()),
        (None, u64::MAX),
        "it lacks much"
    );
    links.record_durable_group(OTHER, 7, (far, 0), now).expect("acknowledged");
    let near = group(&links);
    assert_eq!(links.change_to_request(now), None);
    large();
    assert_eq!(
        (links.change_to_request(now), links.last_durable_group()),
        (None, far),
        "still awaited"
    );
    links.record_durable_group(OTHER, 7, (near, 0), now).expect("acknowledged");
    assert!(links.change_to_request(now).is_some(), "it has all that was shown without it");
}

#[test]
fn large_group_is_sent_alone() {
    let now = Instant::now();
    let (links, _) = world(now, true);
    links.begin_session(OTHER, 7, now).expect("a session");
    links.record_durable_group(OTHER, 7, (0, 0), now).expect("filled");
    let of_bytes = |bytes: usize| {
        let place = (proto::model::ids::VbucketId(0), proto::model::ids::Seqno(1));
        let document = bytes::Bytes::from(vec![b' '; bytes]);
        let kind = proto::rpc::mutation::MutationKind::Upsert;
        let mutation = documents::mutation::Mutation::new(place, "id".into(), kind, document);
        let mutations = vec![Arc::new(mutation)];
        links.add_group(Some(&Arc::new(Batch { mutations, ..Batch::default() })))
    };
    let last = [10, 10, 5_000, 10].map(of_bytes)[3];
    let mut counts = Vec::new();
    let mut durable = 0;
    while durable < last {
        let next = links.next_groups(OTHER, 7, 1_000, now).expect("an answer");
        counts.push(next.groups.len());
        durable = next.first + next.groups.len() as u64 - 1;
        links.record_durable_group(OTHER, 7, (durable, next.answer), now).expect("acknowledged");
    }
    assert_eq!(counts, [2, 1, 1]);
}

#[test]
fn a_leader_takes_no_configuration_of_another_term_or_an_older_one() {
    let now = Instant::now();
    let (links, copies) = world(now, true);
    let mut lost = Copies { wanted: 2, ..copies.clone() };
    lost.change(lost.revision, CopiesChange::Give(OTHER)).expect("promoted");
    assert!(!links.set_configuration(&lost, ME, now));
    let mut back = lost.clone();
    back.change(back.revision, CopiesChange::Give(ME)).expect("promoted");
    assert!(!links.set_configuration(&back, ME, now), "the term is another one");
    assert!(links.set_configuration(&Copies::single(ME), ME, now), "an older one changes nothing");
    assert_eq!(links.copies(), Some(copies));
    assert!(links.begin_session(NodeId(3), 1, now).is_err(), "it is no copy");
}

#[test]
fn leader_that_learns_of_a_successor_publishes_nothing() {
    let now = Instant::now();
    let (links, mut copies) = world(now, false);
    links.begin_session(OTHER, 7, now).expect("a session");
    links.record_durable_group(OTHER, 7, (0, 0), now).expect("filled");
    let (revision, change) = links.change_to_request(now).expect("a growth");
    copies.change(revision, change).expect("grown, and nobody tells");
    copies.change(copies.revision, CopiesChange::Promote(OTHER)).expect("promoted");
    let lacking = group(&links);
    assert!(!links.set_configuration(&copies, ME, now), "the answer names another leader");
    links.record_change_answer(OTHER);
    assert!(links.last_durable_group() < lacking, "the successor lacks it");
    assert!(!links.may_answer(now));
}

#[test]
fn unanswered_change_is_requested_again() {
    let now = Instant::now();
    let (links, _) = world(now, false);
    assert!(!links.begin_session(OTHER, 7, now).expect("a session"), "nobody awaits it");
    links.record_durable_group(OTHER, 7, (0, 0), now).expect("filled");
    let asked = links.change_to_request(now).expect("a growth");
    let later = group(&links);
    assert!(
        links.begin_session(OTHER, 8, now).expect("another session"),
        "it may be in sync by now"
    );
    let silent = now + 2 * leased();
    assert_eq!(links.change_to_request(silent), Some(asked));
    assert!(links.last_durable_group() < later);
    links.record_change_answer(OTHER);
    assert_eq!((links.change_to_request(silent), links.last_durable_group()), (None, u64::MAX));
}
