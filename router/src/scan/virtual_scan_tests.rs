use proptest::prelude::*;
use proto::model::ids::TopologyNo;

use super::*;

fn topology(assignment: &[u64]) -> IndexTopology {
    let placement = assignment.iter().map(|node| vec![NodeId(*node)]).collect();
    IndexTopology { number: TopologyNo(1), placement }
}

fn slices(part: Option<ScanPart>) -> Vec<u16> {
    part.expect("a part").slices.iter().map(|slice| slice.0).collect()
}

#[test]
fn slices_in_the_map_are_excluded_from_base_scans_but_not_from_virtual_scans() {
    let mut scan = UnorderedProgress::new(&topology(&[1, 1, 2]));
    scan.note_moved(&[(SliceNo(1), NodeId(3))]);
    assert_eq!(slices(scan.part(0)), [0]);
    scan.finish(&scan.part(0).unwrap());
    scan.finish(&scan.part(0).unwrap());
    let part = scan.part(0).unwrap();
    assert_eq!((part.kind, part.hint), (ScanPartKind::Virtual, Some(NodeId(3))));
    assert_eq!(slices(Some(part)), [1]);
}

#[test]
fn a_slice_that_comes_back_is_read_from_its_own_cursor() {
    let mut scan = UnorderedProgress::new(&topology(&[1, 1]));
    scan.advance(&scan.part(0).unwrap(), b"b");
    scan.note_moved(&[(SliceNo(1), NodeId(2))]);
    scan.advance(&scan.part(0).unwrap(), b"k");
    // The slice is back on its first node.
    scan.note_moved(&[(SliceNo(1), NodeId(1))]);
    assert_eq!(slices(scan.part(0)), [0], "the shard's cursor has passed entries of the slice");
    scan.finish(&scan.part(0).unwrap());
    let part = scan.part(0).unwrap();
    assert_eq!((part.hint, part.resume_after.as_deref()), (Some(NodeId(1)), Some(&b"b"[..])));
}

#[test]
fn a_first_move_found_at_the_last_shard_is_not_lost() {
    let mut scan = UnorderedProgress::new(&topology(&[1, 2]));
    scan.finish(&scan.part(0).unwrap());
    let last = scan.part(0).unwrap();
    scan.note_moved(&[(SliceNo(1), NodeId(1))]);
    scan.finish(&last);
    assert_eq!(slices(scan.part(0)), [1]);
    scan.finish(&scan.part(0).unwrap());
    assert_eq!(scan.part(0), None);
}

#[test]
fn a_finished_virtual_scan_without_a_resume_entry_is_not_begun_again() {
    let mut scan = UnorderedProgress::new(&topology(&[1]));
    scan.note_moved(&[(SliceNo(0), NodeId(2))]);
    scan.finish(&scan.part(0).unwrap());
    let part = scan.part(0).unwrap();
    assert_eq!(part.resume_after, None);
    scan.finish(&part);
    assert_eq!(scan.part(0), None, "done is a flag");
    let (shards, resume, moved) = scan.for_token();
    assert_eq!(UnorderedProgress::resume(&topology(&[1]), shards, resume, moved).part(0), None);
}

#[test]
fn a_token_cannot_name_absent_slices_or_name_a_slice_twice() {
    let entry = |slice, done| VirtualScan {
        slice: SliceNo(slice),
        node: NodeId(1),
        resume_after: None,
        done,
    };
    let moved = vec![entry(9, false), entry(0, false), entry(0, true)];
    let scan = UnorderedProgress::resume(&topology(&[1]), 7, None, moved);
    assert_eq!(slices(scan.part(0)), [0]);
    assert_eq!(scan.part(1), None);
}

/// An event between two batches.
#[derive(Clone, Debug)]
enum Event {
    /// A slice moves to a node.
    Move(u16, u64),
    /// The client continues with its token at another router.
    Token,
    /// The scan reads this many rows.
    Batch(usize),
}

fn event(slices: u16) -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0..slices, 1..6u64).prop_map(|(slice, node)| Event::Move(slice, node)),
        1 => Just(Event::Token),
        3 => (1..5usize).prop_map(Event::Batch),
    ]
}

proptest! {
    /// A model of a virtual scan without nodes, in which a part is read directly from the nodes
    /// that have its slices.
    #[test]
    fn each_entry_comes_once_while_slices_move(
        assignment in prop::collection::vec(1..4u64, 1..9),
        entries in prop::collection::btree_set((0..40u8, 0..9u16), 0..60),
        events in prop::collection::vec(event(9), 0..80),
    ) {
        let base = topology(&assignment);
        let count = assignment.len() as u16;
        let entries: Vec<(u8, SliceNo)> =
            entries.into_iter().map(|(key, slice)| (key, SliceNo(slice % count))).collect();
        let expected: std::collections::BTreeSet<_> = entries.iter().copied().collect();
        let entries: Vec<_> = expected.iter().copied().collect();
        let mut places = assignment.clone();
        let mut scan = UnorderedProgress::new(&base);
        let mut seen = Vec::new();
        let events = events.into_iter().chain(std::iter::repeat(Event::Batch(3)));
        for event in events.take(1_000) {
            match event {
                Event::Move(slice, node) => places[usize::from(slice % count)] = node,
                Event::Token => {
                    let (shards, resume, moved) = scan.for_token();
                    scan = UnorderedProgress::resume(&base, shards, resume, moved);
                }
                Event::Batch(rows) => {
                    let Some(mut part) = scan.part(0) else { break };
                    if let ScanPartKind::Base(_) = part.kind {
                        // The node of the base shard reports the slices that have left it.
                        let gone: Vec<_> = part.slices.iter()
                            .map(|slice| (*slice, places[usize::from(slice.0)]))
                            .filter(|(slice, node)| *node != assignment[usize::from(slice.0)])
                            .map(|(slice, node)| (slice, NodeId(node)))
                            .collect();
                        scan.note_moved(&gone);
                        part = scan.part(0).expect("the shard goes on");
                    }
                    let after = part.resume_after.as_ref().map(|entry| (entry[0], entry[1]));
                    let mine: Vec<_> = entries.iter()
                        .filter(|(_, slice)| part.slices.contains(slice))
                        .filter(|(key, slice)| after.is_none_or(|after| (*key, slice.0 as u8) > after))
                        .take(rows)
                        .collect();
                    for (key, slice) in &mine {
                        seen.push((*key, *slice));
                        scan.advance(&part, &[*key, slice.0 as u8]);
                    }
                    if mine.len() < rows {
                        scan.finish(&part);
                    }
                }
            }
        }
        prop_assert_eq!(scan.part(0), None, "it comes to an end");
        let once: std::collections::BTreeSet<_> = seen.iter().copied().collect();
        prop_assert_eq!(once.len(), seen.len(), "none twice");
        prop_assert_eq!(once, expected);
    }
}
