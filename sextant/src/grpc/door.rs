//! The door of the services for users: it lets calls in, tells their services who has sent them, and gives each a place until the end of
//! its answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::{Body as HttpBody, Frame, SizeHint};
use proto::{Error, ErrorCode};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Bytes, Service, http};
use tonic::server::NamedService;

use super::arriving::{Arriving, MessageRoom};
use super::status::status;
use crate::audit::Door;
use crate::auth::doors::Doors;
use crate::auth::link::Link;
use crate::flow::{OpenCall, StatementPlace};
use crate::limited::PeerInfo;

/// The metadata with the credentials of a call.
const AUTHORIZATION: &str = "authorization";

/// A service behind the door.
#[derive(Clone)]
pub(super) struct AtTheDoor<S> {
    service: S,
    doors: Arc<Doors>,
}

/// What a call has until the end of its answer.
struct Admitted {
    _place: StatementPlace,
    _open: Option<OpenCall>,
    _room: MessageRoom,
}

impl<S> AtTheDoor<S> {
    pub(super) fn new(service: S, doors: &Arc<Doors>) -> Self {
        Self { service, doors: Arc::clone(doors) }
    }

    /// Finds out who sends a call, and notes it in the call.
    fn admit(&self, request: &mut http::Request<Body>) -> Result<Admitted, Status> {
        let Some(peer) = request.extensions().get::<PeerInfo>().cloned() else {
            return Err(status(Error::new(ErrorCode::BadLogin, "the call has no connection")));
        };
        // Nothing behind the door needs the token.
        let credentials = request.headers_mut().remove(AUTHORIZATION);
        let credentials = credentials.as_ref().map(|value| value.as_bytes());
        let principal =
            self.doors.bearer(&Link::of_request(&peer), Door::Grpc, credentials).map_err(status)?;
        let place = self.doors.statement(&principal, false).map_err(status)?;
        request.extensions_mut().insert(principal);
        let (body, room) =
            Arriving::new(std::mem::take(request.body_mut()), &self.doors.flow().grpc_memory);
        *request.body_mut() = Body::new(body);
        Ok(Admitted { _place: place, _open: peer.call(), _room: room })
    }
}

impl<S: NamedService> NamedService for AtTheDoor<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for AtTheDoor<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        let admitted = match self.admit(&mut request) {
            Ok(admitted) => admitted,
            Err(refused) => return Box::pin(std::future::ready(Ok(refused.into_http()))),
        };
        let answer = self.service.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            Ok(answer.map(|body| Body::new(Answer { body, _admitted: admitted })))
        })
    }
}

/// The body of an answer. The call ends with it.
struct Answer {
    body: Body,
    _admitted: Admitted,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use proto::env::Env;

    use super::*;
    use crate::audit::Audit;
    use crate::flow::ClientLimits;

    /// Answers each call with a body that does not end.
    #[derive(Clone)]
    struct Endless;

    impl HttpBody for Endless {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            Poll::Pending
        }
    }

    impl Service<http::Request<Body>> for Endless {
        type Response = http::Response<Body>;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Self::Response, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: http::Request<Body>) -> Self::Future {
            std::future::ready(Ok(http::Response::new(Body::new(Self))))
        }
    }

    #[tokio::test]
    async fn a_call_has_a_place_until_the_end_of_its_answer() {
        let limits = ClientLimits { statements_max: 1, ..ClientLimits::default() };
        let mut door =
            AtTheDoor::new(Endless, &Doors::trust_within(limits, Audit::off(), &Env::real()));
        let mut call = || {
            let mut request = http::Request::new(Body::empty());
            request.extensions_mut().insert(PeerInfo::loopback());
            door.call(request)
        };
        let first = call().await.expect("an answer");
        assert!(!first.headers().contains_key("grpc-status"));
        let second = call().await.expect("an answer");
        let message = second.headers().get("grpc-message").expect("a refusal");
        assert!(String::from_utf8_lossy(message.as_bytes()).contains("statements_max"));
        drop(first);
        let third = call().await.expect("an answer");
        assert!(!third.headers().contains_key("grpc-status"));
    }
}
