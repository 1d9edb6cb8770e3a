//! A build in progress: the documents of the backfill snapshot and what the epochs since have said of
//! them. The maintenance stream begins at or before the snapshot's cut, so both may speak of one
//! document; the higher seqno wins, and an empty state counts, since it is how a deletion is
//! remembered.

use proto::Result;
use proto::ids::{Epoch, Generation, IndexId};
use proto::mutation::{IndexKeys, KeyVersionsReader, KeyVersionsWriter, MutationKind};

use super::back_index::{BackIndex, FixedMap};
use super::run::{Run, RunBuilder, Version};

/// What is known of each document so far.
#[derive(Default)]
pub struct Build {
    documents: FixedMap<Box<str>, State>,
    bytes: usize,
}

struct State {
    seqno: u64,
    /// Packed key-versions of this document and index alone.
    packed: Box<[u8]>,
}

impl Build {
    /// Takes in packed key-versions (absolute seqnos) for one index.
    pub fn add(&mut self, index: IndexId, generation: Generation, body: &[u8]) -> Result<()> {
        for versions in KeyVersionsReader::new(body) {
            let versions = versions?;
            let mine = versions
                .indexes()
                .find(|keys| (keys.index, keys.generation) == (index, generation));
            if let Some(keys) = mine {
                self.set(versions.id, versions.seqno_minus_base, &keys);
            }
        }
        Ok(())
    }

    /// Takes in the state of one document.
    pub fn set(&mut self, id: &str, seqno: u64, keys: &IndexKeys<'_>) {
        let known = self.documents.get(id).map(|state| state.seqno);
        if known.is_some_and(|known| known > seqno) {
            return;
        }
        let packed: Box<[u8]> = pack(id, seqno, keys).into();
        self.bytes += packed.len() + id.len();
        if let Some(old) = self.documents.insert(id.into(), State { seqno, packed }) {
            self.bytes -= old.packed.len() + id.len();
        }
    }

    /// Bytes of memory.
    pub fn size(&self) -> usize {
        self.bytes + 40 * self.documents.capacity()
    }

    /// The documents in pieces of packed key-versions, sorted by id, for the log.
    pub fn parts(&self, bytes_max: usize) -> Vec<Vec<u8>> {
        let mut parts = vec![Vec::new()];
        for state in self.sorted() {
            if parts.last().is_some_and(|part| part.len() >= bytes_max) {
                parts.push(Vec::new());
            }
            if let Some(part) = parts.last_mut() {
                part.extend_from_slice(&state.packed);
            }
        }
        parts
    }

    fn sorted(&self) -> Vec<&State> {
        let mut documents: Vec<_> = self.documents.iter().collect();
        documents.sort_unstable_by(|left, right| left.0.cmp(right.0));
        documents.into_iter().map(|(_, state)| state).collect()
    }

    /// The runs (one, unless it would be too large) and the back index that these documents make, as of
    /// an epoch.
    pub fn finish(&self, epoch: Epoch) -> Result<(Vec<Run>, BackIndex)> {
        let mut back = BackIndex::default();
        let mut entries: Vec<(u16, Vec<u8>, &[u8])> = Vec::new();
        for state in self.documents.values() {
            for versions in KeyVersionsReader::new(&state.packed) {
                let versions = versions?;
                for keys in versions.indexes() {
                    back.set(versions.id, &keys);
                    for entry in keys.entries() {
                        let bytes = [entry.key, versions.id.as_bytes()].concat();
                        entries.push((entry.slice.0, bytes, entry.include));
                    }
                }
            }
        }
        entries.sort_unstable();
        let (mut runs, mut builder) = (Vec::new(), RunBuilder::default());
        for (slice, entry, include) in &entries {
            if builder.is_full() {
                runs.extend(std::mem::take(&mut builder).finish());
            }
            let slice = proto::ids::SliceNo(*slice);
            builder.push(Version { slice, entry, include, epoch, tombstone: false });
        }
        runs.extend(builder.finish());
        Ok((runs, back))
    }
}

fn pack(id: &str, seqno: u64, keys: &IndexKeys<'_>) -> Vec<u8> {
    let mut writer = KeyVersionsWriter::default();
    writer.mutation(seqno, MutationKind::Upsert, id, 1);
    writer.index(keys.index, keys.generation, keys.entries);
    for entry in keys.entries() {
        writer.entry(entry.slice, entry.key, entry.include);
    }
    writer.finish().into()
}
