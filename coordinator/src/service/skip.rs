//! Carries out `--skip-epochs`: once for each start of the process with the flag.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Weak;
use std::time::Duration;

use proto::rpc::api::CoordinatorApi;
use proto::rpc::command::{Command, CommandRequest, Outcome, RequestId};

/// The pause before the next try.
const RETRY: Duration = Duration::from_millis(200);

/// Proposes the command until a leader has carried it out. The request id lets it be carried out once, whatever answer is lost.
pub(super) async fn skip_epochs(coordinator: Weak<dyn CoordinatorApi>, client: u64) -> Infallible {
    while let Some(member) = coordinator.upgrade() {
        let command = Command::SkipEpochs(Default::default());
        let request = Some(RequestId { client, sequence: 1 });
        match member.propose(CommandRequest { request, command }).await {
            Ok(Outcome::Refused(error)) => tracing::error!(%error, "--skip-epochs is refused"),
            Ok(_) => tracing::warn!(
                "--skip-epochs is carried out: all indexes are rebuilt, SHOW ROLLBACKS tells the stage; start \
                 without the flag from now on"
            ),
            Err(error) => {
                tracing::debug!(%error, "--skip-epochs has to wait");
                drop(member);
                tokio::time::sleep(RETRY).await;
                continue;
            }
        }
        break;
    }
    pending().await
}
