//! The checks of the data set after the faults.

use std::time::Duration;

use proto::model::data_set::DataSet;
use tokio::time::{Instant, sleep};

use super::contents::{IDS, INDEXES, is_broken, name};
use super::loads::{current_of, set_of};
use super::{DataSets, NAME, has_no_tokens};
use crate::sim::client::session::Session;

/// The time limit after the faults until the loading version must end and another one must be
/// current.
const SETTLED: Duration = Duration::from_secs(60);
/// The time limit until old versions must be dropped. At that time only the client has a lease, and
/// its tokens have expired.
const GONE: Duration = Duration::from_secs(60);

impl DataSets {
    /// Waits until a new version is current, and reads it completely.
    pub async fn settle(&self, session: &Session) {
        let Some(bucket) = session.router.catalog().bucket(NAME).cloned() else {
            return self.violation(format!("there is no bucket {NAME}"));
        };
        let session = session.of_bucket(bucket);
        let deadline = Instant::now() + SETTLED;
        if self.end_loading(&session, deadline).await
            && let Some(count) = self.load_last(&session).await
        {
            let deadline = Instant::now() + SETTLED;
            while !self.declare(&session).await && Instant::now() < deadline {
                sleep(Duration::from_millis(200)).await;
            }
            self.read_last(&session, count).await;
        }
    }

    /// Waits until no version is being loaded; false after the deadline.
    async fn end_loading(&self, session: &Session, deadline: Instant) -> bool {
        loop {
            let catalog = session.router.catalog();
            let set = set_of(&catalog, session.bucket.id);
            let Some(set) = set.filter(|set| set.loading().is_some()) else { return true };
            if Instant::now() > deadline {
                let what =
                    format!("a version loads {SETTLED:?} after the faults: {}", outline(set));
                self.violation(what);
                return false;
            }
            sleep(Duration::from_millis(200)).await;
        }
    }

    /// Loads another version; returns the number in its name.
    async fn load_last(&self, session: &Session) -> Option<u64> {
        let deadline = Instant::now() + SETTLED;
        let mut begun = None;
        while Instant::now() < deadline {
            let current = current_of(&session.router.catalog(), session.bucket.id);
            match begun {
                Some((number, count)) if current == number => return Some(count),
                Some(_) => {}
                None => {
                    let count = (0..).map(|_| self.next()).find(|count| !is_broken(*count))?;
                    let number = self.begin(session, count).await;
                    begun = number.map(|number| (number, count));
                }
            }
            sleep(Duration::from_millis(200)).await;
        }
        let catalog = session.router.catalog();
        let set = set_of(&catalog, session.bucket.id).map(outline);
        let what = format!("no version is current {SETTLED:?} after {begun:?} was begun: {set:?}");
        self.violation(what);
        None
    }

    /// Reads the last version completely.
    async fn read_last(&self, session: &Session, count: u64) {
        let deadline = Instant::now() + SETTLED;
        let (catalog, name) = (session.router.catalog(), name(count));
        session.versions.learn(&catalog);
        let Some(bucket) = catalog.read_bucket(NAME).cloned() else { return };
        let ids: Vec<String> = (0..IDS).map(|id| format!("p{id}")).collect();
        while let Err(error) = self.read_documents(session, &bucket, ids.clone()).await {
            if Instant::now() > deadline {
                return self.violation(format!("version {name} has no documents: {error}"));
            }
            sleep(Duration::from_millis(200)).await;
        }
        let mut reader = self.reader.clone();
        for index in &INDEXES {
            while let Err(refusal) = reader.scan(session, index, true, false).await {
                if Instant::now() > deadline {
                    let what =
                        format!("{} of version {name} is not served: {refusal:?}", index.name);
                    return self.violation(what);
                }
                sleep(Duration::from_millis(200)).await;
            }
        }
    }

    /// Checks that the old versions are dropped, unless a token may hold them.
    pub async fn old_ones_go(&self, session: &Session) {
        if !has_no_tokens(self.seed) {
            return;
        }
        let deadline = Instant::now() + GONE;
        loop {
            let catalog = session.router.catalog();
            let id = catalog.bucket(NAME).map(|bucket| bucket.id);
            let Some(set) = id.and_then(|id| set_of(&catalog, id)) else { return };
            if set.versions.len() == 1 {
                return;
            }
            if Instant::now() > deadline {
                let kept: Vec<_> = set.versions.values().map(|v| (&v.name, v.stage)).collect();
                let what = format!("old versions stay for {GONE:?}: {kept:?}");
                return self.violation(what);
            }
            sleep(Duration::from_millis(200)).await;
        }
    }
}

/// Returns a text about the versions of a data set: the stage of each, and the holders of its
/// partitions.
fn outline(set: &DataSet) -> String {
    let versions = set.versions.values().map(|version| {
        let holders: Vec<_> = version.partitions.iter().map(|p| &p.holders).collect();
        format!("{} {:?} {holders:?}", version.name, version.stage)
    });
    versions.collect::<Vec<_>>().join("; ")
}
