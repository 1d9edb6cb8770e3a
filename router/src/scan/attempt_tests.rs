use proto::ErrorCode::{
    Corrupt, Internal, InvalidParameter, SliceMoved, SnapshotTooOld, TooBusy, Unavailable,
};
use proto::rpc::rows::RowBlock;

use super::*;

/// A shard scan with given copies of each slice, which gives up after ten seconds.
struct Scan {
    attempts: Attempts,
    began: Instant,
    now_ms: u64,
    slices: Vec<SliceNo>,
    copies: Vec<Vec<u64>>,
    slow: Vec<u64>,
    reachable: Result<()>,
    reports_moved: bool,
    is_once: bool,
}

fn nodes(nodes: &[u64]) -> Vec<NodeId> {
    nodes.iter().map(|node| NodeId(*node)).collect()
}

fn slices(slices: &[u16]) -> Vec<SliceNo> {
    slices.iter().map(|slice| SliceNo(*slice)).collect()
}

/// Creates a scan of the slices 0, 1, …, with these copies.
fn scan(copies: &[&[u64]]) -> Scan {
    Scan {
        attempts: Attempts::avoiding(Vec::new()),
        began: Instant::now(),
        now_ms: 0,
        slices: (0..copies.len() as u16).map(SliceNo).collect(),
        copies: copies.iter().map(|nodes| nodes.to_vec()).collect(),
        slow: Vec::new(),
        reachable: Ok(()),
        reports_moved: false,
        is_once: false,
    }
}

impl Scan {
    fn next(&mut self, outcome: Option<Outcome>) -> NextStep {
        let known = Facts {
            now: self.began + Duration::from_millis(self.now_ms),
            deadline: self.began + Duration::from_secs(10),
            index: "i",
            slices: &self.slices,
            copies: Copies(self.copies.iter().map(|copies| nodes(copies)).collect()),
            slow: &nodes(&self.slow),
            reachable: self.reachable.clone(),
            reports_moved: self.reports_moved,
            is_once: self.is_once,
        };
        self.attempts.next(outcome, &known)
    }

    fn fails(&mut self, code: ErrorCode) -> NextStep {
        self.next(Some(Err(Error::new(code, "refused"))))
    }

    fn moved(&mut self, places: &[(u16, u64)]) -> NextStep {
        let place = |(slice, node): &(u16, u64)| (SliceNo(*slice), NodeId(*node));
        self.next(Some(Ok(places.iter().map(place).collect())))
    }
}

/// A query of a node with a time-out in milliseconds.
fn query(node: u64, timeout_ms: u64) -> NextStep {
    NextStep::Query(NodeId(node), Duration::from_millis(timeout_ms))
}

fn split(stay: &[u16], avoided: &[u64]) -> NextStep {
    NextStep::Split(slices(stay), nodes(avoided))
}

fn failure(next: NextStep) -> (ErrorCode, String) {
    match next {
        NextStep::Fail(error) => (error.code, error.message),
        next => panic!("{next:?}"),
    }
}

#[test]
fn each_node_is_queried_once_in_a_round_and_the_last_one_has_all_the_time() {
    let mut scan = scan(&[&[1, 2, 3]]);
    assert_eq!(scan.next(None), query(1, 1000));
    assert_eq!(scan.fails(Unavailable), query(2, 1000));
    scan.now_ms = 100;
    assert_eq!(scan.fails(TooBusy), query(3, 9900));
    assert_eq!(scan.fails(Unavailable), NextStep::Pause);
    assert_eq!(scan.next(None), query(1, 1000), "the next round begins");
}

#[test]
fn slow_nodes_are_queried_last_and_not_waited_for_as_if_they_were_alone() {
    let mut scan = scan(&[&[1, 2]]);
    scan.slow = vec![1];
    assert_eq!(scan.next(None), query(2, 1000));
    assert_eq!(scan.fails(Unavailable), query(1, 1000), "node 2 may have failed for a moment");
    assert_eq!(scan.fails(Unavailable), NextStep::Pause);
    scan.slow = vec![1, 2];
    assert_eq!(scan.next(None), query(1, 1000), "both are slow");
}

