//! The gRPC services: `Admin`, `Ingest` and `Query` on the port for users, `Peer` on the port for other processes; both ports have
//! health and reflection.

mod admin;
mod admission;
mod caller;
mod decode;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod health;
mod ingest;
mod open_transaction;
mod push;
mod query;
mod reply_form;
mod request_body;
mod request_streams;
mod server;
mod status;
mod transact;
mod transactions;

pub use server::{peer_services, services};
