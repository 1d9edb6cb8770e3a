//! fjall: an LSM tree with two keyspaces, one for the forward and one for the back index.

use std::collections::BTreeMap;
use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::workload::{Documents, Id, Key, entry};
use super::{Engine, Outcome};

/// fjall under measurement.
pub struct Fjall {
    database: Database,
    forward: Keyspace,
    back: Keyspace,
}

impl Fjall {
    /// Creates a database. The block cache gets the whole memory limit; the memtables take more, as
    /// by default.
    pub fn open(dir: &Path, memory_bytes: u64) -> Outcome<Self> {
        let database = Database::builder(dir).cache_size(memory_bytes).open()?;
        let forward = database.keyspace("forward", KeyspaceCreateOptions::default)?;
        let back = database.keyspace("back", KeyspaceCreateOptions::default)?;
        Ok(Self { database, forward, back })
    }
}

impl Engine for Fjall {
    fn write(&mut self, mut documents: Documents, replace: bool) -> Outcome<()> {
        while documents.left() > 0 {
            let mut batch = self.database.batch();
            // Reads do not see a batch before its commit, and a batch may write a document twice.
            let mut written: BTreeMap<Id, Key> = BTreeMap::new();
            for (id, key) in documents.batch() {
                if replace {
                    let old = match written.insert(id, key) {
                        Some(old) => Some(old),
                        None => self.back.get(id)?.map(|old| old[..].try_into()).transpose()?,
                    };
                    if let Some(old) = old {
                        batch.remove(&self.forward, entry(&id, &old));
                    }
                }
                batch.insert(&self.forward, entry(&id, &key), []);
                batch.insert(&self.back, id, key);
            }
            batch.commit()?;
        }
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }

    fn scan_all(&mut self) -> Outcome<u64> {
        let (mut entries, mut bytes) = (0, 0);
        for found in self.forward.iter() {
            bytes += found.key()?.len();
            entries += 1;
        }
        std::hint::black_box(bytes);
        Ok(entries)
    }

    fn scan_100(&mut self, from: Key) -> Outcome<u64> {
        let (mut entries, mut bytes) = (0, 0);
        for found in self.forward.range(from..).take(100) {
            bytes += found.key()?.len();
            entries += 1;
        }
        std::hint::black_box(bytes);
        Ok(entries)
    }

    fn compact(&mut self) -> Outcome<()> {
        for keyspace in [&self.forward, &self.back] {
            keyspace.rotate_memtable_and_wait()?;
            keyspace.major_compact()?;
        }
        Ok(())
    }
}
