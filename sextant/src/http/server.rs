//! The HTTP server for users. It limits the number of connections and the duration of each.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use futures::StreamExt;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use proto::env::Env;
use tokio_util::sync::CancellationToken;
use tonic::transport::server::Connected;

use crate::auth::login_policy::LoginPolicy;
use crate::limited::{LimitedConnection, LimitedConnections};

/// The time limit for the headers of a request, also of later requests on a connection.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);
/// The time limit for the answer to a request.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// The time limit of a connection. It ends the connections of clients that read slowly.
const CONNECTION_WITHIN: Duration = Duration::from_secs(600);
/// The maximum number of bytes of a connection that are read ahead. It also limits the size of a
/// request's headers.
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// Serves the routes until the future is dropped, which ends all connections. If the listener
/// fails, returns the reason.
pub async fn serve(
    mut connections: LimitedConnections,
    routes: Router,
    doors: Arc<LoginPolicy>,
    env: Env,
) -> String {
    let routes = routes.layer(from_fn(limit_request)).layer(Extension(doors));
    let stop = CancellationToken::new();
    let _ends_connections = stop.clone().drop_guard();
    while let Some(accepted) = connections.next().await {
        let Ok(accepted) = accepted else { continue };
        let (routes, stop) = (routes.clone(), stop.clone());
        let connection = async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = connection(accepted, routes) => {}
            }
        };
        env.spawn_request("http connection", connection).detach();
    }
    "its listening socket was closed".to_owned()
}

/// Serves one connection until its end or its time limit.
async fn connection(accepted: LimitedConnection, routes: Router) {
    let service = routes.layer(Extension(accepted.connect_info()));
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(accepted), TowerToHyperService::new(service));
    // An error concerns only the client, which is disconnected.
    let _ended = tokio::time::timeout(CONNECTION_WITHIN, serving).await;
}

/// Refuses a request with a body, which no route reads. Ends the answer after the time limit.
async fn limit_request(request: Request, next: Next) -> Response {
    let headers = request.headers();
    let length = headers.get(header::CONTENT_LENGTH).map(|length| length.as_bytes());
    let has_body = headers.contains_key(header::TRANSFER_ENCODING);
    if has_body || length.is_some_and(|length| length != b"0") {
        let close = [(header::CONNECTION, "close")];
        return (StatusCode::PAYLOAD_TOO_LARGE, close, "a request has no body here\n")
            .into_response();
    }
    match tokio::time::timeout(ANSWER_WITHIN, next.run(request)).await {
        Ok(answer) => answer,
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "no answer within 30 s\n").into_response(),
    }
}
