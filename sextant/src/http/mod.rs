//! The HTTP ports. All have `/status` as JSON, `/metrics` in the OpenMetrics text format, and
//! `/healthz`. The port of a process that runs statements also has `/readyz`.

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
