//! The HTTP routes of a process with ports for users: `/status` as JSON, `/metrics`, `/healthz`,
//! `/readyz`.
//!
//! If the service of a process stops, the process ends. A process that answers `/healthz` is
//! therefore healthy. A process is ready (`/readyz`) when it can run statements, that is, when a
//! coordinator leads, and a projector and an indexer are registered. The routes `/healthz` and
//! `/readyz` need no log-in.

use std::fmt;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json, Router, routing::get};
use proto::{Error, ErrorCode};

use std::sync::Arc;

use super::caller::{MetricsSender, PublicSender};
use super::readiness::Readiness;
use super::status_sources::StatusSources;
use crate::auth::login_policy::LoginPolicy;
use crate::status::render::{exposition::MetricsFormat, metrics};

/// Returns the HTTP routes of a process with ports for users.
pub fn routes(observed: StatusSources) -> Router {
    Router::new()
        .route("/status", get(status))
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .layer(Extension(Readiness::default()))
        .with_state(observed)
}

/// Answers `/healthz`.
async fn healthz(asker: PublicSender, State(observed): State<StatusSources>) -> Response {
    if observed.router.catalog().cas == 0 {
        return unavailable(
            asker,
            "the router has no catalog yet, because no coordinator has answered",
        );
    }
    "ok\n".into_response()
}

/// Answers `/readyz`.
async fn readyz(
    asker: PublicSender,
    Extension(doors): Extension<Arc<LoginPolicy>>,
    Extension(readiness): Extension<Readiness>,
    State(observed): State<StatusSources>,
) -> Response {
    if doors.flow().stop.has_begun() {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining\n").into_response();
    }
    match readiness.get(observed.not_ready()).await {
        Some(why) => unavailable(asker, &why),
        None => "ready\n".into_response(),
    }
}

/// Returns the answer of a process that cannot run statements now. Only admitted clients see the
/// reason.
fn unavailable(asker: PublicSender, why: &str) -> Response {
    let why = if asker.is_let_in { format!("{why}\n") } else { "unavailable\n".to_owned() };
    (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
}

/// Returns an answer that contains metrics in a text format.
pub(super) fn page(form: MetricsFormat, text: Result<String, fmt::Error>) -> Response {
    match text {
        Ok(text) => ([(header::CONTENT_TYPE, form.content_type())], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Answers `/status` for a principal.
async fn status(visitor: MetricsSender, State(observed): State<StatusSources>) -> Response {
    match observed.status(visitor.principal.clone()).await {
        Ok(status) => Json(status).into_response(),
        Err(error) => refusal(&error),
    }
}

/// Returns the answer to a refused request.
fn refusal(error: &Error) -> Response {
    let status = match error.code {
        ErrorCode::NotAllowed => StatusCode::FORBIDDEN,
        ErrorCode::SessionEnded => StatusCode::UNAUTHORIZED,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, format!("{error}\n")).into_response()
}

/// Answers `/metrics` for a principal.
async fn metrics(
    visitor: MetricsSender,
    form: MetricsFormat,
    State(observed): State<StatusSources>,
) -> Response {
    let own = observed.own_figures(&visitor.doors);
    let status = match observed.status(visitor.principal.clone()).await {
        Ok(status) => status,
        Err(error) => return refusal(&error),
    };
    page(form, metrics::text(form, &status, Some(&own)))
}
