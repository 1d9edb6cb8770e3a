//! The limits of clients in a process, which all its ports share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::addresses::Addresses;
use super::definitions::Definitions;
use super::limits::ClientLimits;
use super::memory::RoomBudget;
use super::refusals::{Limit, Refusals};
use super::stop::Stop;
use super::users::UserPlaces;

/// The limits of a process's clients, with their present use.
pub struct Flow {
    /// The settings.
    pub limits: ClientLimits,
    /// The counters of refusals.
    pub refusals: Refusals,
    /// The places for sessions and statements.
    pub users: UserPlaces,
    /// The places for connections, by address.
    pub addresses: Addresses,
    /// The places for definitions.
    pub definitions: Definitions,
    /// The memory of SQL sessions.
    pub session_memory: RoomBudget,
    /// The memory of gRPC messages.
    pub grpc_memory: RoomBudget,
    /// The number of failed log-ins.
    pub failed_logins: AtomicU64,
    /// The stop of the process.
    pub stop: Stop,
}

impl Flow {
    /// Returns the limits of a process that starts, without any use.
    pub fn new(limits: ClientLimits) -> Arc<Self> {
        let refusals = Refusals::default();
        let memory = |limit, bytes| RoomBudget::new(limit, bytes, refusals.clone());
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
