//! COPY … TO STDOUT by a client with minimal work: it reads large pieces from the socket, and
//! hashes and counts the rows without copying. An ordinary library spends more time on a row than a
//! server, so that the benchmark would measure the library.

use std::io::{Read, Write};
use std::net::TcpStream;

use tokio_postgres::config::Host;
use xxhash_rust::xxh3::Xxh3;

use super::super::Outcome;
use super::answers::Whole;
use super::peers::Target;

/// The number of bytes that are read at once.
const READ_BYTES: usize = 256 << 10;
/// Version 3.0 of the protocol.
const PROTOCOL: i32 = 3 << 16;

/// Reads all rows of a SELECT by COPY. `begin` is the first statement of the session; empty for
/// none.
pub async fn copy_out(target: &Target, begin: &'static str, select: &str) -> Outcome<Whole> {
    let (target, copy) = (target.clone(), format!("COPY ({select}) TO STDOUT"));
    let read = move || {
        let mut session = Session::open(&target)?;
        if !begin.is_empty() {
            session.run(begin)?;
        }
        session.run(&copy).map_err(|error| format!("{copy}: {error}").into())
    };
    tokio::task::spawn_blocking(read).await?
}

/// A session, with the bytes that were read from the socket and not used yet.
struct Session {
    socket: TcpStream,
    input: Vec<u8>,
    at: usize,
    end: usize,
}

impl Session {
    fn open(target: &Target) -> Outcome<Self> {
        let (config, port) = (&target.config, target.config.get_ports().first());
        let (Some(Host::Tcp(host)), Some(port)) = (config.get_hosts().first(), port) else {
            return Err("the server has no TCP address".into());
        };
        let user = config.get_user().ok_or("the session has no user")?;
        let socket = TcpStream::connect((host.as_str(), *port))?;
        socket.set_nodelay(true)?;
        let mut session = Self { socket, input: vec![0; READ_BYTES], at: 0, end: 0 };
        let mut body = PROTOCOL.to_be_bytes().to_vec();
        for text in ["user", user, "database", config.get_dbname().unwrap_or(user), ""] {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
        session.send(None, &body)?;
        session.until_ready()?;
        Ok(session)
    }

    /// Runs a statement and reads the rows of a COPY, which it summarizes.
    fn run(&mut self, statement: &str) -> Outcome<Whole> {
        self.send(Some(b'Q'), &[statement.as_bytes(), &[0]].concat())?;
        self.until_ready()
    }

    fn send(&mut self, kind: Option<u8>, body: &[u8]) -> Outcome<()> {
        let mut message: Vec<u8> = kind.into_iter().collect();
        message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        message.extend_from_slice(body);
        Ok(self.socket.write_all(&message)?)
    }

    /// Reads messages until the server is ready for the next statement.
    fn until_ready(&mut self) -> Outcome<Whole> {
        let (mut rows, mut hash, mut failed) = (0, Xxh3::new(), None);
        loop {
            let (kind, body) = self.message()?;
            match kind {
                b'd' => {
                    rows += 1;
                    hash.update(body);
                }
                b'E' => failed = Some(String::from_utf8_lossy(body).replace('\0', " ")),
                b'R' if body != [0; 4] => return Err("the server asks for a password".into()),
                b'Z' => {
                    let whole = Whole { rows, hash: hash.digest() };
                    return failed.map_or(Ok(whole), |error| Err(error.into()));
                }
                _ => {}
            }
        }
    }

    /// Returns the next message: its type and its body.
    fn message(&mut self) -> Outcome<(u8, &[u8])> {
        self.fill(5)?;
        let head = &self.input[self.at..self.at + 5];
        let (kind, length) = (head[0], u32::from_be_bytes([head[1], head[2], head[3], head[4]]));
        let whole = length as usize + 1;
        self.fill(whole)?;
        let body = self.at + 5..self.at + whole;
        self.at += whole;
        Ok((kind, &self.input[body]))
    }

    /// Reads until this many bytes are buffered.
    fn fill(&mut self, bytes: usize) -> Outcome<()> {
        if self.end - self.at >= bytes {
            return Ok(());
        }
        self.input.copy_within(self.at..self.end, 0);
        (self.at, self.end) = (0, self.end - self.at);
        if self.input.len() < bytes {
            self.input.resize(bytes, 0);
        }
        while self.end < bytes {
            match self.socket.read(&mut self.input[self.end..])? {
                0 => return Err("the server has closed the connection".into()),
                read => self.end += read,
            }
        }
        Ok(())
    }
}
