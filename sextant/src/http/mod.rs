//! The HTTP port: `/status` as JSON, `/metrics` in the OpenMetrics text format, `/healthz`, `/readyz`.

mod caller;
mod observed;
mod routes;

pub use observed::Observed;
pub use routes::routes;
