//! The server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), with channel binding
//! `tls-server-end-point` (RFC 5929), as PostgreSQL has it. The code does no I/O: the caller reads
//! and writes messages, and draws the nonce.
//!
//! For an unknown user name, the exchange continues with a salt made from the name, and the
//! client is refused at its end, as for a wrong password. The exchange therefore does not reveal
//! which names exist. The user name in the first message is ignored, as in PostgreSQL: the
//! start-up packet has named it already.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proto::env::Random;
use proto::model::users::{ScramVerifier, Secret32, User, Users};
use sha2::{Digest, Sha256};

use super::verifier::{ITERATIONS, SALT_BYTES, hmac};

/// The only supported kind of channel binding.
const BINDING: &str = "tls-server-end-point";

/// A SASL mechanism of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// SCRAM without channel binding.
    Unbound,
    /// SCRAM with channel binding: the proof is valid only on this TLS connection.
    Bound,
}

impl Mechanism {
    /// Returns the registered name of the mechanism.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unbound => "SCRAM-SHA-256",
            Self::Bound => "SCRAM-SHA-256-PLUS",
        }
    }

    /// Returns the mechanisms that the server offers on a connection, the best first.
    pub fn offered(end_point: Option<&[u8]>) -> &'static [Self] {
        match end_point {
            Some(_) => &[Self::Bound, Self::Unbound],
            None => &[Self::Unbound],
        }
    }
}

/// The reason why an exchange ends without a log-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The client violates the protocol.
    Protocol(&'static str),
    /// The proof is wrong, or the user has no verifier.
    Refused,
}

/// The user whose password a client has to prove, with its verifier.
pub struct Account {
    verifier: ScramVerifier,
    user: Option<Arc<User>>,
}

impl Account {
    /// Returns the account with a user name. If the user does not exist, or has no valid
    /// password, a log-in to the account always fails.
    pub fn of(users: &Users, name: &str, now_unix_ms: u64) -> Self {
        // The verifier is computed for known users too, so that the time is the same.
        let mock = mock_verifier(&users.mock_key, name);
        let user = users.find_by_name(name);
        let is_open =
            |user: &&Arc<User>| user.until_unix_ms.is_none_or(|until| now_unix_ms < until);
        match user.and_then(|user| user.verifier.clone()) {
            Some(verifier) => Self { verifier, user: user.filter(is_open).cloned() },
            None => Self { verifier: mock, user: None },
        }
    }
}

/// Returns a fictitious verifier for a name that no user has. It is always the same for a name.
fn mock_verifier(mock_key: &Secret32, name: &str) -> ScramVerifier {
    let drawn = hmac(mock_key.bytes(), &[name.as_bytes()]);
    let mut salt = [0; SALT_BYTES];
    salt.copy_from_slice(&drawn[..SALT_BYTES]);
    let nothing = || Secret32::new([0; 32]);
    ScramVerifier { salt, iterations: ITERATIONS, stored_key: nothing(), server_key: nothing() }
}

/// Returns a nonce (a text that is used only once): 24 random bytes as text.
pub fn nonce(random: &dyn Random) -> String {
    let bytes: Vec<u8> = (0..3).flat_map(|_| random.next_u64().to_be_bytes()).collect();
    STANDARD.encode(bytes)
}

/// The state of an exchange after the server's first message.
pub struct Exchange {
    account: Account,
    /// `gs2-header` and the data of the channel binding, which the client must repeat.
    bound: Vec<u8>,
    /// The client's nonce, then the server's.
    nonce: String,
    /// `client-first-message-bare`, then the server's first message.
    messages: String,
}

