//! Tests of open scans of a transaction, which return its own changes.

use proto::model::ids::{TransactionId, TransactionPlace};
use proto::rpc::mutation::UncommittedChanges;
use proto::rpc::scan::UncommittedView;

use super::*;

#[tokio::test]
async fn a_scan_of_a_transaction_shows_the_same_rows_until_the_transaction_ends() {
    let (env, dir) = (Env::real(), tempfile::tempdir().unwrap());
    let store = filled(&env, dir.path(), 64 << 20).await;
    let scans = scans(&env, &store, 3_600_000);
    let (late, half) = (store.late_commit(), DOCUMENTS / 2);
    let begin = || {
        late.drop_transactions(BUCKET);
        late.carry_index(&store.indexes()[0].info, [SliceNo(0)].into());
    };
    begin();
    let transaction = TransactionId(5);
    let delete = |from: u64, to: u64| {
        let body = epoch(1, from..to, false).pieces.remove(0).body;
        let (from, to) = (TransactionPlace(from), TransactionPlace(to));
        late.add_changes(BUCKET, &UncommittedChanges { transaction, from, to, body }).unwrap();
    };
    delete(0, half);
    let own = Some(UncommittedView { transaction, place: TransactionPlace(half) });
    let mine = ShardScan { own, ..scan(1000) };
    assert_eq!(all(&scans, mine.clone(), true).await.len() as u64, half);
    let mut open_scan = open(&scans, mine.clone()).await.unwrap();
    let mut rows = 0;
    for step in 0.. {
        match step {
            2 => delete(half, DOCUMENTS),
            3 => late.end_transactions(BUCKET, &[transaction]),
            _ => {}
        }
        // The scan waits for the changes that a new stream sends again.
        let bring = async {
            if step == 1 {
                delete(0, half)
            }
        };
        let (batch, ()) = tokio::join!(open_scan.next(), bring);
        match batch.unwrap().unwrap() {
            ShardBatch::Rows(block) => rows += u64::from(block.rows),
            _ => break,
        }
        let held = lock(&scans.table.open).values().next().cloned().unwrap();
        // Before the end of the transaction with a new snapshot for each batch, then with the last one.
        if step < 2 {
            lock(&held).scanner.as_mut().unwrap().park();
        }
        if step == 0 {
            begin();
        }
    }
    assert_eq!(late.open(), 0, "the scan has more than three batches");
    assert_eq!(rows, half, "neither more nor less than at its place");
    drop(open_scan);
    let ended = open(&scans, mine).await.err().map(|error| error.code);
    assert_eq!(ended, Some(ErrorCode::SnapshotTooOld));
}
