//! The open files of the process: sockets and files share one limit, and each use gets a share of
//! it.
//!
//! Without shares, idle sessions could take all descriptors, so that no file can be opened: a
//! projector ends if it cannot write documents. Sessions get three eighths, and connections that
//! are logging in a sixteenth. Fragments and the files of documents (fragments and logs) get an
//! eighth each, connections of gRPC and of other processes a sixteenth each, and connections of
//! HTTP a thirty-second. The remaining descriptors are for other logs, calls to other processes,
//! and files that are open for a short time.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The number of open files that is assumed if the limit of the system is "unlimited".
const UNLIMITED: u64 = 1 << 20;
/// The default limit of connections of gRPC clients, each of which carries many calls.
const GRPC_CONNECTIONS_MAX: usize = 512;
/// The default limit of connections of HTTP clients, which read metrics.
const HTTP_CONNECTIONS_MAX: usize = 128;
/// The default limit of connections of other processes, each of which has one or a few.
const PEER_CONNECTIONS_MAX: usize = 4096;
/// The maximum number of files that one use needs.
const SHARE_MAX: u64 = 4096;

/// Raises the soft limit of open files to the hard limit. After a failure the limit is unchanged
/// and only smaller.
pub fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::warn!(%error, "the limit of open files cannot be raised");
    }
}

/// The shares of the process's open files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    limit: u64,
}

impl Shares {
    /// Returns the shares of this process.
    pub fn of_process() -> Self {
        Self { limit: getrlimit(Resource::Nofile).current.unwrap_or(UNLIMITED) }
    }

    /// Returns the limit of SQL sessions, at most `most`.
    pub fn sessions(self, most: usize) -> usize {
        most.min(self.eighths(3))
    }

    /// Returns the limit of SQL connections that are logging in, at most `most`.
    pub fn starting(self, most: usize) -> usize {
        most.min(self.eighths(1) / 2).max(1)
    }

    /// Returns the limit of connections of gRPC clients, at most `most`.
    pub fn grpc(self, most: Option<usize>) -> usize {
        (self.eighths(1) / 2).max(8).min(most.unwrap_or(GRPC_CONNECTIONS_MAX))
    }

    /// Returns the limit of connections of HTTP clients, at most `most`.
    pub fn http(self, most: Option<usize>) -> usize {
        (self.eighths(1) / 4).max(4).min(most.unwrap_or(HTTP_CONNECTIONS_MAX))
    }

    /// Returns the limit of connections of other processes, at most `most`.
    pub fn peers(self, most: Option<usize>) -> usize {
        (self.eighths(1) / 2).max(16).min(most.unwrap_or(PEER_CONNECTIONS_MAX))
    }

    /// Returns the limit of open fragments of each indexer, if there are `indexers` in the process.
    pub fn fragments(self, indexers: usize) -> usize {
        (self.eighths(1).min(SHARE_MAX as usize) / indexers.max(1)).max(8)
    }

    /// Returns the limit of open files of a document store.
    pub fn documents(self) -> usize {
        self.eighths(1).clamp(16, SHARE_MAX as usize)
    }

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
    fn the_soft_limit_becomes_the_hard_one() {
        raise_limit();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!(current, maximum);
    }
}
