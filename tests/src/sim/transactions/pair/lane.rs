//! One of the two buckets, with its client and its history.

use std::sync::Arc;
use std::time::Duration;

use proto::model::bucket::{BucketInfo, SourceKind};
use proto::rpc::command::{Command, CreateBucket, Outcome};
use tokio::time::{sleep, timeout};

use super::{BUCKETS, INDEXES};
use crate::sim::client::session::Session;
use crate::sim::client::workload::{STATEMENT, Workload, create};
use crate::sim::cluster::hosts::{VBUCKETS, has_copies};
use crate::sim::judge::copied::Copied;
use crate::sim::judge::truth::Truth;

/// The number of document ids in each bucket, so small that sessions conflict.
pub(super) const IDS: u64 = 24;

/// One of the two buckets, with the client's state of it.
pub(super) struct Lane {
    pub work: Workload,
    pub session: Session,
}

impl Lane {
    /// Creates one of the buckets with its documents and its index.
    pub async fn create(
        client: &Workload,
        session: &Session,
        n: usize,
        truth: &Arc<Copied>,
    ) -> Self {
        let made = make_bucket(session, BUCKETS[n], has_copies(client.seed)).await;
        let session = session.of_bucket(made);
        let random = fastrand::Rng::with_seed(client.seed ^ 0x1a4e ^ n as u64);
        let truth = Truth::Copied(Arc::clone(truth));
        let mut work = client.of_bucket(truth, random, (&INDEXES[n], IDS));
        work.load(&session).await;
        for index in work.indexes {
            while timeout(STATEMENT, create(&session, index, true))
                .await
                .is_ok_and(|created| created.is_err())
            {
                sleep(Duration::from_millis(200)).await;
            }
        }
        Self { work, session }
    }
}

async fn make_bucket(session: &Session, name: &str, has_copies: bool) -> Arc<BucketInfo> {
    loop {
        let command = Command::CreateBucket(CreateBucket {
            name: name.to_owned(),
            vbuckets: VBUCKETS,
            source: SourceKind::Embedded,
            projectors: 1,
            copies: has_copies.then_some(2),
            if_not_exists: true,
        });
        if let Ok(Ok(Outcome::Bucket(_))) =
            timeout(STATEMENT, session.backend.command(command.into())).await
        {
            let made = session.router.wait_catalog(|catalog| catalog.bucket(name).is_some()).await;
            return Arc::clone(made.bucket(name).expect("it was there"));
        }
        sleep(Duration::from_millis(200)).await;
    }
}
