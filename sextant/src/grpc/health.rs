//! `grpc.health.v1.Health` of a port for users: its services are healthy until the process drains
//! its clients.
//!
//! A watch ends after the last status. If only its client could end it, it would delay the drain up
//! to the time limit.

use std::pin::Pin;
use std::sync::Arc;

use futures::{Stream, StreamExt, stream};
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::flow::Flow;

/// The health of some services.
pub(super) struct HealthService {
    names: Vec<&'static str>,
    flow: Arc<Flow>,
}

impl HealthService {
    /// Returns the health of services with these names and of the process, whose name is empty.
    pub(super) fn server(names: &[&'static str], flow: &Arc<Flow>) -> HealthServer<Self> {
        HealthServer::new(Self { names: names.to_vec(), flow: Arc::clone(flow) })
    }

    fn check_name(&self, request: &Request<HealthCheckRequest>) -> Result<(), Status> {
        let name = &request.get_ref().service;
        match name.is_empty() || self.names.iter().any(|known| known == name) {
            true => Ok(()),
            false => Err(Status::not_found("this port has no service of that name")),
        }
    }
}

fn answer(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl Health for HealthService {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        self.check_name(&request)?;
        Ok(Response::new(answer(match self.flow.stop.has_begun() {
            true => ServingStatus::NotServing,
            false => ServingStatus::Serving,
        })))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        self.check_name(&request)?;
        let serving = (!self.flow.stop.has_begun()).then(|| answer(ServingStatus::Serving));
        let mut stop = self.flow.stop.watch();
        let end = async move {
            stop.draining().await;
            answer(ServingStatus::NotServing)
        };
        let statuses = stream::iter(serving).chain(stream::once(end));
        Ok(Response::new(Box::pin(statuses.map(Ok))))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::flow::ClientLimits;

    fn asked(service: &str) -> Request<HealthCheckRequest> {
        Request::new(HealthCheckRequest { service: service.to_owned() })
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_ends_with_the_stop_and_does_not_hold_it_up() {
        let flow = Flow::new(ClientLimits::default());
        let service = HealthService { names: vec!["a.B"], flow: Arc::clone(&flow) };
        let status = |answer: Response<HealthCheckResponse>| answer.into_inner().status();
        assert_eq!(
            status(service.check(asked("a.B")).await.expect("known")),
            ServingStatus::Serving
        );
        let unknown = service.watch(asked("a.C")).await.err().expect("no such service");
        assert_eq!(unknown.code(), tonic::Code::NotFound);
        let watch = service.watch(asked("")).await.expect("the process").into_inner();
        let began = Instant::now();
        let read = async {
            let statuses: Vec<_> =
                watch.map(|status| status.expect("a status").status()).collect().await;
            assert_eq!(statuses, [ServingStatus::Serving, ServingStatus::NotServing]);
        };
        tokio::join!(flow.stop.run(), read);
        assert_eq!(began.elapsed(), std::time::Duration::ZERO);
        assert_eq!(
            status(service.check(asked("")).await.expect("known")),
            ServingStatus::NotServing
        );
        let late = service.watch(asked("a.B")).await.expect("known").into_inner();
        assert_eq!(late.count().await, 1);
    }
}
