//! Sextant as a library: everything that the binary contains, so that tests and the simulation
//! can use it.
//!
//! A module imports only modules that come later in this order: `cli`, then `roles` (how a
//! process is put together), then the ports `pg`, `grpc` and `http` and the transport `wire`,
//! then `status`, `backend`, `rows`, `sql`, `access`, `auth`, `audit` and `principal`, then
//! `limited`, `flow`, `listen`, `tls`, `dates`, `quoted_name` and `descriptors`, then the
//! services.

pub mod access;
pub mod audit;
pub mod auth;
pub mod backend;
pub mod cli;
mod dates;
pub mod descriptors;
pub mod flow;
pub mod grpc;
pub mod http;
pub mod limited;
mod listen;
pub mod pg;
pub mod principal;
pub mod process_figures;
mod quoted_name;
pub mod roles;
mod rows;
pub mod sql;
pub mod status;
pub mod tls;
pub mod wire;
