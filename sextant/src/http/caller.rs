//! The sender of an HTTP request.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::principal::Principal;

impl<S: Send + Sync> FromRequestParts<S> for Principal {
    type Rejection = Infallible;

    /// Requests carry no credentials yet.
    async fn from_request_parts(_: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::Trusted)
    }
}
