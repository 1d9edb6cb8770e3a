//! The limit on the number of connections of each client address, over all ports for users. IPv6
//! addresses of one /64 network count as one address.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use proto::lock::lock;
use proto::{ErrorCode, Result};

use super::limits::ClientLimits;
use super::refusals::{Limit, Refusals};
use crate::listen::{is_loopback, network};

/// The numbers of connections by client address. Clones share the numbers. The number of
/// addresses is bounded, because each port limits its connections.
#[derive(Clone)]
pub struct Addresses(Arc<Shared>);

/// The numbers of connections, shared by all clones.
struct Shared {
    setting: Option<u32>,
    refusals: Refusals,
    table: Mutex<BTreeMap<IpAddr, u32>>,
}

/// The reservation of one connection for an address. The connection is counted until this value
/// is dropped.
pub struct AddressPlace {
    addresses: Addresses,
    address: Option<IpAddr>,
}

impl Addresses {
    /// Returns a counter of connections with these limits.
    pub fn new(limits: &ClientLimits, refusals: Refusals) -> Self {
        let setting = limits.address_connections_max;
        Self(Arc::new(Shared { setting, refusals, table: Mutex::default() }))
    }

    /// Returns the maximum number of connections of an address.
    fn connections_max(&self, address: IpAddr) -> u32 {
        match self.0.setting {
            None if is_loopback(address) => u32::MAX,
            setting => setting.unwrap_or(ClientLimits::ADDRESS_CONNECTIONS_MAX),
        }
    }

    /// Counts a new connection of an address. Returns an error if the address has reached its
    /// limit.
    pub fn take(&self, address: Option<IpAddr>) -> Result<AddressPlace> {
        let address = address.map(network);
        if let Some(address) = address {
            let most = self.connections_max(address);
            let mut table = lock(&self.0.table);
            let count = table.get(&address).copied().unwrap_or_default();
            if count >= most {
                let what = format!("{count} connections of address {address} are open");
                let limit = Limit::AddressConnections;
                return Err(self.0.refusals.refuse(limit, ErrorCode::TooBusy, what));
            }
            table.insert(address, count + 1);
        }
        Ok(AddressPlace { addresses: self.clone(), address })
    }
}

impl Drop for AddressPlace {
    fn drop(&mut self) {
        let Some(address) = self.address else { return };
        let mut table = lock(&self.addresses.0.table);
        if let Some(count) = table.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                table.remove(&address);
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
    fn connections_are_limited_by_address() {
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
        assert_eq!(lock(&addresses.0.table).len(), 1, "addresses without places are forgotten");
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
}
