//! The log-in of a session: without a proof if clients are trusted, by the client's certificate, or
//! by a password with SCRAM.
//!
//! Messages of a log-in come from unauthenticated clients. Their size is therefore limited, and
//! this module decodes their bodies without the library's decoder, which trusts the lengths
//! inside a message.

use bytes::Bytes;
use pgwire::messages::startup::Authentication;
use proto::{Error, ErrorCode};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::audit::PortProtocol;
use crate::auth::link::Link;
use crate::auth::login_policy::{LoginPolicy, LoginStep};
use crate::auth::scram::{Exchange, Failure, Mechanism};
use crate::pg::message::conn::Conn;
use crate::pg::message::error::{WireError, WireResult};
use crate::principal::Principal;

/// The maximum size of a message before the end of a log-in, in bytes.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// The type of a client's message that contains a proof.
const PROOF: u8 = b'p';

/// Authenticates a client that has named a user. Returns `None` if the client closes the
/// connection.
pub(in crate::pg) async fn log_in<S: AsyncRead + AsyncWrite + Unpin>(
    conn: &mut Conn<S>,
    doors: &LoginPolicy,
    link: &Link,
    user: &str,
) -> WireResult<Option<Principal>> {
    let proved = authenticate(conn, doors, link, user).await;
    if let Err(error) = &proved {
        doors.note_refused(link, PortProtocol::Sql, Some(user), error.sqlstate());
    }
    proved
}

/// Authenticates a client as the login policy requires: without a proof, by its certificate, or
/// by its password with SCRAM.
async fn authenticate<S: AsyncRead + AsyncWrite + Unpin>(
    conn: &mut Conn<S>,
    doors: &LoginPolicy,
    link: &Link,
    user: &str,
) -> WireResult<Option<Principal>> {
    match doors.greet(link)? {
        LoginStep::Trusted => Ok(Some(Principal::Trusted)),
        LoginStep::Certificate(principal) => match &principal {
            Principal::User(identified) if identified.name != user => {
                let whose = &identified.name;
                let text = format!("the certificate is of user \"{whose}\", not of \"{user}\"");
                Err(Error::new(ErrorCode::BadLogin, text).into())
            }
            _ => Ok(Some(principal)),
        },
        LoginStep::Proof => {
            // The second look counts the failures of log-ins that began together.
            doors.check_failures(link)?;
            let Some((exchange, last)) = exchange(conn, doors, link, user).await? else {
                return Ok(None);
            };
            doors.check_failures(link)?;
            match exchange.finish(&last) {
                Ok((user, signature)) => {
                    conn.send(Authentication::SASLFinal(Bytes::from(signature)))?;
                    Ok(Some(doors.admit(&user, link)))
                }
                Err(Failure::Refused) => {
                    doors.count_failure(link);
                    Err(doors.bad_password(user).into())
                }
                Err(failure) => Err(exchange_error(failure)),
            }
        }
    }
}

/// Runs an exchange of SCRAM up to the client's final message. Returns the exchange and this
/// message, or `None` if the client closes the connection.
async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    conn: &mut Conn<S>,
    doors: &LoginPolicy,
    link: &Link,
    user: &str,
) -> WireResult<Option<(Exchange, Bytes)>> {
    let offered = Mechanism::offered(link.end_point());
    let names = offered.iter().map(|mechanism| mechanism.name().to_owned()).collect();
    conn.send(Authentication::SASL(names))?;
    conn.flush().await?;
    let Some(body) = conn.read_body(PROOF, MESSAGE_BYTES_MAX).await? else { return Ok(None) };
    let (name, first) = initial_response(&body).ok_or_else(no_scram)?;
    let mechanism = offered.iter().find(|mechanism| mechanism.name().as_bytes() == name);
    let mechanism = *mechanism.ok_or_else(no_scram)?;
    let (end_point, nonce) = (link.end_point(), doors.nonce());
    let begun = Exchange::begin(mechanism, first, doors.account(user), (end_point, &nonce));
    let (exchange, answer) = begun.map_err(exchange_error)?;
    conn.send(Authentication::SASLContinue(Bytes::from(answer)))?;
    conn.flush().await?;
    let last = conn.read_body(PROOF, MESSAGE_BYTES_MAX).await?;
    Ok(last.map(|last| (exchange, last.freeze())))
}

/// Splits the body of SASLInitialResponse into the name of a mechanism and the response. Returns
/// `None` unless the body consists of the name, NUL, a length, and as many bytes up to the end.
pub(in crate::pg) fn initial_response(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = body.iter().position(|byte| *byte == 0)?;
    let (name, rest) = (&body[..end], &body[end + 1..]);
    let (length, data) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
    (data.len() == length).then_some((name, data))
}

/// Returns the error for a client that sends its password in clear text, or that supports only
/// mechanisms other than SCRAM.
fn no_scram() -> WireError {
    WireError::protocol("the client does not log in with SCRAM-SHA-256")
        .with_hint("use a driver that knows the method scram-sha-256 of PostgreSQL")
}

/// Returns the error for a failed exchange.
fn exchange_error(failure: Failure) -> WireError {
    match failure {
        Failure::Protocol(why) => WireError::protocol(why),
        Failure::Refused => Error::new(ErrorCode::BadPassword, "the proof is wrong").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_initial_response_has_exactly_the_bytes_that_it_says() {
        let good = b"SCRAM-SHA-256\0\0\0\0\x03abc";
        assert_eq!(initial_response(good), Some((&b"SCRAM-SHA-256"[..], &b"abc"[..])));
        for cut in 0..good.len() {
            assert_eq!(initial_response(&good[..cut]), None, "cut at {cut}");
        }
        assert_eq!(initial_response(b"x\0\xff\xff\xff\xff"), None, "no first message");
        assert_eq!(initial_response(b"x\0\0\0\0\x01ab"), None, "more bytes");
        assert_eq!(initial_response(b"x\0\x7f\xff\xff\xffab"), None);
        assert_eq!(initial_response(b"password\0"), None);
    }
}
