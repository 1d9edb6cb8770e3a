//! The transport between services: a direct call where both ends share a process, gRPC otherwise.
//!
//! [`Peers`] is the [`proto::rpc::api::Directory`] that every service is given. A process registers the
//! services that it runs itself; all else is reached at the address that the catalog names, over one
//! HTTP/2 connection per address that reconnects by itself. On the wire a question is the number
//! of a method (`methods`) and its arguments in postcard, its answer the same type that the trait returns, or an error.
//!
//! Flow: a stream's reader grants credit by reading. Of what it has not read, the transport takes one window
//! (`STREAM_WINDOW_BYTES`) and a message or two; then the sender's channel, bounded in bytes too, fills, and
//! the sender waits. The connection grants more than all its streams together ever use, so that streams nobody
//! reads hold up no other: scans of slow clients neither each other nor what an indexer says it has applied, backfills
//! that wait for memory no maintenance stream.

mod any_member;
mod codec;
mod connect;
mod directory;
#[cfg(test)]
mod flow_tests;
mod methods;
mod peers;
mod remote;
mod server;

pub use connect::{Connect, LOCAL, tcp_connect};
pub use directory::PeerDirectory;
pub use peers::Peers;
pub use server::peer_service;
