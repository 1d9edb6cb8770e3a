//! Purges of change logs that the fault driver requests. The running process executes them,
//! concurrently with its own changes.

use std::sync::{Arc, Mutex};

use projector::testing::DocumentStore;
use proto::Result;
use proto::env::Env;
use proto::model::ids::{Seqno, VbucketId};
use tokio::sync::Notify;

/// True if change logs are purged in this seed.
pub fn has_purges(seed: u64) -> bool {
    seed.is_multiple_of(3) || seed % 6 == 5
}

/// The purges that are requested of a projector, each with a seed, and a signal; clones share them.
#[derive(Clone, Default)]
pub struct Purges(Arc<Mutex<Vec<u64>>>, Arc<Notify>);

impl Purges {
    /// Requests a purge.
    pub fn ask(&self, seed: u64) {
        self.0.lock().expect("not poisoned").push(seed);
        self.1.notify_one();
    }

    /// Executes the requested purges until the future is dropped.
    pub async fn serve(self, env: Env, store: Arc<dyn DocumentStore>) {
        loop {
            self.1.notified().await;
            let asked = std::mem::take(&mut *self.0.lock().expect("not poisoned"));
            for seed in asked {
                let store = Arc::clone(&store);
                // A failed disk accepts no purge.
                let _ = env.blocking(move || purge(&*store, seed)).await;
            }
        }
    }
}

/// Purges the logs of all buckets: mostly as much as possible, sometimes the older half.
fn purge(store: &dyn DocumentStore, seed: u64) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(seed);
    for (record, _) in store.buckets()? {
        let (bucket, half) = (record.info.id, random.u8(..4) == 0);
        let extents = store.extents(bucket)?;
        let to = extents.iter().zip(0..).map(|(extent, n)| {
            let end = if half { extent.end.0 / 2 } else { extent.end.0 };
            (VbucketId(n), Seqno(end))
        });
        store.purge(bucket, &to.collect::<Vec<_>>())?;
    }
    Ok(())
}