#[test]
fn slices_without_a_common_node_are_split() {
    for (copies, slow, failed, expected) in [
        (&[&[1, 2][..], &[3, 2]][..], &[][..], &[][..], query(2, 1000)),
        (&[&[1, 2], &[3, 2]], &[], &[2], split(&[], &[2])),
        (&[&[1, 2], &[3, 2]], &[2], &[], split(&[], &[2])),
        (&[&[1], &[1, 2]], &[1], &[], query(1, 10_000)),
        (&[&[1], &[2]], &[], &[], split(&[], &[])),
        (&[&[1], &[2]], &[2], &[], split(&[], &[])),
        (&[&[1], &[2]], &[], &[2], NextStep::Pause),
    ] {
        let mut scan = scan(copies);
        (scan.slow, scan.attempts) = (slow.to_vec(), Attempts::avoiding(nodes(failed)));
        assert_eq!(scan.next(None), expected, "{copies:?} {slow:?} {failed:?}");
    }
}

#[test]
fn an_error_of_a_stream_goes_to_another_node_if_that_may_answer() {
    let another = || query(2, 10_000);
    for (code, with_other, alone) in [
        (Unavailable, another(), NextStep::Pause),
        (TooBusy, another(), NextStep::Pause),
        // A copy with an older floor may have the epoch.
        (SnapshotTooOld, another(), NextStep::Fail(Error::new(SnapshotTooOld, "refused"))),
        (Corrupt, another(), NextStep::Fail(Error::new(Corrupt, "refused"))),
        (
            InvalidParameter,
            NextStep::Fail(Error::new(InvalidParameter, "refused")),
            NextStep::Fail(Error::new(InvalidParameter, "refused")),
        ),
    ] {
        for (copies, expected) in [(&[1, 2][..], with_other), (&[1], alone)] {
            let mut scan = scan(&[copies]);
            scan.next(None);
            assert_eq!(scan.fails(code), expected, "{code:?} {copies:?}");
        }
    }
}

#[test]
fn a_stream_follows_the_call_for_a_first_batch_whatever_its_outcome_until_the_deadline() {
    let call = |has_others, now_ms| {
        let mut scan = scan(&[&[1, 2]]);
        let timeout = scan.attempts.note_call(NodeId(1), has_others, Duration::from_secs(10));
        assert_eq!(timeout.as_secs(), if has_others { 1 } else { 10 });
        scan.now_ms = now_ms;
        scan
    };
    assert_eq!(call(true, 0).next(None), query(1, 1000), "the call has brought no row");
    assert_eq!(call(true, 0).fails(Unavailable), query(2, 10_000));
    assert_eq!(call(true, 0).fails(InvalidParameter), query(1, 1000), "the stream fails with it");
    assert_eq!(call(false, 0).fails(Unavailable), query(1, 1000));
    assert_eq!(call(true, 0).moved(&[(0, 2)]), query(1, 1000), "the stream follows the slice");
    assert_eq!(failure(call(true, 10_000).fails(Unavailable)).1, "refused");
    assert_eq!(call(true, 10_000).moved(&[(0, 2)]), query(1, 0));
}

#[test]
fn slices_that_have_moved_are_reported_or_followed() {
    let scan = |reports_moved| {
        let mut scan = scan(&[&[1, 2], &[1, 2], &[1, 2]]);
        scan.reports_moved = reports_moved;
        scan.next(None);
        scan
    };
    // Slice 7 was not requested.
    let places = [(1, 4), (7, 5)];
    let reported = NextStep::Report(vec![(SliceNo(1), NodeId(4))], slices(&[0, 2]));
    assert_eq!(scan(true).moved(&places), reported);
    assert_eq!(scan(false).moved(&places), split(&[0, 2], &[1]));
    assert_eq!(scan(false).moved(&[(0, 2), (1, 2), (2, 2)]), query(2, 10_000));
    let text = "node 1 reports moved slices that were not asked for".to_owned();
    assert_eq!(failure(scan(false).moved(&[(7, 5)])), (Internal, text));
    // A node that contradicts itself is damaged, so another one is queried.
    assert_eq!(scan(false).moved(&[]), query(2, 10_000));
    let mut gone = self::scan(&[&[1]]);
    gone.next(None);
    assert_eq!(gone.moved(&[(0, 3)]), NextStep::Pause);
    gone.now_ms = 10_000;
    gone.next(None);
    let text = "node 1 no longer has slice 0".to_owned();
    assert_eq!(failure(gone.moved(&[(0, 3)])), (SliceMoved, text));
}

