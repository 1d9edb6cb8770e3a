//! TLS: certificates of nodes, operators and users, and the connections that they protect.
//!
//! One certificate authority signs all certificates of a cluster. Each certificate contains a URI
//! that identifies its holder ([`Identity`]). The kind of the holder determines the ports at
//! which the certificate is valid: nodes and operators may use the ports for other processes,
//! users the ports for users. The provider of cryptography is the library ring. It takes random
//! numbers directly from the system, so the simulation has no TLS.
//!
//! A process reads its three files every ten seconds ([`TlsSettings::follow`]), so that new
//! certificates need no restart. An open connection continues with the certificate with which it
//! began.

mod client;
mod clock;
mod files;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod identity;
mod issue;
mod ports;
mod reload;
mod server;
mod settings;
#[cfg(test)]
mod tests;
mod verify;

pub use client::{ExpectedNode, OperatorTls, UserTls, connect};
pub use files::{TlsFiles, read_private, read_public, write_private};
pub use identity::{Identity, is_user_name};
pub use issue::{Authority, IssuedCertificate};
pub use ports::{Clients, Protocol};
pub use server::{TlsConnection, accept};
pub use settings::{CertificateSet, TlsSettings};
