//! The start of a connection: a request for encryption, a cancel request, or the start-up packet.
//! After the start-up packet, the client logs in ([`super::login`]) and its session begins.

use std::collections::BTreeMap;

use bytes::{Buf, BytesMut};
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey,
};
use proto::{ErrorCode, Result};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::pg::interrupt::Registration;
use crate::pg::message::conn::Conn;
use crate::pg::message::error::{WireError, WireResult};
use crate::pg::session::known_settings::REPORTED;
use crate::pg::session::settings::Settings;

/// Size limit of a start-up packet, in bytes, as in PostgreSQL.
const PACKET_BYTES_MAX: usize = 10_000;

const CANCEL_REQUEST: u32 = 80_877_102;
const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
const PROTOCOL_3_0: u32 = 3 << 16;

/// The possibility of encryption on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pg) enum Encryption {
    /// The port has no encryption.
    Absent,
    /// The client may request encryption.
    Offered,
    /// The connection is encrypted.
    Present,
}

/// The first request of a connection, as far as the server must act on it.
pub(in crate::pg) enum Start {
    /// A request for encryption, to which the server has agreed.
    Encrypt,
    /// A request for a session with these parameters.
    Session(Parameters),
    /// A request to cancel a statement: process number and secret of another session.
    Cancel(i32, i32),
    /// No request: the client has closed the connection.
    Closed,
}

/// The contents of a start-up packet.
#[derive(Debug, Default)]
pub(in crate::pg) struct Parameters {
    values: BTreeMap<String, String>,
    minor: u32,
}

impl Parameters {
    /// Returns the name of the user.
    pub(in crate::pg) fn user(&self) -> String {
        self.values.get("user").cloned().unwrap_or_else(|| "sextant".to_owned())
    }

    /// Returns the name of the database.
    pub(in crate::pg) fn database(&self) -> String {
        self.values.get("database").cloned().unwrap_or_else(|| self.user())
    }

    /// Applies the client's settings: parameters of the packet, and `-c name=value` in its
    /// `options`. Returns warnings about settings without effect, since drivers may send any
    /// setting of PostgreSQL. A bad value of a known setting is an error. The encoding is an
    /// exception, since psql takes it from its locale.
    pub(in crate::pg) fn apply(&self, settings: &mut Settings) -> Result<Vec<String>> {
        let options = self.values.get("options").map(String::as_str).unwrap_or_default();
        let options = options_of(options);
        let named = self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let options = options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        // This is set before the others, since a session never changes its user.
        settings.set("session_authorization", Some(&self.user()), false)?;
        let mut warnings = Vec::new();
        // As in PostgreSQL, a separate parameter overrides one in `options`.
        for (name, value) in options.chain(named) {
            let name = name.to_lowercase();
            if PACKET_ONLY.contains(&name.as_str()) || name.starts_with("_pq_.") {
                continue;
            }
            match settings.set(&name, Some(value), false) {
                Err(error) if error.code == ErrorCode::UnknownSetting => {
                    warnings.push(format!("setting {name} does not exist here and has no effect"));
                }
                // Without conversions, which is what it means, texts are in UTF-8 all the same.
                Err(_) if name == "client_encoding" && value.eq_ignore_ascii_case("SQL_ASCII") => {}
                Err(_) if name == "client_encoding" => {
                    warnings.push(format!("client_encoding is UTF8 and cannot be {value}"));
                }
                set => set?,
            }
        }
        settings.start();
        Ok(warnings)
    }

    /// Returns the answer to a client that requests a newer minor version, or unknown options, of
    /// the protocol; `None` if no answer is needed.
    pub(in crate::pg) fn negotiation(&self) -> Option<NegotiateProtocolVersion> {
        let is_option = |name: &&String| name.starts_with("_pq_.");
        let options: Vec<String> = self.values.keys().filter(is_option).cloned().collect();
        let is_newer = self.minor > 0 || !options.is_empty();
        is_newer.then(|| NegotiateProtocolVersion::new(PROTOCOL_3_0 as i32, options))
    }
}

/// The names in a start-up packet that are not names of settings.
const PACKET_ONLY: [&str; 4] = ["user", "database", "options", "replication"];

/// Returns the settings in command-line options, which have the form `-c name=value`,
/// `-cname=value` or `--name=value`. White space separates the options, unless a backslash
/// precedes it.
fn options_of(text: &str) -> Vec<(String, String)> {
    let (mut words, mut word, mut is_escaped) = (Vec::new(), String::new(), false);
    for ch in text.chars() {
        match ch {
            _ if is_escaped => (is_escaped, _) = (false, word.push(ch)),
            '\\' => is_escaped = true,
            _ if ch.is_whitespace() => words.push(std::mem::take(&mut word)),
            _ => word.push(ch),
        }
    }
    words.push(word);
    let setting = |word: &String| {
        let word = word.strip_prefix("-c").or_else(|| word.strip_prefix("--")).unwrap_or(word);
        // As in PostgreSQL, a dash in the name stands for an underscore.
        word.split_once('=').map(|(name, value)| (name.replace('-', "_"), value.to_owned()))
    };
    words.iter().filter_map(setting).collect()
}

/// Reads the packets of a connection up to the start-up packet or another request that ends the
/// start.
pub(in crate::pg) async fn begin<S: AsyncRead + AsyncWrite + Unpin>(
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

/// Decodes a start-up packet. It consists of names and values, each with a NUL after it, and a
/// final NUL.
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
pub(in crate::pg) fn welcome<S: AsyncRead + AsyncWrite + Unpin>(
    conn: &mut Conn<S>,
    settings: &Settings,
    registration: &Registration,
) -> WireResult<()> {
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
        assert_eq!(
            good.apply(&mut settings),
            Ok(vec!["setting colour does not exist here and has no effect".to_owned()])
        );
        assert_eq!(settings.show("consistency").unwrap(), "request_plus");
        assert_eq!(settings.show("session_authorization").unwrap(), "me");
        let both = read(b"options\0-c timezone=Europe/Berlin\0TimeZone\0UTC\0\0").unwrap();
        let mut settings = Settings::default();
        both.apply(&mut settings).unwrap();
        assert_eq!(settings.show("timezone").unwrap(), "UTC");
        for (encoding, warnings) in [("SQL_ASCII", 0), ("LATIN1", 1), ("utf8", 0)] {
            let packet = format!("client_encoding\0{encoding}\0\0");
            let applied = read(packet.as_bytes()).unwrap().apply(&mut Settings::default());
            assert_eq!(applied.unwrap().len(), warnings, "{encoding}");
        }
        assert!(read(b"\0").is_ok(), "no parameters at all");
        let pairs =
            options_of(r"-c timezone=UTC --extra-float-digits=3  -capplication_name=a\ b -B 7");
        let pairs: Vec<_> =
            pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let known = [("timezone", "UTC"), ("extra_float_digits", "3"), ("application_name", "a b")];
        assert_eq!(pairs, known);
        for (bad, state) in [
            (&b"options\0-c statement_timeout=abc\0\0"[..], "22023"),
            (b"options\0-cdefault_transaction_isolation=serializable\0\0", "0A000"),
            (b"DateStyle\0German\0\0", "0A000"),
            (b"user\0me\0session_authorization\0other\0\0", "42501"),
        ] {
            let applied = read(bad).unwrap().apply(&mut Settings::default());
            assert_eq!(applied.unwrap_err().code.sqlstate(), state);
        }
        for bad in [&b""[..], b"user\0me\0", b"user\0", b"user\0me", b"a\0\xff\0\0", b"\0\0a\0\0"] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
