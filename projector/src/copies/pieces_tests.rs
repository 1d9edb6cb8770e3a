//! Tests that the pieces of a group are joined to the original group.

use bytes::Bytes;
use proto::model::commits::CommittedTransaction;
use proto::model::ids::{BucketId, Seqno, VbucketId};
use proto::rpc::mutation::MutationKind;

use super::*;

fn mutation(seqno: u64, bytes: usize) -> Arc<Mutation> {
    let (place, id) = ((VbucketId(0), Seqno(seqno)), format!("m{seqno}").into());
    Arc::new(Mutation::new(place, id, MutationKind::Upsert, Bytes::from(vec![b'1'; bytes])))
}

fn prepare(n: u64, changes: usize) -> TransactionEvent {
    let change = |n: usize| PreparedChange {
        id: format!("p{n}").into(),
        document: (!n.is_multiple_of(3)).then(|| Bytes::from(vec![b'2'; 40])),
    };
    TransactionEvent::Prepared(Arc::new(PreparedTransaction {
        transaction: TransactionId(n),
        participants: vec![BucketId(1), BucketId(2)],
        changes: (0..changes).map(change).collect(),
    }))
}

/// Returns a batch of mutations, a commit, and three prepared transactions, one of which has no
/// changes.
fn batch() -> Batch {
    let committed =
        CommittedTransaction { transaction: TransactionId(9), affected: 1, positions: Vec::new() };
    Batch {
        mutations: (1..=20).map(|n| mutation(n, 50)).collect(),
        commits: vec![
            prepare(1, 7),
            TransactionEvent::Committed(committed),
            prepare(2, 0),
            prepare(3, 9),
        ],
        ..Batch::default()
    }
}

fn in_pieces(batch: &Batch, bytes_max: usize) -> (CopiedGroup, usize) {
    let (mut assembly, mut pieces) = (GroupAssembly::new(4), 0);
    loop {
        pieces += 1;
        let piece = next_piece(batch, assembly.received_changes(), bytes_max).expect("a piece");
        if assembly.add(4, piece, usize::MAX).expect("it follows") {
            return (assembly.into_group(), pieces);
        }
    }
}

#[test]
fn pieces_of_any_size_add_up_to_the_group() {
    let batch = batch();
    let whole = CopiedGroup {
        mutations: batch.mutations.iter().map(|m| to_copied_mutation(m)).collect(),
        commits: batch.commits.clone(),
    };
    for (bytes_max, least) in [(1, 36), (100, 18), (1000, 3), (1 << 20, 1)] {
        let (group, pieces) = in_pieces(&batch, bytes_max);
        assert_eq!(group, whole, "{bytes_max}");
        assert!(pieces >= least, "{pieces} pieces of {bytes_max} bytes");
    }
    let (group, pieces) = in_pieces(&Batch::default(), 10);
    assert_eq!((group, pieces), (CopiedGroup::default(), 1));
}

#[test]
fn too_large_group_is_refused() {
    let prepared = Batch { commits: vec![prepare(1, 20)], ..Batch::default() };
    let written =
        Batch { mutations: (1..=20).map(|n| mutation(n, 50)).collect(), ..Batch::default() };
    for batch in [prepared, written] {
        let piece = || next_piece(&batch, 0, usize::MAX).expect("a piece");
        let error = GroupAssembly::new(4).add(4, piece(), 300).expect_err("too large");
        assert_eq!(error.code, ErrorCode::OverLimit);
        assert_eq!(GroupAssembly::new(4).add(4, piece(), 1 << 20), Ok(true));
    }
}

#[test]
fn a_piece_that_does_not_follow_is_refused() {
    let batch = batch();
    let first = next_piece(&batch, 0, 300).expect("a piece");
    let mut assembly = GroupAssembly::new(4);
    assert!(!assembly.add(4, first.clone(), usize::MAX).expect("the first piece"));
    for (number, from) in
        [(5, assembly.received_changes()), (4, 0), (4, assembly.received_changes() + 1)]
    {
        let piece = next_piece(&batch, from, 300).expect("a piece");
        let error = assembly.add(number, piece, usize::MAX).expect_err("it does not follow");
        assert_eq!(error.code, ErrorCode::OutOfOrder, "group {number} from {from}");
    }
    let error = next_piece(&batch, 37, 300).expect_err("behind the end");
    assert_eq!(error.code, ErrorCode::OutOfOrder);
}

#[test]
fn a_group_that_is_larger_than_a_step_is_refused_before_all_of_it_is_in_memory() {
    let batch = batch();
    let mut assembly = GroupAssembly::new(1);
    let error = loop {
        let piece = next_piece(&batch, assembly.received_changes(), 100).expect("a piece");
        match assembly.add(1, piece, 500) {
            Ok(is_last) => assert!(!is_last),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code, ErrorCode::OverLimit);
    assert!(assembly.bytes() < 700, "{}", assembly.bytes());
}