#[test]
fn a_round_in_which_the_time_out_passed_doubles_it() {
    for (took_ms, expected_ms) in [(499, 1000), (500, 2000), (3000, 2000)] {
        let mut scan = scan(&[&[1, 2]]);
        scan.next(None);
        scan.fails(Unavailable);
        scan.now_ms = took_ms;
        assert_eq!(scan.fails(Unavailable), NextStep::Pause);
        scan.now_ms += 50;
        assert_eq!(scan.next(None), query(1, expected_ms), "{took_ms} ms");
    }
}

#[test]
fn a_scan_that_finds_no_node_names_index_and_slices() {
    let text = |scan: &mut Scan| failure(scan.next(None)).1;
    let mut none = scan(&[&[], &[]]);
    assert_eq!(none.next(None), NextStep::Pause);
    none.now_ms = 10_000;
    assert_eq!(text(&mut none), "index \"i\": slice 0 and 1 more: no node has the slice");
    let mut once = scan(&[&[]]);
    once.is_once = true;
    assert_eq!(text(&mut once), "no other copy has answered");
    let mut lost = scan(&[&[1]]);
    lost.reachable = Err(Error::unavailable("node 1 is silent"));
    assert_eq!(text(&mut lost), "node 1 is silent");
}

#[test]
fn a_round_fails_with_the_error_that_tells_most_whichever_came_last() {
    for (codes, expected) in [
        ([Unavailable, TooBusy, Unavailable], TooBusy),
        ([TooBusy, SnapshotTooOld, TooBusy], SnapshotTooOld),
        ([SnapshotTooOld, Unavailable, Unavailable], SnapshotTooOld),
    ] {
        let mut scan = scan(&[&[1, 2, 3]]);
        scan.now_ms = 10_000;
        scan.next(None);
        let [first, second, third] = codes;
        scan.fails(first);
        scan.fails(second);
        scan.attempts.fail(NodeId(3), Error::new(third, "refused"));
        assert_eq!(failure(scan.next(None)).0, expected, "{codes:?}");
    }
}

#[test]
fn the_error_of_a_round_names_each_node_and_its_cause() {
    let mut scan = scan(&[&[3, 1, 2]]);
    scan.now_ms = 10_000;
    scan.next(None);
    scan.fails(Unavailable);
    scan.fails(Unavailable);
    let late = Error::unavailable("node 2 did not answer in time");
    assert_eq!(
        failure(scan.next(Some(Err(late)))).1,
        "index \"i\": slice 0: no node answers; node 1: refused; node 2 did not answer in time; node 3: refused"
    );
}

#[test]
fn when_waits_count_and_races_end() {
    let rows = |rows| ShardBatch::Rows(RowBlock { rows, data: Default::default() });
    let (began, stage) = (Instant::now(), 2 * STAGE_MIN);
    for (of, is_call) in
        [(Batches::Rows, true), (Batches::Aggregates, true), (Batches::Rest, false)]
    {
        let wait = BatchWait { node: NodeId(1), of, began, stage };
        assert_eq!(wait.is_call(), is_call);
        assert!(wait.is_meaningful(began + 3 * STAGE_MIN));
        assert_eq!(wait.is_meaningful(began + 4 * STAGE_MIN), !is_call);
        assert!(wait.is_won_by(&rows(1)) && wait.is_won_by(&ShardBatch::Done));
        assert_eq!(wait.is_won_by(&rows(0)), is_call);
    }
}
