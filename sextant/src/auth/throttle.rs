//! A limit of failed log-ins by address, so that passwords cannot be guessed.
//!
//! Each failure adds one to the count of its address, and counts fall by `login_failures_max` per
//! minute. An address whose count has reached the limit is refused before its proof is checked.
//! This refusal does not add to the count, so clients that continue to try may fail again
//! `login_failures_max` times per minute. IPv6 addresses of one /64 have one count, since a
//! household or machine has at least a /64.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use proto::lock::lock;
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use crate::listen::network;

/// The maximum number of remembered addresses. When it is exceeded, the address whose last
/// failure is oldest is forgotten.
const ADDRESSES_MAX: usize = 4096;

const MINUTE: Duration = Duration::from_secs(60);

/// The counts of failed log-ins by address.
pub struct Throttle {
    failures_max: u32,
    table: Mutex<Table>,
}

/// The failures of each address, and the order in which the addresses had their last one.
#[derive(Default)]
struct Table {
    by_address: BTreeMap<IpAddr, Failures>,
    /// The addresses, ordered by the number (`no`) of their last failure.
    by_age: BTreeMap<u64, IpAddr>,
    /// The number of all failures.
    count: u64,
}

/// The failed log-ins of one address.
#[derive(Clone, Copy)]
struct Failures {
    /// The count of failures just after the last failure; the present count is lower, since
    /// counts fall with time.
    level: f64,
    at: Instant,
    /// The number of the address's last failure, counted over the failures of all addresses.
    no: u64,
}

impl Throttle {
    /// Returns a throttle that allows an address this many failures per minute; 0 for no limit.
    pub fn new(failures_max: u32) -> Self {
        Self { failures_max, table: Mutex::default() }
    }

    /// Returns an error if the address has too many failures.
    pub fn check(&self, address: Option<IpAddr>) -> Result<()> {
        let Some(address) = address.map(network).filter(|_| self.failures_max > 0) else {
            return Ok(());
        };
        let table = lock(&self.table);
        let failures = table.by_address.get(&address);
        let level = failures.map_or(0.0, |failures| self.present_count(failures));
        // The limit is a little less than a whole number, since the count falls meanwhile.
        if level <= f64::from(self.failures_max) - 1.0 {
            return Ok(());
        }
        let text = format!("too many log-ins have failed from {address}");
        let hint = format!(
            "try again in a minute; login_failures_max = {} a minute is the limit of an address",
            self.failures_max
        );
        Err(Error::new(ErrorCode::TooBusy, text).with_hint(hint))
    }

    /// Counts a failed log-in for an address.
    pub fn count_failure(&self, address: Option<IpAddr>) {
        let Some(address) = address.map(network).filter(|_| self.failures_max > 0) else { return };
        let mut table = lock(&self.table);
        let table = &mut *table;
        table.count += 1;
        let known = table.by_address.get(&address);
        let level = known.map_or(0.0, |failures| self.present_count(failures)) + 1.0;
        let failures = Failures { level, at: Instant::now(), no: table.count };
        if let Some(earlier) = table.by_address.insert(address, failures) {
            table.by_age.remove(&earlier.no);
        }
        table.by_age.insert(table.count, address);
        if table.by_age.len() > ADDRESSES_MAX
            && let Some((_, oldest)) = table.by_age.pop_first()
        {
            table.by_address.remove(&oldest);
        }
    }

    /// Returns the present count of an address.
    fn present_count(&self, failures: &Failures) -> f64 {
        let fallen = failures.at.elapsed().as_secs_f64() / MINUTE.as_secs_f64();
        (failures.level - fallen * f64::from(self.failures_max)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn failures_block_an_address_for_a_while() {
        let throttle = Throttle::new(10);
        let (bad, good) = (address("10.0.0.9"), address("10.0.0.7"));
        for n in 0..10 {
            assert!(throttle.check(bad).is_ok(), "failure {n}");
            throttle.count_failure(bad);
        }
        let refused = throttle.check(bad).unwrap_err();
        assert!(refused.to_string().contains("10.0.0.9"), "{refused}");
        assert!(refused.hint.unwrap().contains("login_failures_max = 10"));
        assert!(throttle.check(good).is_ok() && throttle.check(None).is_ok());
        assert!(throttle.check(address("::ffff:10.0.0.9")).is_err(), "the same address");
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(throttle.check(bad).is_err());
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(throttle.check(bad).is_ok(), "one of ten a minute");
        throttle.count_failure(bad);
        assert!(throttle.check(bad).is_err());
        tokio::time::advance(2 * MINUTE).await;
        for _ in 0..10 {
            assert!(throttle.check(bad).is_ok());
            throttle.count_failure(bad);
        }
        assert!(throttle.check(bad).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn addresses_of_a_network_of_ipv6_count_together() {
        let throttle = Throttle::new(1);
        throttle.count_failure(address("2001:db8:1:2::1"));
        assert!(throttle.check(address("2001:db8:1:2:ffff::7")).is_err());
        assert!(throttle.check(address("2001:db8:1:3::1")).is_ok());
        let none = Throttle::new(0);
        (0..100).for_each(|_| none.count_failure(address("10.0.0.1")));
        assert!(none.check(address("10.0.0.1")).is_ok(), "0 is no limit");
    }

    #[tokio::test(start_paused = true)]
    async fn remembered_addresses_are_bounded() {
        let throttle = Throttle::new(1);
        let nth = |n: u32| Some(IpAddr::from(n.to_be_bytes()));
        for n in 0..ADDRESSES_MAX as u32 + 10 {
            throttle.count_failure(nth(n));
            throttle.count_failure(nth(0));
        }
        let table = lock(&throttle.table);
        assert_eq!((table.by_address.len(), table.by_age.len()), (ADDRESSES_MAX, ADDRESSES_MAX));
        drop(table);
        assert!(throttle.check(nth(0)).is_err(), "an address that goes on failing stays");
        assert!(throttle.check(nth(1)).is_ok(), "the oldest has gone");
    }
}
