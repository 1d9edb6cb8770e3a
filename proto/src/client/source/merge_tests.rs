use super::*;
use crate::model::ids::{BucketId, IndexId, Seqno, Vbuuid};
use crate::model::index::IndexSpec;
use crate::rpc::mutation::Frame;

fn at(seqno: u64) -> Position {
    Position { vbuuid: Vbuuid(if seqno == 0 { 0 } else { 7 }), seqno: Seqno(seqno) }
}

fn cut(seqnos: [u64; 2]) -> Cut {
    Cut::from_positions(seqnos.map(at).to_vec())
}

fn set(vbuckets: &[u16]) -> VbucketSet {
    vbuckets.iter().copied().map(VbucketId).collect()
}

/// An index with this many slices, all on node 1.
fn index(slices: u64) -> Arc<IndexInfo> {
    let spec = IndexSpec::new("i", "b");
    let placement = (0..slices).map(|_| vec![NodeId(1)]).collect();
    Arc::new(IndexInfo::new(IndexId(1), BucketId(1), spec, placement))
}

fn begin(seqnos: [u64; 2], vbuckets: &[u16], indexes: &[u64]) -> StreamMessage {
    let indexes = indexes.iter().map(|slices| index(*slices)).collect();
    StreamMessage::Begin { at: cut(seqnos), indexes, vbuckets: set(vbuckets) }
}

fn history(vbuckets: &[u16]) -> StreamMessage {
    let of = |v| if vbuckets.contains(&v) { vec![(Vbuuid(7), 0)] } else { vec![] };
    StreamMessage::History(Arc::new(FailoverLogs::new((0..2).map(of).collect())))
}

fn frame(vbucket: u16, from: u64, to: u64) -> StreamMessage {
    StreamMessage::Frames(vec![Frame {
        vbucket: VbucketId(vbucket),
        vbuuid: Vbuuid(7),
        from: Seqno(from),
        to: Seqno(to),
        body: Default::default(),
    }])
}

fn join(slices: u64) -> StreamMessage {
    StreamMessage::IndexJoin { index: index(slices), at: Cut::zero(2) }
}

fn stream_begin(vbucket: u16, seqno: u64) -> StreamMessage {
    StreamMessage::StreamBegin { vbucket: VbucketId(vbucket), at: at(seqno) }
}

fn stream_end(vbucket: u16, seqno: u64) -> StreamMessage {
    StreamMessage::StreamEnd { vbucket: VbucketId(vbucket), at: at(seqno) }
}

/// Returns a merge with vbucket 0 on the first stream, at 5, and vbucket 1 on the second, at 3.
fn flowing() -> Merge {
    let mut merge = Merge::new(2, [NodeId(10), NodeId(11)]);
    merge.process_message(0, begin([5, 0], &[0], &[1])).unwrap();
    merge.process_message(1, begin([0, 3], &[1], &[1])).unwrap();
    merge.process_message(0, history(&[0])).unwrap();
    merge.process_message(1, history(&[1])).unwrap();
    merge
}

#[test]
fn a_merged_stream_begins_when_all_parts_have_begun_and_has_one_history() {
    let mut merge = Merge::new(2, [NodeId(10), NodeId(11)]);
    assert!(merge.process_message(0, begin([5, 0], &[0], &[1])).unwrap().is_empty());
    assert!(!merge.may_read(0) && merge.may_read(1), "nothing comes before Begin");
    let begun = merge.process_message(1, begin([0, 3], &[1], &[1])).unwrap();
    let [StreamMessage::Begin { at, vbuckets, .. }] = &begun[..] else { panic!("{begun:?}") };
    assert_eq!((at, vbuckets), (&cut([5, 3]), &set(&[0, 1])));
    assert!(merge.process_message(0, history(&[0])).unwrap().is_empty());
    assert!(!merge.may_read(0), "no message passes before all histories are known");
    assert_eq!(merge.process_message(1, history(&[1])).unwrap(), [history(&[0, 1])]);
    assert!(
        merge.process_message(1, history(&[1])).unwrap().is_empty(),
        "a known history is not repeated"
    );
    assert!(merge.may_read(0) && merge.may_read(1) && !merge.is_waiting());
}

#[test]
fn vbuckets_without_or_with_two_owners_and_different_indexes_are_refused() {
    for (second, indexes) in [(&[][..], 1), (&[0, 1][..], 1), (&[1][..], 2)] {
        let mut merge = Merge::new(2, [NodeId(10), NodeId(11)]);
        merge.process_message(0, begin([5, 0], &[0], &[1])).unwrap();
        let error = merge.process_message(1, begin([5, 3], second, &[indexes])).unwrap_err();
        assert!(error.is_retry(), "{second:?}: {error}");
    }
}

