//! Executes `--skip-epochs`: once for each start of the process with the flag.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Weak;
use std::time::Duration;

use proto::rpc::api::CoordinatorApi;
use proto::rpc::command::{Command, Outcome, Proposal, RequestId, SkipEpochs};

/// The pause before the next try.
const RETRY: Duration = Duration::from_millis(200);

/// Proposes the command `SkipEpochs` until a leader has executed it. The request id ensures that
/// the command is executed once, even if answers are lost.
pub(super) async fn skip_epochs(coordinator: Weak<dyn CoordinatorApi>, client: u64) -> Infallible {
    while let Some(member) = coordinator.upgrade() {
        let request = RequestId { client, sequence: 1 };
        let proposal = Proposal::from(Command::SkipEpochs(SkipEpochs)).with_request(request);
        match member.propose(proposal).await.map(|applied| applied.outcome) {
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