impl Exchange {
    /// Begins an exchange with the client's first message. Returns the exchange and the server's
    /// answer.
    pub fn begin(
        mechanism: Mechanism,
        client_first: &[u8],
        account: Account,
        (end_point, nonce): (Option<&[u8]>, &str),
    ) -> Result<(Self, String), Failure> {
        let text = text(client_first)?;
        let (header, bare) = split_header(text)?;
        let flag = header.split(',').next().unwrap_or_default();
        let mut bound = header.as_bytes().to_vec();
        bound.extend_from_slice(binding_data(mechanism, flag, end_point)?);
        let (name, rest) = bare.split_once(',').ok_or(MALFORMED)?;
        if name.starts_with("m=") {
            return Err(Failure::Protocol("an extension of SCRAM that is not supported"));
        }
        let client_nonce = rest.split(',').next().and_then(|word| word.strip_prefix("r="));
        let client_nonce = client_nonce.filter(|_| name.starts_with("n=")).ok_or(MALFORMED)?;
        // RFC 5802: printable, without a comma.
        if client_nonce.is_empty() || !client_nonce.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Failure::Protocol("the client's nonce in SCRAM is not printable"));
        }
        let nonce = format!("{client_nonce}{nonce}");
        let ScramVerifier { salt, iterations, .. } = &account.verifier;
        let answer = format!("r={nonce},s={},i={iterations}", STANDARD.encode(salt));
        let messages = format!("{bare},{answer}");
        Ok((Self { account, bound, nonce, messages }, answer))
    }

    /// Ends the exchange with the client's final message. Returns the user and the server's
    /// answer, which proves that the server knows the password's verifier.
    pub fn finish(self, client_final: &[u8]) -> Result<(Arc<User>, String), Failure> {
        let text = text(client_final)?;
        let (without_proof, proof) = text.rsplit_once(",p=").ok_or(MALFORMED)?;
        let mut words = without_proof.split(',');
        let bound = words.next().and_then(|word| word.strip_prefix("c=")).ok_or(MALFORMED)?;
        if STANDARD.decode(bound).map_err(|_| MALFORMED)? != self.bound {
            return Err(Failure::Protocol(
                "the channel binding of SCRAM is that of another connection",
            ));
        }
        if words.next().and_then(|word| word.strip_prefix("r=")) != Some(self.nonce.as_str()) {
            return Err(Failure::Protocol("the nonce of SCRAM is that of another exchange"));
        }
        let proof: [u8; 32] =
            STANDARD.decode(proof).ok().and_then(|it| it.try_into().ok()).ok_or(MALFORMED)?;
        let ScramVerifier { stored_key, server_key, .. } = &self.account.verifier;
        let parts = [self.messages.as_bytes(), b",", without_proof.as_bytes()];
        let mut client_key = hmac(stored_key.bytes(), &parts);
        client_key.iter_mut().zip(proof).for_each(|(key, proof)| *key ^= proof);
        let is_right = stored_key.matches(&Sha256::digest(client_key).into());
        let signature = hmac(server_key.bytes(), &parts);
        match self.account.user.filter(|_| is_right) {
            Some(user) => Ok((user, format!("v={}", STANDARD.encode(signature)))),
            None => Err(Failure::Refused),
        }
    }
}

const MALFORMED: Failure = Failure::Protocol("a malformed message of SCRAM");

fn text(message: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(message).map_err(|_| MALFORMED)
}

/// Splits the client's first message into the flag of channel binding and the message after
/// `gs2-header`. Returns an error if the client wants to act for another user.
fn split_header(text: &str) -> Result<(&str, &str), Failure> {
    let commas = text.match_indices(',').map(|(at, _)| at);
    let second = commas.take(2).nth(1).ok_or(MALFORMED)?;
    let (header, bare) = text.split_at(second + 1);
    if !header.ends_with(",,") {
        return Err(Failure::Protocol("SCRAM cannot log in as one user for another"));
    }
    Ok((header, bare))
}

/// Returns the data to which the client must bind its proof; an error if the client's flag does
/// not fit the mechanism.
fn binding_data<'a>(
    mechanism: Mechanism,
    flag: &str,
    end_point: Option<&'a [u8]>,
) -> Result<&'a [u8], Failure> {
    match (mechanism, flag, end_point) {
        (Mechanism::Unbound, "n", _) | (Mechanism::Unbound, "y", None) => Ok(&[]),
        // The client supports channel binding, and believes that the server does not: an attacker between them may have
        // changed the offer.
        (Mechanism::Unbound, "y", Some(_)) => Err(Failure::Protocol(
            "the client supports channel binding, and did not see that the server does: the connection may be tampered with",
        )),
        (Mechanism::Bound, flag, Some(end_point)) => match flag.strip_prefix("p=") {
            Some(BINDING) => Ok(end_point),
            Some(_) => Err(Failure::Protocol("a kind of channel binding that is not supported")),
            None => Err(MALFORMED),
        },
        _ => Err(MALFORMED),
    }
}

#[cfg(test)]
#[path = "scram_tests.rs"]
mod tests;
