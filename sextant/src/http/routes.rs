//! The routes: `/status` as JSON, `/metrics`, `/healthz`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, routing::get};
use proto::model::index::IndexInfo;
use serde_json::json;

use super::metrics::metrics;
use super::observed::Observed;
use crate::principal::Principal;
use crate::rows::words::index_state;

/// The routes.
pub fn routes(observed: Observed) -> Router {
    Router::new()
        .route("/status", get(status))
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .with_state(observed)
}

async fn healthz(State(observed): State<Observed>) -> Response {
    if observed.backend.router().catalog().cas == 0 {
        let why = "the router has no catalog yet, because no coordinator has answered\n";
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    }
    "ok\n".into_response()
}

async fn status(principal: Principal, State(observed): State<Observed>) -> Json<serde_json::Value> {
    let backend = observed.backend.with_principal(principal);
    let catalog = backend.router().catalog();
    let coordinator = match backend.member_status().await {
        Ok(status) => json!(status),
        Err(error) => json!({ "error": error.to_string() }),
    };
    let local: Vec<_> = observed.running().map(|indexer| indexer.status()).collect();
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "cas": catalog.cas,
        "nodes": catalog.nodes.values().collect::<Vec<_>>(),
        "buckets": catalog.buckets.values().collect::<Vec<_>>(),
        "indexes": catalog.indexes.values().map(|index| index_json(index)).collect::<Vec<_>>(),
        "coordinator": coordinator,
        "local_indexers": local,
        "scans": backend.router().scans(),
    }))
}

fn index_json(index: &IndexInfo) -> serde_json::Value {
    json!({
        "id": index.id,
        "name": index.spec.name,
        "bucket": index.spec.bucket,
        "state": index_state(index.state),
        "generation": index.generation,
        "definition": index.spec.sql,
        "topology": index.topology.number,
        "placement": index.topology.placement,
    })
}
