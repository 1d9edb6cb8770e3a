//! The gRPC services: `Admin`, `Ingest` and `Query` on the port for users, `Peer` on the port for other processes; both ports have
//! health and reflection.

mod admin;
mod caller;
mod ingest;
mod query;
mod reply_form;
mod server;
mod status;

pub use server::{peer_services, services};
