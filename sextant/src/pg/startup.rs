//! The start of a connection: requests for encryption, a cancel request, or the start-up packet, behind which the client logs in
//! ([`super::login`]) and its session begins.

use std::collections::BTreeMap;

use bytes::{Buf, BytesMut};
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey,
};
use tokio::io::{AsyncRead, AsyncWrite};

use super::conn::Conn;
use super::error::{WireError, WireResult};
use super::interrupt::Registration;
use super::known_settings::REPORTED;
use super::settings::Settings;

/// Size limit of a start-up packet, as in PostgreSQL.
const PACKET_BYTES_MAX: usize = 10_000;

const CANCEL_REQUEST: u32 = 80_877_102;
const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
const PROTOCOL_3_0: u32 = 3 << 16;

/// The encryption of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encryption {
    /// The port has none.
    Absent,
    /// The client may ask for it.
    Offered,
    /// It is there.
    Present,
}

/// The purpose of a connection.
pub(super) enum Start {
    /// Encryption: the client has asked for it, and was told to begin.
    Encrypt,
    /// A session with these parameters.
    Session(Parameters),
    /// A cancel request: process and secret of another session.
    Cancel(i32, i32),
    /// None: the client has closed the connection.
    Closed,
}

/// The contents of a start-up packet.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    values: BTreeMap<String, String>,
    minor: u32,
}

impl Parameters {
    pub(super) fn user(&self) -> String {
        self.values.get("user").cloned().unwrap_or_else(|| "sextant".to_owned())
    }

    pub(super) fn database(&self) -> String {
        self.values.get("database").cloned().unwrap_or_else(|| self.user())
    }

    /// Applies the client's settings: parameters, and `-c name=value` in `options`. Unknown settings are ignored, because
    /// drivers send any setting of PostgreSQL.
    pub(super) fn apply(&self, settings: &mut Settings) {
        let options = self.values.get("options").map(String::as_str).unwrap_or_default();
        let options = options.split_whitespace().filter_map(|word| {
            let word = word.strip_prefix("-c").or_else(|| word.strip_prefix("--")).unwrap_or(word);
            word.split_once('=')
        });
        let named = self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        // Before the others, since a session has one user for good.
        let _always_known = settings.set("session_authorization", Some(&self.user()), false);
        for (name, value) in named.chain(options) {
            let name = name.to_lowercase();
            if !["user", "database", "options", "replication"].contains(&name.as_str()) {
                let _left_out = settings.set(&name, Some(value), false);
            }
        }
    }
}

/// Reads up to the start-up packet.
pub(super) async fn begin<S: AsyncRead + AsyncWrite + Unpin>(
    conn: &mut Conn<S>,
    encryption: Encryption,
) -> WireResult<Start> {
    loop {
        if !conn.fill(8).await? {
            return Ok(Start::Closed);
        }
        let mut head = &conn.input()[..8];
        let (length, code) = (head.get_u32() as usize, head.get_u32());
        if !(8..=PACKET_BYTES_MAX).contains(&length) {
            let text = format!("a start-up packet has the invalid length {length}");
            return Err(WireError::protocol(text));
        }
        if !conn.fill(length).await? {
            return Ok(Start::Closed);
        }
        let mut packet = conn.input().split_to(length);
        packet.advance(8);
        match code {
            SSL_REQUEST | GSS_REQUEST => {
                // Plain bytes that came with the request must not be taken for encrypted ones.
                if conn.has_input() {
                    return Err(WireError::protocol(
                        "unencrypted data after a request for encryption",
                    ));
                }
                let begins = match encryption {
                    Encryption::Present => {
                        let text = "a request for encryption on an encrypted connection";
                        return Err(WireError::protocol(text));
                    }
                    Encryption::Offered => code == SSL_REQUEST,
                    Encryption::Absent => false,
                };
                conn.out.push(if begins { b'S' } else { b'N' });
                conn.flush().await?;
                if begins {
                    return Ok(Start::Encrypt);
                }
            }
            CANCEL_REQUEST => {
                return match packet.len() {
                    8 => Ok(Start::Cancel(packet.get_i32(), packet.get_i32())),
                    _ => Err(WireError::protocol("a malformed cancel request")),
                };
            }
            version if version >> 16 == 3 => {
                let minor = version & 0xffff;
                return parameters(packet, minor).map(Start::Session);
            }
            version => {
                let (major, minor) = (version >> 16, version & 0xffff);
                let message = format!("protocol {major}.{minor} is not supported; use 3.0");
                return Err(WireError::protocol(message));
            }
        }
    }
}

/// Decodes names and values, each with a final NUL, and a NUL after the last one.
fn parameters(packet: BytesMut, minor: u32) -> WireResult<Parameters> {
    let malformed = || WireError::protocol("a malformed start-up packet");
    let body = packet.strip_suffix(&[0]).ok_or_else(malformed)?;
    let mut values = BTreeMap::new();
    let mut words = body.split(|byte| *byte == 0);
    loop {
        let name = words.next().ok_or_else(malformed)?;
        if name.is_empty() {
            return match words.next() {
                None => Ok(Parameters { values, minor }),
                Some(_) => Err(malformed()),
            };
        }
        let value = words.next().ok_or_else(malformed)?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| malformed());
        values.insert(text(name)?, text(value)?);
    }
}

/// Sends the messages that begin a session.
pub(super) fn welcome<S: AsyncRead + AsyncWrite + Unpin>(
    conn: &mut Conn<S>,
    parameters: &Parameters,
    settings: &Settings,
    registration: &Registration,
) -> WireResult<()> {
    let options: Vec<String> =
        parameters.values.keys().filter(|name| name.starts_with("_pq_.")).cloned().collect();
    if parameters.minor > 0 || !options.is_empty() {
        conn.send(NegotiateProtocolVersion::new(PROTOCOL_3_0 as i32, options))?;
    }
    conn.send(Authentication::Ok)?;
    for name in REPORTED {
        if let Ok(value) = settings.show(&name.to_lowercase()) {
            conn.send(ParameterStatus::new(name.to_owned(), value))?;
        }
    }
    let secret = SecretKey::I32(registration.secret);
    conn.send(BackendKeyData::new(registration.process, secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_and_malformed_ones_are_refused() {
        let read = |bytes: &[u8]| parameters(BytesMut::from(bytes), 0);
        let good =
            read(b"user\0me\0options\0-c consistency=request_plus\0colour\0red\0\0").unwrap();
        assert_eq!((good.user().as_str(), good.database().as_str()), ("me", "me"));
        let mut settings = Settings::default();
        good.apply(&mut settings);
        assert_eq!(settings.show("consistency").unwrap(), "request_plus");
        assert_eq!(settings.show("session_authorization").unwrap(), "me");
        assert!(read(b"\0").is_ok(), "no parameters at all");
        for bad in [&b""[..], b"user\0me\0", b"user\0", b"user\0me", b"a\0\xff\0\0", b"\0\0a\0\0"] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
