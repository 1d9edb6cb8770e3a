//! The connections of single addresses, at all ports for users together. Addresses of IPv6 count by their /64.
//!
//! An HTTP/2 connection that abuses the protocol is closed, and its client may come again at once: the begin of a connection and the
//! abuse until its end cost a millisecond of a processor. So the gRPC connections of an address begin at a pace. Beyond it a connection
//! waits, unread, and keeps its place meanwhile. The algorithm is the generic cell rate algorithm (ITU-T I.371), as for the connections
//! of a port (`listen.rs`).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::lock::lock;
use proto::{ErrorCode, Result};
use tokio::time::Instant;

use super::limits::ClientLimits;
use super::refusals::{Limit, Refusals};
use crate::listen::{is_loopback, network};

/// The time of a gRPC connection: those of an address begin at 100 a second.
const BEGIN_EVERY: Duration = Duration::from_millis(10);
/// gRPC connections of an address that begin at once after a quiet time, as the pool of a client opens them.
const AT_ONCE_MAX: u32 = 64;

/// The connections of each address; clones share them. The limits of the ports bound the number of addresses with connections, and the
/// pace of the ports bounds the number of those without.
#[derive(Clone)]
pub struct Addresses(Arc<Shared>);

struct Shared {
    setting: Option<u32>,
    refusals: Refusals,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    known: BTreeMap<IpAddr, Known>,
    /// The length at which addresses are looked for that may be forgotten.
    forget_at: usize,
}

/// An address that has connections, or had some lately.
#[derive(Default)]
struct Known {
    connections: u32,
    /// The time at which all gRPC connections so far would have begun if each had come in its own time.
    due: Option<Instant>,
}

impl Known {
    /// True if nothing of the address matters any more.
    fn is_past(&self, earliest: Instant) -> bool {
        self.connections == 0 && self.due.is_none_or(|due| due <= earliest)
    }
}

impl Table {
    /// Forgets what is past, each time that the table has doubled.
    fn forget(&mut self) {
        if self.known.len() >= self.forget_at {
            let earliest = earliest(Instant::now());
            self.known.retain(|_, known| !known.is_past(earliest));
            self.forget_at = 64.max(2 * self.known.len());
        }
    }
}

/// The time before which a connection counts no longer. Times before the begin of the clock are none.
fn earliest(now: Instant) -> Instant {
    now.checked_sub(AT_ONCE_MAX * BEGIN_EVERY).unwrap_or(now)
}

/// The place of a connection; it is free again on drop.
pub struct AddressPlace {
    addresses: Addresses,
    address: Option<IpAddr>,
}

impl Addresses {
    /// Places within these limits.
    pub fn new(limits: &ClientLimits, refusals: Refusals) -> Self {
        let setting = limits.address_connections_max;
        Self(Arc::new(Shared { setting, refusals, table: Mutex::default() }))
    }

    /// The limit of an address.
    fn most(&self, address: IpAddr) -> u32 {
        match self.0.setting {
            None if is_loopback(address) => u32::MAX,
            setting => setting.unwrap_or(ClientLimits::ADDRESS_CONNECTIONS_MAX),
        }
    }

    /// Takes a place for a connection; an error if its address has as many as it may.
    pub fn take(&self, address: Option<IpAddr>) -> Result<AddressPlace> {
        let address = address.map(network);
        if let Some(address) = address {
            let most = self.most(address);
            let mut table = lock(&self.0.table);
            table.forget();
            let known = table.known.entry(address).or_default();
            if known.connections >= most {
                let what =
                    format!("{} connections of address {address} are open", known.connections);
                let limit = Limit::AddressConnections;
                return Err(self.0.refusals.refuse(limit, ErrorCode::TooBusy, what));
            }
            known.connections += 1;
        }
        Ok(AddressPlace { addresses: self.clone(), address })
    }
}

impl AddressPlace {
    /// Returns the time at which the connection, of gRPC, may begin.
    pub fn begins_at(&self) -> Instant {
        let now = Instant::now();
        let Some(address) = self.address else { return now };
        let mut table = lock(&self.addresses.0.table);
        let known = table.known.entry(address).or_default();
        let own = known.due.map_or(earliest(now), |due| due.max(earliest(now))) + BEGIN_EVERY;
        known.due = Some(own);
        own.max(now)
    }
}

