//! redb: a copy-on-write B-tree with two tables, one for the forward and one for the back index.

use std::path::Path;

use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};

use super::workload::{Documents, Key, entry};
use super::{Engine, Outcome};

const FORWARD: TableDefinition<'_, &[u8; 24], ()> = TableDefinition::new("forward");
const BACK: TableDefinition<'_, &[u8; 16], &[u8; 8]> = TableDefinition::new("back");

/// redb under measurement.
pub struct Redb {
    database: Database,
}

impl Redb {
    /// Creates a database.
    pub fn open(dir: &Path, memory_bytes: u64) -> Outcome<Self> {
        let cache_bytes = usize::try_from(memory_bytes)?;
        let database = Database::builder().set_cache_size(cache_bytes).create(dir.join("redb"))?;
        let begin = database.begin_write()?;
        begin.open_table(FORWARD)?;
        begin.open_table(BACK)?;
        begin.commit()?;
        Ok(Self { database })
    }
}

impl Engine for Redb {
    fn write(&mut self, mut documents: Documents, replace: bool) -> Outcome<()> {
        while documents.left() > 0 {
            let mut write = self.database.begin_write()?;
            write.set_durability(Durability::None)?;
            {
                let (mut forward, mut back) = (write.open_table(FORWARD)?, write.open_table(BACK)?);
                for (id, key) in documents.batch() {
                    let old: Option<Key> = back.insert(&id, &key)?.map(|old| *old.value());
                    if let Some(old) = old.filter(|_| replace) {
                        forward.remove(&entry(&id, &old))?;
                    }
                    forward.insert(&entry(&id, &key), ())?;
                }
            }
            write.commit()?;
        }
        // A durable commit makes all earlier commits durable too.
        Ok(self.database.begin_write()?.commit()?)
    }

    fn scan_all(&mut self) -> Outcome<u64> {
        let table = self.database.begin_read()?.open_table(FORWARD)?;
        let (mut entries, mut bytes) = (0, 0);
        for found in table.iter()? {
            bytes += found?.0.value().len();
            entries += 1;
        }
        std::hint::black_box(bytes);
        Ok(entries)
    }

    fn scan_100(&mut self, from: Key) -> Outcome<u64> {
        let table = self.database.begin_read()?.open_table(FORWARD)?;
        let (mut entries, mut bytes) = (0, 0);
        for found in table.range::<&[u8; 24]>(&entry(&[0; 16], &from)..)?.take(100) {
            bytes += found?.0.value().len();
            entries += 1;
        }
        std::hint::black_box(bytes);
        Ok(entries)
    }

    fn compact(&mut self) -> Outcome<()> {
        self.database.compact()?;
        Ok(())
    }
}
