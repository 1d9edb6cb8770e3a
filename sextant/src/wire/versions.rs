//! The versions of the protocol between processes. A process supports a range of versions, so
//! that processes of neighbouring releases work together during an upgrade.
//!
//! A request contains its version and the range of its sender. A server that does not support the
//! version refuses the request before executing it. The refusal contains the server's range. If
//! the two ranges have common versions, the caller repeats the request in the newest common
//! version, and uses this version for later requests. Otherwise the call fails. A reply has the
//! version of its request.
//!
//! From `v0.1.0` on, a release that changes an encoding supports the old and the new version for one
//! release; `codec` then needs the version. Until then a change raises both ends of the range.

use std::fmt;
use std::str::FromStr;

use tonic::Status;
use tonic::metadata::{MetadataMap, MetadataValue};

/// The header with the range of the sender.
const HEADER: &str = "sextant-protocol";

/// A range of protocol versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProtocolVersions {
    /// The oldest version that a process supports.
    pub oldest: u32,
    /// The newest version that a process supports.
    pub newest: u32,
}

impl ProtocolVersions {
    /// The versions that this build of the program supports.
    pub const SPOKEN: Self = Self { oldest: 3, newest: 3 };

    /// Returns the newest version that is in both ranges; `None` if there is none.
    pub fn common(self, other: Self) -> Option<u32> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }

    /// Returns an error unless a request's version is in this range.
    pub fn accept(self, version: u32, sender: &MetadataMap) -> Result<(), Status> {
        if (self.oldest..=self.newest).contains(&version) {
            return Ok(());
        }
        let sender =
            Self::from_metadata(sender).unwrap_or(Self { oldest: version, newest: version });
        let text = match self.common(sender) {
            Some(common) => {
                format!("the request has protocol version {version}, write it in {common}")
            }
            None => format!(
                "the caller speaks the protocol versions {sender}, this process speaks {self}: \
                 run the same release in all processes"
            ),
        };
        let mut refusal = Status::failed_precondition(text);
        self.write_to(refusal.metadata_mut());
        Err(refusal)
    }

    /// Adds the range to the headers of a message.
    pub fn write_to(self, metadata: &mut MetadataMap) {
        // Digits and a hyphen are a valid header.
        if let Ok(value) = MetadataValue::try_from(self.to_string()) {
            metadata.insert(HEADER, value);
        }
    }

    /// Returns the sender's range from the headers of a message; `None` if it is absent or
    /// unreadable.
    pub fn from_metadata(metadata: &MetadataMap) -> Option<Self> {
        metadata.get(HEADER)?.to_str().ok()?.parse().ok()
    }
}

impl fmt::Display for ProtocolVersions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.oldest, self.newest)
    }
}

impl FromStr for ProtocolVersions {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (oldest, newest) = text.split_once('-').ok_or(())?;
        let number = |text: &str| text.parse().map_err(|_| ());
        Ok(Self { oldest: number(oldest)?, newest: number(newest)? })
    }
}
