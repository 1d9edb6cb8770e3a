//! The service `grpc.health.v1.Health` of a port for users. It reports all services as healthy
//! until the process drains its clients.
//!
//! A watch ends after the status has changed to unhealthy. If only the client could end the
//! watch, it would delay the end of the process up to the time limit.

use std::pin::Pin;
use std::sync::Arc;

use futures::{Stream, StreamExt, stream};
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::flow::ClientCapacity;

/// The health service of a port, for some services.
pub(super) struct HealthService {
    names: Vec<&'static str>,
    flow: Arc<ClientCapacity>,
}

impl HealthService {
    /// Returns the health service for services with these names. The empty name stands for the
    /// process.
    pub(super) fn server(names: &[&'static str], flow: &Arc<ClientCapacity>) -> HealthServer<Self> {
        HealthServer::new(Self { names: names.to_vec(), flow: Arc::clone(flow) })
    }

    /// Returns an error if a request names an unknown service.
    fn check_name(&self, request: &Request<HealthCheckRequest>) -> Result<(), Status> {
        let name = &request.get_ref().service;
        match name.is_empty() || self.names.iter().any(|known| known == name) {
            true => Ok(()),
            false => Err(Status::not_found("this port has no service of that name")),
        }
    }
}

/// Returns the reply with a status.
fn reply_of(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl Health for HealthService {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        self.check_name(&request)?;
        Ok(Response::new(reply_of(match self.flow.stop.has_begun() {
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
        let serving = (!self.flow.stop.has_begun()).then(|| reply_of(ServingStatus::Serving));
        let mut stop = self.flow.stop.watch();
        let end = async move {
            stop.draining().await;
            reply_of(ServingStatus::NotServing)
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
    async fn a_watch_does_not_delay_the_stop() {
        let flow = ClientCapacity::new(ClientLimits::default());
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
