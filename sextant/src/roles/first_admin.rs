//! The first user of a cluster, an administrator.

use proto::env::Env;
use proto::model::users::{NewSecret, Secret32, UserCommand, UserLimits};
use proto::rpc::api::CoordinatorApi;
use proto::rpc::command::{Command, Outcome, Proposal, RequestId};
use proto::{Error, Result};

use crate::auth::verifier::{ITERATIONS, SALT_BYTES, derive};

/// The first user, as an operator configures it.
pub struct FirstAdmin {
    /// The name of the user.
    pub name: String,
    /// The password of the user.
    pub password: String,
    /// The time from which the password is invalid, in milliseconds since 1970; `None` for no
    /// limit.
    pub until_unix_ms: Option<u64>,
}

/// Creates the first user. Returns the error `WrongState` if the cluster already has users.
pub async fn make_first_admin(
    coordinator: &dyn CoordinatorApi,
    env: &Env,
    admin: FirstAdmin,
) -> Result<()> {
    let FirstAdmin { name, password, until_unix_ms } = admin;
    let mut random = [0; SALT_BYTES + 32];
    for word in random.chunks_exact_mut(8) {
        word.copy_from_slice(&env.random.next_u64().to_be_bytes());
    }
    let (salt, fresh) = random.split_at(SALT_BYTES);
    let (mut own_salt, mut mock_key) = ([0; SALT_BYTES], [0; 32]);
    own_salt.copy_from_slice(salt);
    mock_key.copy_from_slice(fresh);
    let verifier = env.blocking(move || derive(&password, own_salt, ITERATIONS)).await;
    let command = UserCommand::Create {
        name,
        secret: Some(NewSecret::Password { verifier, until_unix_ms }),
        limits: UserLimits::default(),
        fresh: Secret32::new(mock_key),
        first: true,
    };
    let request = RequestId { client: env.random.next_u64(), sequence: 0 };
    let proposal = Proposal::from(Command::Users(Box::new(command))).with_request(request);
    match coordinator.propose(proposal).await?.outcome {
        Outcome::User { .. } => Ok(()),
        Outcome::Refused(error) => Err(error),
        other => Err(Error::internal(format!("a user was made with the outcome {other:?}"))),
    }
}
