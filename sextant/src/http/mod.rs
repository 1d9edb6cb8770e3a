//! The HTTP ports: `/status` as JSON, `/metrics` in the OpenMetrics text format, `/healthz`; `/readyz` where statements run.

mod caller;
mod readiness;
mod role_routes;
mod routes;
mod server;
mod status_sources;

pub use role_routes::{RoleService, RoleStatusSources, role_routes};
pub use routes::routes;
pub use server::serve;
pub use status_sources::StatusSources;
