//! The limits of clients in a process, with their present use. All ports of the process share
//! them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::addresses::Addresses;
use super::definitions::Definitions;
use super::limits::ClientLimits;
use super::memory::MemoryBudget;
use super::refusals::{Limit, Refusals};
use super::stop::Stop;
use super::users::UserPlaces;

/// The limits of a process's clients, and how much of each limit is in use.
pub struct ClientCapacity {
    /// The values of the limits, from the settings.
    pub limits: ClientLimits,
    /// The counters of refusals.
    pub refusals: Refusals,
    /// The running sessions and statements of each user.
    pub users: UserPlaces,
    /// The connections of each address.
    pub addresses: Addresses,
    /// The definitions that are being sent.
    pub definitions: Definitions,
    /// The memory budget of SQL sessions.
    pub session_memory: MemoryBudget,
    /// The memory budget of gRPC messages.
    pub grpc_memory: MemoryBudget,
    /// The number of failed log-ins.
    pub failed_logins: AtomicU64,
    /// The stages of the process's stop.
    pub stop: Stop,
}

impl ClientCapacity {
    /// Returns the limits of a process that starts, none of them in use.
    pub fn new(limits: ClientLimits) -> Arc<Self> {
        let refusals = Refusals::default();
        let memory = |limit, bytes| MemoryBudget::new(limit, bytes, refusals.clone());
        Arc::new(Self {
            limits,
            users: UserPlaces::new(limits, refusals.clone()),
            addresses: Addresses::new(&limits, refusals.clone()),
            definitions: Definitions::new(&limits, refusals.clone()),
            session_memory: memory(Limit::SessionMemory, limits.session_memory_bytes),
            grpc_memory: memory(Limit::GrpcMemory, limits.grpc_memory_bytes),
            refusals,
            failed_logins: AtomicU64::new(0),
            stop: Stop::default(),
        })
    }
}
