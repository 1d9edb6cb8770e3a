//! Extractors that determine the sender of an HTTP request.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use proto::{Error, ErrorCode};

use crate::audit::PortProtocol;
use crate::auth::link::Link;
use crate::auth::login_policy::{LoginPolicy, LoginStep};
use crate::flow::{StatementPlace, Work};
use crate::limited::PeerInfo;
use crate::principal::Principal;
use crate::status::render::exposition::MetricsFormat;

/// A refusal of a request whose sender is not admitted, with the error.
#[derive(Debug)]
pub struct RefusedCaller(Error);

impl IntoResponse for RefusedCaller {
    fn into_response(self) -> Response {
        let text = format!("{}\n", self.0);
        match self.0.code {
            ErrorCode::TooBusy => {
                (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "60")], text).into_response()
            }
            _ => {
                let asks = [(header::WWW_AUTHENTICATE, "Bearer realm=\"sextant\"")];
                (StatusCode::UNAUTHORIZED, asks, text).into_response()
            }
        }
    }
}

/// The sender of a request for metrics. The request counts as running work until its answer.
pub struct MetricsSender {
    /// The sender.
    pub principal: Principal,
    /// The login policy that has admitted the request.
    pub doors: Arc<LoginPolicy>,
    _place: StatementPlace,
}

/// The sender of a request that needs no log-in, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub struct PublicSender {
    /// True if the request would also be admitted by a route that needs a log-in.
    pub is_let_in: bool,
}

impl<S: Send + Sync> FromRequestParts<S> for PublicSender {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let Ok((doors, link)) = policy_and_link(parts) else {
            return Ok(Self { is_let_in: false });
        };
        let credentials = credentials(parts);
        let is_let_in = match credentials.is_some() || link.certificate().is_some() {
            true => doors.request_principal(&link, PortProtocol::Http, credentials).is_ok(),
            // A probe without credentials is no failed log-in.
            false => doors.greet(&link) == Ok(LoginStep::Trusted),
        };
        Ok(Self { is_let_in })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for MetricsSender {
    type Rejection = RefusedCaller;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RefusedCaller> {
        let principal = Principal::from_request_parts(parts, state).await?;
        let Some(doors) = parts.extensions.get::<Arc<LoginPolicy>>() else {
            return Err(RefusedCaller(Error::new(
                ErrorCode::BadLogin,
                "the request has no connection",
            )));
        };
        let place = doors.statement(&principal, Work::Call).map_err(RefusedCaller)?;
        Ok(Self { principal, doors: Arc::clone(doors), _place: place })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Principal {
    type Rejection = RefusedCaller;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, RefusedCaller> {
        let (doors, link) = policy_and_link(parts)?;
        doors
            .request_principal(&link, PortProtocol::Http, credentials(parts))
            .map_err(RefusedCaller)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for MetricsFormat {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let accept = parts.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
        Ok(Self::for_accept(accept))
    }
}

/// Returns the login policy of a request's port, and the link of the request's connection.
fn policy_and_link(parts: &Parts) -> Result<(&LoginPolicy, Link), RefusedCaller> {
    let (doors, peer) =
        (parts.extensions.get::<Arc<LoginPolicy>>(), parts.extensions.get::<PeerInfo>());
    match (doors, peer) {
        (Some(doors), Some(peer)) => Ok((doors, Link::of_request(peer))),
        _ => Err(RefusedCaller(Error::new(ErrorCode::BadLogin, "the request has no connection"))),
    }
}

/// Returns the value of the header `Authorization`.
fn credentials(parts: &Parts) -> Option<&[u8]> {
    parts.headers.get(header::AUTHORIZATION).map(|value| value.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use axum::http::Request;
    use proto::env::sim::world;
    use proto::env::{Env, FileSystem, OpenMode};
    use proto::model::ids::NodeId;

    use super::*;
    use crate::audit::Audit;
    use crate::auth::newest_users::NewestUsers;
    use crate::flow::ClientLimits;

    #[tokio::test]
    async fn a_request_for_figures_has_a_place() {
        let limits = ClientLimits { statements_max: 1, ..ClientLimits::default() };
        let doors = LoginPolicy::trust_within(limits, Audit::off(), &Env::real());
        let mut parts = Request::new(()).into_parts().0;
        parts.extensions.insert(Arc::clone(&doors));
        parts.extensions.insert(PeerInfo::loopback());
        let first = MetricsSender::from_request_parts(&mut parts, &()).await.expect("a place");
        let refused =
            MetricsSender::from_request_parts(&mut parts, &()).await.err().expect("no place");
        assert!(refused.0.to_string().contains("statements_max"), "{refused:?}");
        assert_eq!(refused.into_response().status(), StatusCode::TOO_MANY_REQUESTS);
        drop(first);
        assert!(MetricsSender::from_request_parts(&mut parts, &()).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_without_credentials_is_no_failed_log_in() {
        let (env, _clock, files) = world(7);
        let audit =
            Audit::open(&env, Path::new("/data"), 1 << 20, NodeId(1)).await.expect("an audit");
        let known = Arc::new(NewestUsers::new(Arc::default()));
        let limits = (ClientLimits::default(), audit);
        let doors = LoginPolicy::for_users_within(known, None, limits, &env);
        let mut parts = Request::new(()).into_parts().0;
        parts.extensions.insert(doors);
        parts.extensions.insert(PeerInfo::loopback());
        let noted = async |parts: &mut Parts| {
            let Ok(asker) = PublicSender::from_request_parts(parts, &()).await;
            assert!(!asker.is_let_in);
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            let Ok(file) = files.open(Path::new("/data/refused.jsonl"), OpenMode::Read) else {
                return 0;
            };
            let mut bytes = vec![0; file.len().expect("a length") as usize];
            file.read_exact_at(&mut bytes, 0).expect("its bytes");
            String::from_utf8_lossy(&bytes).matches("\"login\"").count()
        };
        assert_eq!(noted(&mut parts).await, 0);
        parts.headers.insert(header::AUTHORIZATION, "Bearer wrong".parse().expect("a value"));
        assert_eq!(noted(&mut parts).await, 1);
    }
}
