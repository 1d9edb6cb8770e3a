//! The gRPC services: `Admin`, `Ingest` and `Query` for users, `Peer` for other processes, health and reflection.

mod admin;
mod caller;
mod ingest;
mod query;
mod server;
mod status;

pub use server::{peer_services, services};
