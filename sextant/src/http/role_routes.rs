//! The HTTP routes of a role without ports for users: `/healthz`, `/metrics` and `/status`. They
//! show only this process.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use axum::{Json, Router, routing::get};
use proto::model::node::NodeInfo;
use proto::rpc::api::CoordinatorApi;
use serde_json::{Value, json};

use super::routes::page;
use crate::process_figures::OwnProcess;
use crate::status::render::{
    exposition::MetricsFormat,
    metrics::{self, OwnFigures},
};

/// The service of a process that has one role.
#[derive(Clone)]
pub enum RoleService {
    /// The coordinator member of the process.
    Coordinator(Arc<dyn CoordinatorApi>),
    /// The projector of the process.
    Projector(Arc<projector::Projector>),
    /// The indexer of the process.
    Indexer(Arc<indexer::Indexer>),
}

/// The sources of the values that the HTTP port of a role shows.
#[derive(Clone)]
pub struct RoleStatusSources {
    /// The node of the process.
    pub node: NodeInfo,
    /// The source of the figures of the operating system about this process.
    pub process: OwnProcess,
    /// The service that the process runs.
    pub service: RoleService,
}

/// Returns the HTTP routes of a process with one role.
pub fn role_routes(observed: RoleStatusSources) -> Router {
    Router::new()
        .route("/status", get(status))
        .route("/metrics", get(own_metrics))
        // A process whose service has stopped ends, so that a process that answers is healthy.
        .route("/healthz", get(|| async { "ok\n" }))
        .with_state(observed)
}

/// Answers `/status`.
async fn status(State(observed): State<RoleStatusSources>) -> Json<Value> {
    let RoleStatusSources { node, process, service } = observed;
    let service = match service {
        RoleService::Coordinator(member) => match member.status().await {
            Ok(status) => json!(status),
            Err(error) => json!({ "error": error.to_string() }),
        },
        RoleService::Projector(projector) => json!(projector.status()),
        RoleService::Indexer(indexer) => json!(indexer.status()),
    };
    let version = env!("CARGO_PKG_VERSION");
    let (process, role) = (process.figures(), node.role.name());
    Json(json!({
        "version": version, "node": node.id, "role": role, "process": process, "service": service
    }))
}

/// Answers `/metrics`.
async fn own_metrics(form: MetricsFormat, State(observed): State<RoleStatusSources>) -> Response {
    let mut own = OwnFigures { process: observed.process.figures(), ..OwnFigures::default() };
    match &observed.service {
        RoleService::Coordinator(member) => own.coordinator = member.status().await.ok(),
        RoleService::Projector(projector) => own.projector = Some(projector.status()),
        RoleService::Indexer(indexer) => own.indexer = Some(indexer.status()),
    }
    page(form, metrics::own_text(form, &own))
}
