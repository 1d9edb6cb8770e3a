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
