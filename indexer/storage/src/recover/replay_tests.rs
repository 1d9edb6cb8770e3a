//! Tests of replayed epochs: their log records are kept until fragments have them.

use proto::model::ids::{BucketId, Epoch};

use super::load::tests::{INDEXES, apply, entries, node, open};
use crate::maintain::release::release_log;
use crate::slice_store::SliceStore;

/// A release may run at any time, even before the first epoch after a restart, and the node may
/// stop right after it.
#[tokio::test]
async fn a_release_after_a_restart_keeps_the_records_of_epochs_that_are_in_memory_alone() {
    let (env, _fs) = node().await;
    // At the beginning of each round one record is replayed, the last of the log.
    for (epoch, expected) in [(3, 20), (4, 24), (5, 25)] {
        for restart in 0..3 {
            let store = open(&env);
            for index in INDEXES {
                store.wait_loaded(index).await.unwrap();
                let shown = entries(&store, index, epoch).unwrap();
                assert_eq!(shown, expected, "epoch {epoch}, restart {restart}");
            }
            release_log(&store.context).await.unwrap();
        }
        let store = open(&env);
        store.flush().await.unwrap();
        apply(&store, epoch + 1, 0..epoch + 21).await;
        store.wait_durable(BucketId(1), Epoch(epoch + 1)).await.unwrap();
    }
}
