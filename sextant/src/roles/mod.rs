//! How a process is assembled from services: one role ([`run_role`]), or a whole cluster in one
//! process ([`Cluster`]), and the ports that serve users ([`Server`]).
//!
//! No port serves both users and other processes. A router has three ports for users: SQL, gRPC
//! and HTTP. Each other role has one port for processes. `dev` has all these ports, but the port
//! for processes only if clients are trusted or `--peer-listen` is given.

mod cluster;
mod cluster_dirs;
mod door_settings;
mod first_admin;
mod joining;
mod other_cluster;
mod role;
mod security;
mod server;
pub mod services;
mod shutdown;

pub use cluster::{Cluster, ClusterConfig, lock_data_dir};
pub use door_settings::{Auth, LoginSettings};
pub use first_admin::{FirstAdmin, make_first_admin};
pub use role::{RoleSettings, ScanSettings, run as run_role};
pub use security::SecuritySettings;
pub use server::{Listeners, PortOptions, Ports, Server, ServerParts};
pub use services::RecoveryFlags;
pub use shutdown::Shutdown;