impl Drop for AddressPlace {
    fn drop(&mut self) {
        let Some(address) = self.address else { return };
        let mut table = lock(&self.addresses.0.table);
        if let Some(known) = table.known.get_mut(&address) {
            known.connections -= 1;
            if known.is_past(earliest(Instant::now())) {
                table.known.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(address_connections_max: Option<u32>) -> Addresses {
        let limits = ClientLimits { address_connections_max, ..ClientLimits::default() };
        Addresses::new(&limits, Refusals::default())
    }

    fn at(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect("an address"))
    }

    #[test]
    fn an_address_has_as_many_connections_as_it_may_and_takes_none_of_others() {
        let addresses = addresses(Some(2));
        let first = addresses.take(at("10.0.0.1")).expect("a place");
        let _second = addresses.take(at("::ffff:10.0.0.1")).expect("the same address");
        let error = addresses.take(at("10.0.0.1")).err().expect("two are the most");
        assert_eq!(error.code.sqlstate(), "53300");
        assert!(error.hint.is_some_and(|hint| hint.contains("address_connections_max")));
        let other = addresses.take(at("10.0.0.2")).expect("another address");
        drop(first);
        let _again = addresses.take(at("10.0.0.1")).expect("the place that was given back");
        drop(other);
        assert_eq!(
            lock(&addresses.0.table).known.len(),
            1,
            "addresses without places are forgotten"
        );
        let _one = addresses.take(at("2001:db8::1")).expect("a place");
        let _two = addresses.take(at("2001:db8::2")).expect("a place");
        assert!(addresses.take(at("2001:db8::3")).is_err(), "of one /64");
        assert!(addresses.take(None).is_ok(), "within this process");
    }

    #[test]
    fn loopback_has_the_limits_of_the_ports_unless_the_setting_is_given() {
        let usual = addresses(None);
        let _many: Vec<_> = (0..1000).map(|_| usual.take(at("127.0.0.1")).expect("one")).collect();
        let far: Vec<_> = (0..256).map(|_| usual.take(at("10.0.0.1")).expect("one")).collect();
        assert!(usual.take(at("10.0.0.1")).is_err());
        drop(far);
        let given = addresses(Some(1));
        let _one = given.take(at("127.0.0.1")).expect("a place");
        assert!(given.take(at("127.0.0.1")).is_err());
        assert!(given.take(at("127.0.0.2")).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_grpc_connections_of_an_address_begin_at_its_pace_and_others_do_not_wait() {
        let addresses = addresses(None);
        let begun = Instant::now();
        // Each connection ends before the next one begins.
        let begins_after = |text| {
            let place = addresses.take(at(text)).expect("a place");
            place.begins_at().duration_since(begun)
        };
        for _ in 0..AT_ONCE_MAX {
            assert_eq!(begins_after("10.0.0.1"), Duration::ZERO);
        }
        for n in 1..=100 {
            assert_eq!(begins_after("10.0.0.1"), n * BEGIN_EVERY);
        }
        assert_eq!(begins_after("10.0.0.2"), Duration::ZERO, "another address");
        tokio::time::sleep(Duration::from_secs(60)).await;
        let minute = Duration::from_secs(60);
        for _ in 0..AT_ONCE_MAX {
            assert_eq!(begins_after("10.0.0.1"), minute, "a quiet time");
        }
        assert_eq!(begins_after("10.0.0.1"), minute + BEGIN_EVERY, "is not saved up further");
    }

    #[tokio::test(start_paused = true)]
    async fn addresses_that_have_been_there_are_forgotten() {
        let addresses = addresses(None);
        let mut most = 0;
        for n in 0..50_000u32 {
            let place = addresses.take(Some(IpAddr::V4(n.into()))).expect("a place");
            place.begins_at();
            drop(place);
            most = most.max(lock(&addresses.0.table).known.len());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // A port takes 1,000 connections in a second, and one alone counts for 10 ms.
        assert!(most <= 64, "{most} addresses");
        assert!(most > 1, "they are remembered for a while");
    }
}
