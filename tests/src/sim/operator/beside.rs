//! Events concurrent with the client's statements: vbuckets are handed over, in both directions at
//! once; a second process of the producer pushes the same feed; slices move; a router restarts.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::{hand_overs, moves};
use crate::sim::client::session::Session;
use crate::sim::client::workload::now;
use crate::sim::producer::Producer;
use crate::sim::scans::Reader;
use crate::sim::violation;

/// The maximum time between two events, in milliseconds.
const EVERY_MS_MAX: u64 = 800;

/// The driver of such events.
pub(in crate::sim) struct Beside {
    /// A reader, for its random numbers and its knowledge of broken disks.
    pub reader: Reader,
    /// The producer of a pushed bucket; `None` for an embedded one.
    pub producer: Option<Arc<Producer>>,
}

impl Beside {
    /// Causes events until the future is dropped.
    pub async fn run(mut self, session: Session) {
        loop {
            let random = &mut self.reader.random;
            sleep(Duration::from_millis(random.u64(50..EVERY_MS_MAX))).await;
            match (random.u8(..8), &self.producer) {
                (0, _) => session.restart_router(),
                (1 | 2, Some(producer)) => {
                    sleep(Duration::from_millis(random.u64(..20))).await;
                    self.push(producer, &session).await;
                }
                (3, Some(_)) => {
                    let mut other = random.fork();
                    let summary = &self.reader.summary;
                    tokio::join!(
                        hand_overs::step(random, &session, summary),
                        hand_overs::step(&mut other, &session, summary),
                    );
                }
                (4 | 5, _) => moves::step(random, &session, &self.reader.summary).await,
                (_, Some(_)) => hand_overs::step(random, &session, &self.reader.summary).await,
                (_, None) => {}
            }
        }
    }

    /// Pushes as a second process of the producer would, possibly mutations that the first one is
    /// sending.
    async fn push(&self, producer: &Producer, session: &Session) {
        let began = now();
        if let Err(error) = producer.push_all(&session.backend, &session.bucket).await
            && !self.reader.is_excused(&error, began)
        {
            violation(&self.reader.summary, format!("a second push was refused: {error}"));
        }
    }
}
