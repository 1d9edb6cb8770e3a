//! The sender of an HTTP request.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use proto::{Error, ErrorCode};

use crate::audit::Door;
use crate::auth::doors::Doors;
use crate::auth::link::Link;
use crate::flow::StatementPlace;
use crate::limited::PeerInfo;
use crate::principal::Principal;

/// A request whose sender is not let in.
#[derive(Debug)]
pub struct Refused(Error);

impl IntoResponse for Refused {
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

/// The sender of a request that asks for figures, with a place until its answer.
pub struct Visitor {
    /// The sender.
    pub principal: Principal,
    /// The doors that have let it in.
    pub doors: Arc<Doors>,
    _place: StatementPlace,
}

impl<S: Send + Sync> FromRequestParts<S> for Visitor {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let principal = Principal::from_request_parts(parts, state).await?;
        let Some(doors) = parts.extensions.get::<Arc<Doors>>() else {
            return Err(Refused(Error::new(ErrorCode::BadLogin, "the request has no connection")));
        };
        let place = doors.statement(&principal, false).map_err(Refused)?;
        Ok(Self { principal, doors: Arc::clone(doors), _place: place })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Principal {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let (doors, peer) =
            (parts.extensions.get::<Arc<Doors>>(), parts.extensions.get::<PeerInfo>());
        let (Some(doors), Some(peer)) = (doors, peer) else {
            return Err(Refused(Error::new(ErrorCode::BadLogin, "the request has no connection")));
        };
        let credentials = parts.headers.get(header::AUTHORIZATION).map(|value| value.as_bytes());
        doors.bearer(&Link::of_request(peer), Door::Http, credentials).map_err(Refused)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use proto::env::Env;

    use super::*;
    use crate::audit::Audit;
    use crate::flow::ClientLimits;

    #[tokio::test]
    async fn a_request_for_figures_has_a_place() {
        let limits = ClientLimits { statements_max: 1, ..ClientLimits::default() };
        let doors = Doors::trust_within(limits, Audit::off(), &Env::real());
        let mut parts = Request::new(()).into_parts().0;
        parts.extensions.insert(Arc::clone(&doors));
        parts.extensions.insert(PeerInfo::loopback());
        let first = Visitor::from_request_parts(&mut parts, &()).await.expect("a place");
        let refused = Visitor::from_request_parts(&mut parts, &()).await.err().expect("no place");
        assert!(refused.0.to_string().contains("statements_max"), "{refused:?}");
        assert_eq!(refused.into_response().status(), StatusCode::TOO_MANY_REQUESTS);
        drop(first);
        assert!(Visitor::from_request_parts(&mut parts, &()).await.is_ok());
    }
}
