//! Shares of the process's limit of open files, which counts both sockets and files. Each use of
//! open files gets a share of the limit.
//!
//! Without shares, idle sessions could take all descriptors, so that no file could be opened. A
//! projector that cannot write documents would then end. Sessions get three eighths, and
//! connections that are logging in a sixteenth. Fragments and the files of documents (fragments
//! and logs) get an eighth each, connections of gRPC and of other processes a sixteenth each, and
//! connections of HTTP a thirty-second. The remaining descriptors are for other logs, calls to
//! other processes, and files that are open for a short time.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The number of open files that is assumed if the system has no limit ("unlimited").
const UNLIMITED: u64 = 1 << 20;
/// The default limit of connections of gRPC clients, each of which carries many calls.
const GRPC_CONNECTIONS_MAX: usize = 512;
/// The default limit of connections of HTTP clients, which read metrics.
const HTTP_CONNECTIONS_MAX: usize = 128;
/// The default limit of connections of other processes, each of which has one or a few.
const PEER_CONNECTIONS_MAX: usize = 4096;
/// The maximum share of one use, in open files.
const SHARE_MAX: u64 = 4096;

/// Raises the soft limit of open files to the hard limit. If that fails, the limit stays as it
/// is, which only makes the shares smaller.
pub fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::warn!(%error, "the limit of open files cannot be raised");
    }
}

/// The shares of different uses in the process's limit of open files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    limit: u64,
}

impl Shares {
    /// Returns the shares of this process, from the system's limit.
    pub fn of_process() -> Self {
        Self { limit: getrlimit(Resource::Nofile).current.unwrap_or(UNLIMITED) }
    }

    /// Returns the share of SQL sessions, at most `most`.
    pub fn sessions(self, most: usize) -> usize {
        most.min(self.eighths(3))
    }

    /// Returns the share of SQL connections that are logging in, at most `most`.
    pub fn starting(self, most: usize) -> usize {
        most.min(self.eighths(1) / 2).max(1)
    }

    /// Returns the share of gRPC connections of clients. `most` is the configured limit; `None`
    /// means the default.
    pub fn grpc(self, most: Option<usize>) -> usize {
        (self.eighths(1) / 2).max(8).min(most.unwrap_or(GRPC_CONNECTIONS_MAX))
    }

    /// Returns the share of HTTP connections of clients. `most` is the configured limit; `None`
    /// means the default.
    pub fn http(self, most: Option<usize>) -> usize {
        (self.eighths(1) / 4).max(4).min(most.unwrap_or(HTTP_CONNECTIONS_MAX))
    }

    /// Returns the share of connections of other processes. `most` is the configured limit;
    /// `None` means the default.
    pub fn peers(self, most: Option<usize>) -> usize {
        (self.eighths(1) / 2).max(16).min(most.unwrap_or(PEER_CONNECTIONS_MAX))
    }

    /// Returns the share of each indexer's open fragments, for `indexers` indexers in this
    /// process.
    pub fn fragments(self, indexers: usize) -> usize {
        (self.eighths(1).min(SHARE_MAX as usize) / indexers.max(1)).max(8)
    }

    /// Returns the share of the open files of a document store.
    pub fn documents(self) -> usize {
        self.eighths(1).clamp(16, SHARE_MAX as usize)
    }

    /// Returns `n` eighths of the limit.
    fn eighths(self, n: u64) -> usize {
        usize::try_from(self.limit / 8 * n).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_shares_together_leave_an_eighth_of_the_limit() {
        for limit in [256, 1024, 65_536, 1 << 20] {
            let shares = Shares { limit };
            let fragments = 3 * shares.fragments(3);
            let calls = shares.grpc(None) + shares.http(None) + shares.peers(None);
            let sessions = shares.sessions(1000) + shares.starting(64);
            let sum = sessions + fragments + shares.documents() + calls;
            assert!(sum as u64 <= limit / 8 * 7, "{sum} of {limit}");
        }
        assert_eq!(Shares { limit: 1024 }.sessions(1000), 384);
        assert_eq!(Shares { limit: 65_536 }.sessions(1000), 1000);
        let shares = Shares { limit: 65_536 };
        assert_eq!((shares.grpc(None), shares.http(None), shares.peers(None)), (512, 128, 4096));
        assert_eq!((shares.grpc(Some(2)), shares.http(Some(1)), shares.peers(Some(3))), (2, 1, 3));
        assert_eq!(
            Shares { limit: 1024 }.grpc(Some(1000)),
            64,
            "the files of the process are the limit"
        );
    }

    #[test]
    fn soft_limit_is_raised_to_hard_limit() {
        raise_limit();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!(current, maximum);
    }
}