#[test]
fn an_index_joins_at_one_cut_when_all_say_so() {
    let mut merge = flowing();
    assert!(merge.process_message(0, join(2)).unwrap().is_empty());
    assert!(!merge.may_read(0) && merge.is_waiting(), "later frames have the index");
    merge.process_message(1, frame(1, 3, 8)).unwrap();
    let joined = merge.process_message(1, join(2)).unwrap();
    assert_eq!(joined, [StreamMessage::IndexJoin { index: index(2), at: cut([5, 8]) }]);
    assert!(merge.may_read(0) && merge.may_read(1));
    merge.process_message(0, join(3)).unwrap();
    assert!(merge.process_message(1, join(4)).unwrap_err().is_retry(), "they do not say the same");
}

#[test]
fn a_vbucket_goes_from_one_stream_to_another_without_a_gap() {
    let mut merge = flowing();
    merge.process_message(0, frame(0, 5, 9)).unwrap();
    merge.process_message(0, stream_end(0, 9)).unwrap();
    assert!(merge.is_waiting(), "until somebody begins it");
    merge.process_message(1, stream_begin(0, 9)).unwrap();
    assert!(!merge.is_waiting());
    assert_eq!(merge.process_message(1, frame(0, 9, 11)).unwrap(), [frame(0, 9, 11)]);
    assert!(
        merge.process_message(0, frame(0, 9, 12)).is_err(),
        "the index is no longer in this stream"
    );
}

#[test]
fn a_stream_that_begins_a_vbucket_early_waits_for_the_end_of_the_other() {
    let mut merge = flowing();
    merge.process_message(1, stream_begin(0, 9)).unwrap();
    assert!(!merge.may_read(1), "its frames come after 9");
    merge.process_message(0, frame(0, 5, 9)).unwrap();
    merge.process_message(0, stream_end(0, 9)).unwrap();
    assert!(merge.may_read(1));
    merge.process_message(1, frame(0, 9, 10)).unwrap();
}

#[test]
fn an_end_matches_a_begin_and_a_begin_the_end_before_it() {
    let mut merge = flowing();
    assert!(merge.process_message(1, stream_end(0, 5)).is_err(), "it never began");
    let mut merge = flowing();
    assert!(merge.process_message(0, stream_end(0, 6)).is_err(), "a frame is missing");
    let mut merge = flowing();
    merge.process_message(0, stream_end(0, 5)).unwrap();
    let error = merge.process_message(1, stream_begin(0, 7)).unwrap_err();
    assert_eq!(error.code, ErrorCode::DropData, "the mutations between must be caught up");
    let mut merge = flowing();
    assert!(merge.process_message(0, stream_begin(0, 5)).is_err(), "it has begun");
}

#[test]
fn each_stability_timestamp_is_given_on_once() {
    let mark = |epoch| {
        StreamMessage::Epoch(crate::model::cut::EpochMark {
            bucket: BucketId(1),
            epoch: Epoch(epoch),
            parent: Epoch(epoch - 1),
            cut: Arc::new(cut([5, 3])),
            horizon: Epoch(0),
            points: Arc::default(),
        })
    };
    let mut merge = flowing();
    assert_eq!(merge.process_message(0, mark(4)).unwrap(), [mark(4)]);
    assert!(merge.process_message(1, mark(4)).unwrap().is_empty());
    assert_eq!(merge.process_message(1, mark(5)).unwrap(), [mark(5)]);
}

#[test]
fn a_stream_without_vbuckets_delays_no_other() {
    let mut merge = Merge::new(2, [NodeId(10), NodeId(11)]);
    merge.process_message(0, begin([5, 3], &[0, 1], &[1])).unwrap();
    let begun = merge.process_message(1, begin([0, 0], &[], &[2])).unwrap();
    assert_eq!(begun.len(), 1, "its indexes do not count");
    assert!(!merge.may_read(1), "the part is left out");
    assert_eq!(merge.process_message(0, history(&[0, 1])).unwrap().len(), 1);
    assert_eq!(merge.process_message(0, join(3)).unwrap().len(), 1);
    assert!(merge.may_read(0) && !merge.is_waiting());
}

#[test]
fn a_part_without_vbuckets_may_send_its_history_at_any_time() {
    let mut merge = Merge::new(2, [NodeId(10), NodeId(11)]);
    merge.process_message(0, begin([5, 3], &[0, 1], &[1])).unwrap();
    merge.process_message(1, begin([0, 0], &[], &[1])).unwrap();
    assert_eq!(merge.process_message(0, history(&[0, 1])).unwrap(), [history(&[0, 1])]);
    merge.process_message(0, frame(0, 5, 9)).unwrap();
    assert!(merge.may_read(1) && merge.process_message(1, history(&[])).unwrap().is_empty());
    merge.process_message(0, stream_end(0, 9)).unwrap();
    merge.process_message(1, stream_begin(0, 9)).unwrap();
    assert_eq!(merge.process_message(1, frame(0, 9, 11)).unwrap(), [frame(0, 9, 11)]);
}
