//! Tests that the producer notices each loss without a known reason.

use proto::model::assignment::VbucketSet;
use proto::model::history::{Branches, FailoverLogs};

use super::*;

fn there(branches: &Branches, end: u64) -> SourceHistory {
    let position = Position { vbuuid: branch_of(branches, Seqno(end)), seqno: Seqno(end) };
    SourceHistory {
        durable: Cut::from_positions(vec![position]),
        logs: Arc::new(FailoverLogs::new(vec![branches.clone()])),
        kept: VbucketSet::all(1),
    }
}

/// Returns a producer with one vbucket and this many stored mutations.
fn taken(mutations: usize) -> (Producer, Branches) {
    let producer = Producer::new(1, 1);
    producer.change((0..mutations).map(|n| (format!("d{n}"), None)).collect());
    producer.feeds()[0].taken = mutations;
    let branches = producer.feeds()[0].branches.clone();
    (producer, branches)
}

#[test]
fn acknowledged_mutations_are_there_until_a_known_loss() {
    let (producer, branches) = taken(9);
    assert_eq!(producer.lacks(&there(&branches, 9)), None);
    assert!(producer.lacks(&there(&branches, 8)).is_some(), "the last was lost");
    assert!(producer.lacks(&there(&vec![(Vbuuid(7), 0)], 9)).is_some(), "another history");
    producer.doubt_all();
    assert!(producer.lacks(&there(&branches, 8)).is_some(), "doubt is no reason");
    producer.lose_taken(VbucketId(0), Seqno(5));
    assert_eq!(producer.lacks(&there(&branches, 5)), None, "a disk has lost them");
    assert!(producer.lacks(&there(&branches, 4)).is_some(), "but not that");
}

#[test]
fn surviving_mutations_are_there_after_a_failover() {
    let (producer, branches) = taken(9);
    while producer.fail_over() == 0 {}
    let left = producer.feeds()[0].log.len() as u64;
    assert_eq!(producer.lacks(&there(&branches, left)), None);
    assert_eq!(producer.lacks(&there(&branches, 9)), None, "the projector has not heard of it");
    assert!(left == 0 || producer.lacks(&there(&branches, left - 1)).is_some());
}
