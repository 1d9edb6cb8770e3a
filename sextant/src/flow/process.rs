//! The limits of a process, as its ports share them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::addresses::Addresses;
use super::definitions::Definitions;
use super::limits::ClientLimits;
use super::memory::RoomBudget;
use super::refusals::{Limit, Refusals};
use super::stop::Stop;
use super::users::UserPlaces;

/// The limits of the clients of a process, and what they use of them.
pub struct Flow {
    /// The settings.
    pub limits: ClientLimits,
    /// The counters of refusals.
    pub refusals: Refusals,
    /// Sessions and statements.
    pub users: UserPlaces,
    /// Connections.
    pub addresses: Addresses,
    /// The limits of concurrent definitions.
    pub definitions: Definitions,
    /// Memory of SQL sessions.
    pub session_memory: RoomBudget,
    /// Memory of gRPC messages.
    pub grpc_memory: RoomBudget,
    /// The log-ins that have failed.
    pub failed_logins: AtomicU64,
    /// The stop of the process.
    pub stop: Stop,
}

impl Flow {
    /// The limits of a process that begins.
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
