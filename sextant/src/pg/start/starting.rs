//! The limit of the number of connections that are logging in.
//!
//! A connection counts from its acceptance until its log-in has ended. Clients that send nothing
//! must not use up the limit. When the limit is reached, a new connection therefore replaces an
//! older one. If the address with the most connections has more than the address of the new
//! connection, its oldest connection is replaced. Otherwise the oldest of all connections is
//! replaced, if it is older than [`PATIENCE`].

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::lock::lock;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::listen::network;

/// The minimum time for which a connection that is logging in is not replaced. A log-in usually
/// takes a small part of this time.
const PATIENCE: Duration = Duration::from_secs(2);

/// The connections that are logging in, and the limit of their number. A clone is cheap and
/// shares them.
#[derive(Clone)]
pub(in crate::pg) struct StartingPlaces {
    count_max: usize,
    table: Arc<Mutex<Table>>,
}

/// The connections that are logging in.
#[derive(Default)]
struct Table {
    last: u64,
    /// The connections that are logging in, in order of their arrival.
    taken: BTreeMap<u64, StartPlace>,
}

/// A connection that is logging in: its start, its address, and the token by which it is closed.
struct StartPlace {
    since: Instant,
    address: Option<IpAddr>,
    given_up: CancellationToken,
}

impl Table {
    /// Returns the number of the connection that is closed so that a new one can log in. If some
    /// address has at least two connections more than the address of the new connection, the
    /// oldest connection of the address with the most is chosen. Otherwise the oldest of all is
    /// chosen, if it is older than [`PATIENCE`]; if not, returns `None`.
    fn connection_to_close(&self, newcomer: Option<IpAddr>, now: Instant) -> Option<u64> {
        let mut counts: BTreeMap<Option<IpAddr>, (usize, u64)> = BTreeMap::new();
        for (no, taken) in self.taken.iter().rev() {
            let (count, oldest) = counts.entry(taken.address).or_default();
            (*count, *oldest) = (*count + 1, *no);
        }
        let own = counts.get(&newcomer).map_or(0, |(count, _)| *count);
        let (most, its_oldest) = counts.values().max().copied()?;
        if most > own + 1 {
            return Some(its_oldest);
        }
        let (oldest, taken) = self.taken.first_key_value()?;
        (now.duration_since(taken.since) >= PATIENCE).then_some(*oldest)
    }
}

/// The permission of a connection to log in. It is given back when this value is dropped.
pub(in crate::pg) struct LoginPermit {
    places: StartingPlaces,
    no: u64,
    /// The time at which the log-in must be finished.
    deadline: Instant,
    given_up: CancellationToken,
}

impl StartingPlaces {
    pub(in crate::pg) fn new(count_max: usize) -> Self {
        Self { count_max, table: Arc::default() }
    }

    /// Admits a connection of an address, for at most the time `within`. Returns `None` if the
    /// limit is reached and no connection can be replaced.
    pub(in crate::pg) fn take(
        &self,
        within: Duration,
        address: Option<IpAddr>,
    ) -> Option<LoginPermit> {
        let address = address.map(network);
        let (now, mut table) = (Instant::now(), lock(&self.table));
        if table.taken.len() >= self.count_max {
            let gone = table.connection_to_close(address, now)?;
            if let Some(gone) = table.taken.remove(&gone) {
                gone.given_up.cancel();
            }
        }
        table.last += 1;
        let (no, given_up) = (table.last, CancellationToken::new());
        let taken = StartPlace { since: now, address, given_up: given_up.clone() };
        table.taken.insert(no, taken);
        Some(LoginPermit { places: self.clone(), no, deadline: now + within, given_up })
    }
}

impl LoginPermit {
    /// Runs a future of the log-in. Returns `None` if the connection was replaced or its time
    /// limit has passed.
    pub(in crate::pg) async fn run<T>(&self, part: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.given_up.cancelled() => None,
            done = tokio::time::timeout_at(self.deadline, part) => done.ok(),
        }
    }
}

impl Drop for LoginPermit {
    fn drop(&mut self) {
        lock(&self.places.table).taken.remove(&self.no);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn the_oldest_connection_is_replaced() {
        let places = StartingPlaces::new(2);
        let first = places.take(WITHIN, None).expect("a place");
        tokio::time::advance(PATIENCE / 2).await;
        let second = places.take(WITHIN, None).expect("a place");
        assert!(places.take(WITHIN, None).is_none(), "both have just come");
        tokio::time::advance(PATIENCE / 2).await;
        let third = places.take(WITHIN, None).expect("the place of the first");
        assert_eq!(first.run(std::future::pending::<()>()).await, None);
        assert_eq!(second.run(async { 7 }).await, Some(7));
        assert!(places.take(WITHIN, None).is_none());
        drop(first);
        assert!(places.take(WITHIN, None).is_none(), "a place is given back once");
        drop(third);
        let fourth = places.take(WITHIN, None).expect("a place");
        let began = Instant::now();
        assert_eq!(fourth.run(std::future::pending::<()>()).await, None);
        assert_eq!(began.elapsed(), WITHIN, "its time is over");
    }

    #[tokio::test(start_paused = true)]
    async fn the_busiest_address_loses_a_connection() {
        let places = StartingPlaces::new(4);
        let [one, other] = ["10.0.0.1", "10.0.0.2"].map(|text| Some(text.parse().expect("one")));
        let flood: Vec<_> = (0..4).map(|_| places.take(WITHIN, one).expect("a place")).collect();
        assert!(places.take(WITHIN, one).is_none(), "all have just come");
        let good = places.take(WITHIN, other).expect("the place of the first of the flood");
        assert_eq!(flood[0].run(std::future::pending::<()>()).await, None);
        let second = places.take(WITHIN, other).expect("the place of the second");
        assert!(places.take(WITHIN, other).is_none(), "both addresses have two");
        assert_eq!(good.run(async { 7 }).await, Some(7));
        assert_eq!(second.run(async { 7 }).await, Some(7));
    }
}
