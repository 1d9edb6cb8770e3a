//! Tests that the pieces of a group are joined to the original group.

use bytes::Bytes;
use proto::model::commits::Committed;
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
    TransactionEvent::Prepared(Arc::new(Prepared {
        transaction: TransactionId(n),
        participants: vec![BucketId(1), BucketId(2)],
        changes: (0..changes).map(change).collect(),
    }))
}

/// Returns a batch of mutations, a commit, and three prepared transactions, one of which has no
/// changes.
fn batch() -> Batch {
    let committed = Committed { transaction: TransactionId(9), affected: 1, positions: Vec::new() };
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
    let (mut assembly, mut pieces) = (Assembly::new(4), 0);
    loop {
        pieces += 1;
        let piece = piece_of(batch, assembly.held(), bytes_max).expect("a piece");
        if assembly.add(4, piece, usize::MAX).expect("it follows") {
            return (assembly.into_group(), pieces);
        }
    }
}

#[test]
fn pieces_of_any_size_make_the_group_again() {
    let batch = batch();
    let whole = CopiedGroup {
        mutations: batch.mutations.iter().map(|m| copied(m)).collect(),
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
fn a_group_beyond_the_limit_is_refused_whatever_it_is_made_of() {
    let prepared = Batch { commits: vec![prepare(1, 20)], ..Batch::default() };
    let written =
        Batch { mutations: (1..=20).map(|n| mutation(n, 50)).collect(), ..Batch::default() };
    for batch in [prepared, written] {
        let piece = || piece_of(&batch, 0, usize::MAX).expect("a piece");
        let error = Assembly::new(4).add(4, piece(), 300).expect_err("too large");
        assert_eq!(error.code, ErrorCode::OverLimit);
        assert_eq!(Assembly::new(4).add(4, piece(), 1 << 20), Ok(true));
    }
}

#[test]
fn a_piece_that_does_not_follow_is_refused() {
    let batch = batch();
    let first = piece_of(&batch, 0, 300).expect("a piece");
    let mut assembly = Assembly::new(4);
    assert!(!assembly.add(4, first.clone(), usize::MAX).expect("the first piece"));
    for (number, from) in [(5, assembly.held()), (4, 0), (4, assembly.held() + 1)] {
        let piece = piece_of(&batch, from, 300).expect("a piece");
        let error = assembly.add(number, piece, usize::MAX).expect_err("it does not follow");
        assert_eq!(error.code, ErrorCode::OutOfOrder, "group {number} from {from}");
    }
    let error = piece_of(&batch, 37, 300).expect_err("behind the end");
    assert_eq!(error.code, ErrorCode::OutOfOrder);
}

#[test]
fn a_group_that_is_larger_than_a_step_is_refused_before_all_of_it_is_in_memory() {
    let batch = batch();
    let mut assembly = Assembly::new(1);
    let error = loop {
        let piece = piece_of(&batch, assembly.held(), 100).expect("a piece");
        match assembly.add(1, piece, 500) {
            Ok(is_last) => assert!(!is_last),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code, ErrorCode::OverLimit);
    assert!(assembly.bytes() < 700, "{}", assembly.bytes());
}
