//! The encoded sizes of messages.

use std::collections::BTreeMap;
use std::sync::Mutex;

use postcard::ser_flavors::Size;
use proto::lock::lock;
use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch};
use proto::rpc::api::WatchMessage;
use serde::Serialize;

use super::counts::Kind;

/// The size of the number of a method, or of the variant of a message or an answer, in bytes.
const TAG_BYTES: u64 = 1;

/// Returns the size of a message in the encoding between processes, in bytes.
pub fn size(message: &impl Serialize) -> u64 {
    let size = postcard::serialize_with_flavor(message, Size::default());
    size.expect("a message has an encoding") as u64 + TAG_BYTES
}

/// A cache of the sizes of messages that many watchers receive.
#[derive(Debug, Default)]
pub struct WatchSizes {
    catalogs: Mutex<BTreeMap<u64, u64>>,
    marks: Mutex<BTreeMap<(BucketId, Epoch), u64>>,
}

impl WatchSizes {
    /// Returns the kind and the size of a message, in bytes.
    pub fn of(&self, message: &WatchMessage) -> (Kind, u64) {
        match message {
            WatchMessage::Catalog(catalog) => {
                let mut known = lock(&self.catalogs);
                let bytes = known.entry(catalog.cas).or_insert_with(|| size(&**catalog));
                (Kind::Catalog, *bytes + TAG_BYTES)
            }
            WatchMessage::Epochs(marks) => {
                let bytes: u64 = marks.iter().map(|mark| self.of_mark(mark)).sum();
                (Kind::Epochs, bytes + size(&marks.len()) + TAG_BYTES)
            }
            WatchMessage::Users { users, .. } => (Kind::Users, size(&**users) + TAG_BYTES),
        }
    }

    /// Returns the size of a stability timestamp, in bytes.
    pub fn of_mark(&self, mark: &EpochMark) -> u64 {
        let mut known = lock(&self.marks);
        let bytes =
            *known.entry((mark.bucket, mark.epoch)).or_insert_with(|| size(mark) - TAG_BYTES);
        if known.len() > MARKS_MAX {
            known.clear();
        }
        bytes
    }
}

/// The maximum number of cached sizes: all retained epochs of some dozen buckets.
const MARKS_MAX: usize = 1 << 14;
