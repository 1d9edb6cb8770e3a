//! The HTTP ports: `/status` as JSON, `/metrics` in the OpenMetrics text format, `/healthz`; `/readyz` where statements run.

mod caller;
mod observed;
mod readiness;
mod role_routes;
mod routes;
mod server;

pub use observed::StatusSources;
pub use role_routes::{RoleObserved, RoleService, role_routes};
pub use routes::routes;
pub use server::serve;
