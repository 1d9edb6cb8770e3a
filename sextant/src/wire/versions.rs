//! Protocol versions. A process supports a range of versions, so that processes of neighbouring releases work together during
//! an upgrade.
//!
//! A request names the version in which it is written, and carries the range of its sender. A server that does not support that version
//! refuses the request without running it, and its refusal carries its own range. Where the two ranges meet, the caller writes the request
//! again in the newest common version, and begins with that version from then on. Where they do not meet, the call fails. The reply is
//! written in the version of the request.
//!
//! A release that changes an encoding supports the old and the new version for one release; `codec` then needs the version.

use std::fmt;
use std::str::FromStr;

use tonic::Status;
use tonic::metadata::{MetadataMap, MetadataValue};

/// The header that carries the range of a sender.
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
    /// The versions that this build supports.
    pub const SPOKEN: Self = Self { oldest: 2, newest: 2 };

    /// Returns the newest version in both ranges.
    pub fn common(self, other: Self) -> Option<u32> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }

    /// Checks that a request is written in a version of this range.
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

    /// Reads the range of a sender from its headers.
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
