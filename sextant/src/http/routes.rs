//! The routes: `/status` as JSON, `/metrics`, `/healthz`, `/readyz`.
//!
//! A process whose service has stopped ends, so that a process that answers is healthy. It is ready when it can run
//! statements: a coordinator leads, and a projector and an indexer are registered. Both can be asked without a log-in.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json, Router, routing::get};
use proto::{Error, ErrorCode};

use super::caller::{Asker, Visitor};
use super::observed::Observed;
use super::readiness::Readiness;
use crate::status::render::metrics;

/// The routes.
pub fn routes(observed: Observed) -> Router {
    Router::new()
        .route("/status", get(status))
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .layer(Extension(Readiness::default()))
        .with_state(observed)
}

async fn healthz(asker: Asker, State(observed): State<Observed>) -> Response {
    if observed.backend.router().catalog().cas == 0 {
        return unavailable(
            asker,
            "the router has no catalog yet, because no coordinator has answered",
        );
    }
    "ok\n".into_response()
}

async fn readyz(
    asker: Asker,
    Extension(readiness): Extension<Readiness>,
    State(observed): State<Observed>,
) -> Response {
    match readiness.get(observed.not_ready()).await {
        Some(why) => unavailable(asker, &why),
        None => "ready\n".into_response(),
    }
}

/// The answer of a process that cannot serve now. The reason is for those who are let in.
fn unavailable(asker: Asker, why: &str) -> Response {
    let why = if asker.is_let_in { format!("{why}\n") } else { "unavailable\n".to_owned() };
    (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
}

async fn status(visitor: Visitor, State(observed): State<Observed>) -> Response {
    match observed.status(visitor.principal.clone()).await {
        Ok(status) => Json(status).into_response(),
        Err(error) => refusal(&error),
    }
}

/// The answer to a request that is refused.
fn refusal(error: &Error) -> Response {
    let status = match error.code {
        ErrorCode::NotAllowed => StatusCode::FORBIDDEN,
        ErrorCode::SessionEnded => StatusCode::UNAUTHORIZED,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, format!("{error}\n")).into_response()
}

async fn metrics(visitor: Visitor, State(observed): State<Observed>) -> Response {
    let own = observed.own(&visitor.doors);
    let status = match observed.status(visitor.principal.clone()).await {
        Ok(status) => status,
        Err(error) => return refusal(&error),
    };
    match metrics::text(&status, Some(&own)) {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
