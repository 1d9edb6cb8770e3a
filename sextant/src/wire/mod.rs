//! The transport between services: a direct call within a process, gRPC between processes.
//!
//! Each service gets a [`PeerDirectory`], an implementation of [`proto::rpc::api::Directory`]
//! that uses the [`Peers`] of its process. A process registers the services that it runs. Other
//! services are called at the address in the catalog, over one HTTP/2 connection for each node,
//! which is re-established after a failure. A request is the number of a method (`methods`) and
//! its arguments in postcard; the reply is the result of the trait's method. Processes agree on a
//! protocol version (`versions`), and refuse calls of other clusters (`clusters`). With
//! certificates, both sides authenticate each other (`connect`, `callers`). The first batches of
//! scans are requested on shared streams that stay open (`questions`).
//!
//! Flow control: if a reader stops, the transport accepts one window (`STREAM_WINDOW_BYTES`) and
//! one or two messages. Then the sender's channel, whose bytes are limited too, fills up, and the
//! sender waits. The window of the connection is larger than those of all its streams together,
//! so that stopped streams do not block others. Scans of slow clients therefore block neither
//! each other nor an indexer's reports of applied epochs. Backfills that wait for memory do not
//! block maintenance streams.

mod answers;
mod any_member;
mod callers;
#[cfg(test)]
mod cluster_tests;
mod clusters;
mod codec;
mod connect;
mod directory;
#[cfg(test)]
mod flow_tests;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod methods;
mod peers;
mod questions;
#[cfg(test)]
mod questions_tests;
mod remote;
mod server;
#[cfg(test)]
mod version_tests;
mod versions;

pub use callers::PeerTrust;
pub use connect::{
    Connect, LOCAL, PeerTarget, loopback_connect, operator_connect, tcp_connect, tls_connect,
};
pub use directory::PeerDirectory;
pub use peers::Peers;
pub use server::peer_service;
