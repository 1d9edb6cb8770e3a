//! The places of connections that are logging in.
//!
//! A connection keeps its place until it is logged in, so that nobody can begin any number of log-ins. Clients that stay silent must not
//! keep all places from others either: when the last place is taken, the oldest connection that has had [`PATIENCE`] gives up its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::lock::lock;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The time that a connection has in any case. A log-in takes a small part of it.
const PATIENCE: Duration = Duration::from_secs(2);

/// The places; cheap to clone.
#[derive(Clone)]
pub(super) struct StartingPlaces {
    count_max: usize,
    table: Arc<Mutex<Table>>,
}

#[derive(Default)]
struct Table {
    last: u64,
    /// The connections in order of their arrival.
    taken: BTreeMap<u64, (Instant, CancellationToken)>,
}

/// A place; it is free again on drop.
pub(super) struct Starting {
    places: StartingPlaces,
    no: u64,
    /// The end of the time for the log-in.
    deadline: Instant,
    given_up: CancellationToken,
}

impl StartingPlaces {
    pub(super) fn new(count_max: usize) -> Self {
        Self { count_max, table: Arc::default() }
    }

    /// Takes a place until this time has passed at most; `None` if all are taken by connections that have just come.
    pub(super) fn take(&self, within: Duration) -> Option<Starting> {
        let (now, mut table) = (Instant::now(), lock(&self.table));
        if table.taken.len() >= self.count_max {
            let oldest = table.taken.first_entry()?;
            if now.duration_since(oldest.get().0) < PATIENCE {
                return None;
            }
            oldest.remove().1.cancel();
        }
        table.last += 1;
        let (no, given_up) = (table.last, CancellationToken::new());
        table.taken.insert(no, (now, given_up.clone()));
        Some(Starting { places: self.clone(), no, deadline: now + within, given_up })
    }
}

impl Starting {
    /// Runs a part of the log-in; `None` if the connection has lost its place, or its time is over.
    pub(super) async fn run<T>(&self, part: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.given_up.cancelled() => None,
            done = tokio::time::timeout_at(self.deadline, part) => done.ok(),
        }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        lock(&self.places.table).taken.remove(&self.no);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn the_oldest_silent_connection_makes_room() {
        let places = StartingPlaces::new(2);
        let first = places.take(WITHIN).expect("a place");
        tokio::time::advance(PATIENCE / 2).await;
        let second = places.take(WITHIN).expect("a place");
        assert!(places.take(WITHIN).is_none(), "both have just come");
        tokio::time::advance(PATIENCE / 2).await;
        let third = places.take(WITHIN).expect("the place of the first");
        assert_eq!(first.run(std::future::pending::<()>()).await, None);
        assert_eq!(second.run(async { 7 }).await, Some(7));
        assert!(places.take(WITHIN).is_none());
        drop(first);
        assert!(places.take(WITHIN).is_none(), "a place is given back once");
        drop(third);
        let fourth = places.take(WITHIN).expect("a place");
        let began = Instant::now();
        assert_eq!(fourth.run(std::future::pending::<()>()).await, None);
        assert_eq!(began.elapsed(), WITHIN, "its time is over");
    }
}
