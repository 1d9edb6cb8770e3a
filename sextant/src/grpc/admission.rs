//! Admission of calls to the services for users. Each admitted call gets a principal, which the
//! services read, and counts as a running call until the end of its answer. If a task outlives
//! its call, the call counts until the end of the task; otherwise a client that resets calls
//! could start any number of tasks.

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

use super::request_body::{MessageMemory, RequestBody};
use super::status::status;
use crate::audit::PortProtocol;
use crate::auth::link::Link;
use crate::auth::login_policy::LoginPolicy;
use crate::flow::{OpenCall, StatementPlace, Work};
use crate::limited::PeerInfo;

/// The metadata with the credentials of a call.
const AUTHORIZATION: &str = "authorization";

/// A wrapper of a service, which admits or refuses each call before the service handles it.
#[derive(Clone)]
pub(super) struct AdmittedService<S> {
    service: S,
    /// The login policy; `None` for a public service, such as the health service.
    doors: Option<Arc<LoginPolicy>>,
}

/// The limits' counts and the memory that a call has taken. They are given back after the answer,
/// and after each task that outlives the call.
pub(super) struct CallPlaces {
    _place: StatementPlace,
    _open: Option<OpenCall>,
    _room: MessageMemory,
}

/// Returns the counts and the memory that the call of a request has taken, for a task that may
/// outlive the call.
pub(super) fn places_of<T>(request: &tonic::Request<T>) -> Option<Arc<CallPlaces>> {
    request.extensions().get().cloned()
}

/// A value that exists as long as the answer of a call. While it exists, the call counts as open
/// on its connection.
enum AnswerGuard {
    Admitted { _places: Arc<CallPlaces> },
    Open { _open: Option<OpenCall> },
}

impl<S> AdmittedService<S> {
    /// Wraps a service that requires a log-in.
    pub(super) fn new(service: S, doors: &Arc<LoginPolicy>) -> Self {
        Self { service, doors: Some(Arc::clone(doors)) }
    }

    /// Wraps a public service, such as the health service.
    pub(super) fn new_public(service: S) -> Self {
        Self { service, doors: None }
    }

    /// Admits a call and returns the guard of its answer.
    fn admit_request(&self, request: &mut http::Request<Body>) -> Result<AnswerGuard, Status> {
        if let Some(doors) = &self.doors {
            return admit(doors, request).map(|places| AnswerGuard::Admitted { _places: places });
        }
        let open = request.extensions().get::<PeerInfo>().and_then(PeerInfo::begin_public_call);
        Ok(AnswerGuard::Open { _open: open })
    }
}

/// Determines the principal of a call, attaches it to the request, and counts the call against
/// the limits.
fn admit(
    doors: &LoginPolicy,
    request: &mut http::Request<Body>,
) -> Result<Arc<CallPlaces>, Status> {
    let Some(peer) = request.extensions().get::<PeerInfo>().cloned() else {
        return Err(status(Error::new(ErrorCode::BadLogin, "the call has no connection")));
    };
    // No service needs the token after the admission.
    let credentials = request.headers_mut().remove(AUTHORIZATION);
    let credentials = credentials.as_ref().map(|value| value.as_bytes());
    let principal =
        doors.request_principal(&Link::of_request(&peer), PortProtocol::Grpc, credentials);
    let principal = principal.inspect_err(|_| peer.note_refused()).map_err(status)?;
    let place = doors.statement(&principal, Work::Call);
    let place = place.inspect_err(|_| peer.note_refused_user()).map_err(status)?;
    let memory = doors.flow().grpc_memory.of(&principal);
    request.extensions_mut().insert(principal);
    let (body, room) = RequestBody::new(std::mem::take(request.body_mut()), memory);
    *request.body_mut() = Body::new(body);
    let admitted = Arc::new(CallPlaces { _place: place, _open: peer.begin_call(), _room: room });
    request.extensions_mut().insert(Arc::clone(&admitted));
    Ok(admitted)
}

impl<S: NamedService> NamedService for AdmittedService<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for AdmittedService<S>
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
        let held = match self.admit_request(&mut request) {
            Ok(held) => held,
            Err(refused) => return Box::pin(std::future::ready(Ok(refused.into_http()))),
        };
        let answer = self.service.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            Ok(answer.map(|body| Body::new(Answer { body, _held: held })))
        })
    }
}

/// The body of an answer. The call ends when this body is dropped.
struct Answer {
    body: Body,
    _held: AnswerGuard,
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
    use crate::flow::{Calls, ClientLimits};

    /// A service that answers each call with an endless body, and keeps the places of the last
    /// call.
    #[derive(Clone, Default)]
    struct Endless(Option<Arc<CallPlaces>>);

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

        fn call(&mut self, request: http::Request<Body>) -> Self::Future {
            self.0 = request.extensions().get().cloned();
            std::future::ready(Ok(http::Response::new(Body::new(Self(None)))))
        }
    }

    #[tokio::test]
    async fn a_call_has_a_place_until_the_end_of_its_answer() {
        let limits = ClientLimits { statements_max: 1, ..ClientLimits::default() };
        let mut door = AdmittedService::new(
            Endless::default(),
            &LoginPolicy::trust_within(limits, Audit::off(), &Env::real()),
        );
        let call = |door: &mut AdmittedService<Endless>| {
            let mut request = http::Request::new(Body::empty());
            request.extensions_mut().insert(PeerInfo::loopback());
            door.call(request)
        };
        let first = call(&mut door).await.expect("an answer");
        assert!(!first.headers().contains_key("grpc-status"));
        let second = call(&mut door).await.expect("an answer");
        let message = second.headers().get("grpc-message").expect("a refusal");
        assert!(String::from_utf8_lossy(message.as_bytes()).contains("statements_max"));
        drop(first);
        let third = call(&mut door).await.expect("an answer");
        assert!(third.headers().contains_key("grpc-status"), "a task of the first goes on");
        drop(door.service.0.take());
        let fourth = call(&mut door).await.expect("an answer");
        assert!(!fourth.headers().contains_key("grpc-status"));
    }

    #[tokio::test]
    async fn the_connection_knows_the_refusals_of_users_and_of_others() {
        let limits = ClientLimits { statements_max: 1, ..ClientLimits::default() };
        let trusting = LoginPolicy::trust_within(limits, Audit::off(), &Env::real());
        let asking = LoginPolicy::for_users(Arc::default(), None, 10, &Env::real());
        let [mut trusting, mut asking] =
            [trusting, asking].map(|doors| AdmittedService::new(Endless::default(), &doors));
        let calls = Calls::new();
        let request = || {
            let mut request = http::Request::new(Body::empty());
            request.extensions_mut().insert(PeerInfo::with_calls(&calls));
            request
        };
        let seen = || (calls.counts().of_users, calls.counts().refused);
        let _first = trusting.call(request()).await.expect("an answer");
        assert_eq!(seen(), (1, 0));
        trusting.call(request()).await.expect("a refusal");
        assert_eq!(seen(), (2, 1), "a user over a limit");
        asking.call(request()).await.expect("a refusal");
        assert_eq!(seen(), (2, 2), "a client whom nobody knows");
    }

    #[tokio::test]
    async fn a_call_of_an_open_service_keeps_its_connection() {
        let calls = Calls::new();
        let mut request = http::Request::new(Body::empty());
        request.extensions_mut().insert(PeerInfo::with_calls(&calls));
        let answer =
            AdmittedService::new_public(Endless::default()).call(request).await.expect("an answer");
        assert_eq!(calls.open(), 1);
        drop(answer);
        assert_eq!(calls.open(), 0);
    }
}
