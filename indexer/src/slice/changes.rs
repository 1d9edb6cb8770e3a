//! What one epoch changes in one index: each document's entries before are compared with those from now
//! on, gathered in one buffer, and sorted once into a run.

use proto::ids::{Epoch, SliceNo};
use proto::mutation::IndexKeys;

use super::back_index::include_hash;
use super::run::{Run, RunBuilder, Version};
use super::slot::Writer;

/// The changes of one epoch to one index, gathered in one buffer and sorted once.
#[derive(Default)]
pub(super) struct Changes {
    bytes: Vec<u8>,
    rows: Vec<Change>,
}

struct Change {
    slice: SliceNo,
    /// Where its entry begins, where it ends and included values begin, where these end.
    at: [u32; 3],
    tombstone: bool,
}

impl Changes {
    /// Compares what a document had with what it has from now on, walking both in order.
    pub fn document(&mut self, writer: &mut Writer, id: &str, keys: &IndexKeys<'_>) {
        let mut old: Vec<_> = writer.back.get(id).collect();
        let mut new: Vec<_> = keys.entries().collect();
        old.sort_unstable_by_key(|entry| (entry.slice, entry.key));
        new.sort_unstable_by_key(|entry| (entry.slice, entry.key));
        let mut old = old.into_iter().peekable();
        for new in new {
            while let Some(gone) = old.next_if(|old| (old.slice, old.key) < (new.slice, new.key)) {
                self.push(gone.slice, gone.key, id, &[], true);
                *writer.entries.entry(gone.slice).or_default() -= 1;
            }
            match old.next_if(|old| (old.slice, old.key) == (new.slice, new.key)) {
                Some(same) if same.include_hash == include_hash(new.include) => continue,
                Some(_) => {}
                None => *writer.entries.entry(new.slice).or_default() += 1,
            }
            self.push(new.slice, new.key, id, new.include, false);
        }
        for gone in old {
            self.push(gone.slice, gone.key, id, &[], true);
            *writer.entries.entry(gone.slice).or_default() -= 1;
        }
        writer.back.set(id, keys);
    }

    fn push(&mut self, slice: SliceNo, key: &[u8], id: &str, include: &[u8], tombstone: bool) {
        let from = self.bytes.len() as u32;
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(id.as_bytes());
        let middle = self.bytes.len() as u32;
        self.bytes.extend_from_slice(include);
        self.rows.push(Change { slice, at: [from, middle, self.bytes.len() as u32], tombstone });
    }

    /// The run that the changes make; `None` if nothing changed.
    pub fn into_run(mut self, epoch: Epoch) -> Option<Run> {
        let bytes = &self.bytes;
        let entry = |change: &Change| &bytes[change.at[0] as usize..change.at[1] as usize];
        self.rows.sort_unstable_by(|left, right| {
            left.slice.cmp(&right.slice).then_with(|| entry(left).cmp(entry(right)))
        });
        let mut builder = RunBuilder::default();
        for change in &self.rows {
            builder.push(Version {
                slice: change.slice,
                entry: entry(change),
                include: &bytes[change.at[1] as usize..change.at[2] as usize],
                epoch,
                tombstone: change.tombstone,
            });
        }
        builder.finish()
    }
}
