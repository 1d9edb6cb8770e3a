//! Continuation tokens: the position at which a scan stopped, as opaque text that a client may keep
//! for minutes and send to any router.
//!
//! Tokens are received from clients, so they are versioned, checksummed and bounded, and any other
//! text is refused. A token has one text form: the unused bits of the last character are zero.
//! Layout before base64url (RFC 4648 section 5, without padding): version (1 byte), postcard body,
//! XXH3-64 of all bytes before it (8 bytes, little endian).
//!
//! Clients receive tokens of ordered scans only, over gRPC. Tokens of unordered scans contain the
//! virtual-scan map, and are used inside the router.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use proto::model::ids::{Epoch, Generation, IndexId, LocalIndexId, NodeId, SliceNo, TopologyNo};
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Maximum length of a token in characters: enough for the longest entry that a token can contain
/// for every slice of an index.
const TOKEN_CHARS_MAX: usize = 8 << 20;

const VERSION: u8 = 1;

/// The position at which a scan stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The index that the scan reads.
    pub index: IndexId,
    /// The generation of the index that the scan reads.
    pub generation: Generation,
    /// The epoch that the scan reads.
    pub epoch: Epoch,
    /// The number of the topology under which the scan began.
    pub base_topology: TopologyNo,
    /// The hash of the request, so that a token cannot continue another request.
    pub request_hash: u64,
    /// For an unordered scan: the number of groups of slices (shards of the base topology) that
    /// are finished.
    pub shards_done: u16,
    /// The last entry that was delivered, or rejected by the scan's predicate. The scan continues
    /// after it.
    pub resume_after: Option<Bytes>,
    /// Slices that have moved since the scan began, with their positions: the virtual-scan map.
    pub virtual_scans: Vec<VirtualScan>,
    /// The number of rows that LIMIT still allows.
    pub limit_left: Option<u64>,
    /// The number of rows that OFFSET still skips.
    pub offset_left: u64,
}

/// One entry of the virtual-scan map: a slice that has left the node on which it was when the scan
/// began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualScan {
    /// The slice that has moved.
    pub slice: SliceNo,
    /// The node on which the slice was last found. The scan uses it only as a hint.
    pub node: NodeId,
    /// The entry after which the slice is read.
    pub resume_after: Option<Bytes>,
    /// True if the slice was read to its end.
    pub done: bool,
}

impl Token {
    /// Returns the generation of the index that the scan reads.
    pub fn local_index(&self) -> LocalIndexId {
        LocalIndexId { index: self.index, generation: self.generation }
    }

    /// Returns the token as text.
    pub fn encode(&self) -> Result<String> {
        let mut bytes = vec![VERSION];
        let body = postcard::to_stdvec(self).map_err(|e| Error::internal(e.to_string()))?;
        bytes.extend_from_slice(&body);
        bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
        Ok(URL_SAFE_NO_PAD.encode(&bytes))
    }

    /// Decodes a token; refuses text that [`Self::encode`] did not produce.
    pub fn decode(text: &str) -> Result<Self> {
        let refuse = |why: &str| {
            Error::new(ErrorCode::InvalidParameter, format!("continuation token: {why}"))
                .with_hint("begin the scan anew without a token")
        };
        if text.len() > TOKEN_CHARS_MAX {
            return Err(refuse("it is too long"));
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| refuse("it is not base64url"))?;
        let (rest, checksum) =
            bytes.split_last_chunk::<8>().ok_or_else(|| refuse("it is too short"))?;
        if xxh3_64(rest) != u64::from_le_bytes(*checksum) {
            return Err(refuse("its checksum does not match"));
        }
        match rest.split_first() {
            Some((&VERSION, body)) => {
                postcard::from_bytes(body).map_err(|_| refuse("it cannot be read"))
            }
            Some((version, _)) => Err(refuse(&format!("its version is {version}, not {VERSION}"))),
            None => Err(refuse("it is empty")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn token(resume: Vec<u8>) -> Token {
        Token {
            index: IndexId(4),
            generation: Generation(1),
            epoch: Epoch(77),
            base_topology: TopologyNo(3),
            request_hash: 99,
            shards_done: 2,
            resume_after: Some(resume.into()),
            virtual_scans: vec![VirtualScan {
                slice: SliceNo(1),
                node: NodeId(2),
                resume_after: None,
                done: true,
            }],
            limit_left: Some(5),
            offset_left: 0,
        }
    }

    proptest! {
        #[test]
        fn tokens_are_read_back_and_changed_ones_are_refused(
            resume: Vec<u8>, at: usize, to in "[A-Za-z0-9_-]",
        ) {
            let token = token(resume);
            let text = token.encode().unwrap();
            prop_assert_eq!(Token::decode(&text).unwrap(), token);
            for at in [at % text.len(), text.len() - 1] {
                let mut changed = text.clone();
                changed.replace_range(at..=at, &to);
                prop_assert!(changed == text || Token::decode(&changed).is_err());
            }
            prop_assert!(Token::decode(&(text + &to)).is_err());
        }

        #[test]
        fn any_text_is_refused_without_a_panic(text: String) {
            prop_assert!(Token::decode(&text).is_err());
        }
    }
}
