//! Histories: a sequence of steps that adds versions to a table as the owner of a bucket does,
//! flushes, merges, crashes and reopens it, and compares each read with the model.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use proto::Error;
use proto::Result;
use proto::env::sim::SimFs;
use proto::model::ids::{Seqno, VbucketId, vbucket_of};

use super::model::{Model, Row};
use super::steps::{Fate, Kind, Step, Told};
use super::*;

/// Number of different ids.
const IDS: u32 = 24;

/// A record of the simulated change log.
#[derive(Clone, Debug)]
enum Record {
    Write(Vec<(u64, String, u64, Option<Vec<u8>>)>),
    Dead(Vec<DeadVersions>),
}

/// The state of a history: the owner of a bucket with a table.
pub struct History {
    fs: SimFs,
    log: Vec<Record>,
    next_place: u64,
    ends: Vec<u64>,
    floors: Vec<u64>,
    model: Model,
    /// The encoded manifest on disk.
    durable: Vec<u8>,
    walks: Vec<(DocumentWalk, VecDeque<Row>)>,
    /// Counters of events, with which the tests check that they cover the cases.
    pub told: Told,
}

fn id(n: u32) -> String {
    format!("user::{:03}", n % IDS)
}

/// The reason for which a run of the table has ended.
enum End {
    /// No steps are left.
    Done,
    Reopen,
    Crash,
}

type Steps<'a> = std::slice::Iter<'a, Step>;

impl History {
    pub fn new(seed: u64) -> Self {
        let durable = postcard::to_stdvec(&TableManifest::new(7)).unwrap();
        Self {
            fs: SimFs::new(seed),
            log: Vec::new(),
            next_place: 1,
            ends: vec![0; usize::from(VBUCKETS)],
            floors: vec![0; usize::from(VBUCKETS)],
            model: Model::default(),
            durable,
            walks: Vec::new(),
            told: Told::default(),
        }
    }

    /// Runs all steps.
    pub fn run(&mut self, steps: &[Step]) {
        let mut steps = steps.iter();
        loop {
            let manifest: TableManifest = postcard::from_bytes(&self.durable).unwrap();
            let opened = open(&self.fs, &manifest);
            let Ok(table) = self.uncrashed(opened) else {
                self.restart();
                continue;
            };
            self.check_files(&manifest);
            self.replay(&table);
            let end = self.take(&table, &mut steps, usize::MAX);
            self.walks.clear();
            match end {
                End::Done => {
                    self.check(&table, 3);
                    return;
                }
                End::Reopen => {}
                End::Crash => self.restart(),
            }
        }
    }

    fn restart(&mut self) {
        self.told.crashes += 1;
        if !self.fs.is_crashed() {
            self.fs.crash();
        }
        self.fs.restart();
    }

    /// Returns `End` for an error, which is accepted only if the machine is down.
    fn uncrashed<T>(&self, result: Result<T>) -> std::result::Result<T, End> {
        match result {
            Ok(value) => Ok(value),
            Err(_) if self.fs.is_crashed() => Err(End::Crash),
            Err(error) => panic!("{error:?}"),
        }
    }

    /// Checks that only files in the manifest exist, and that they are intact.
    fn check_files(&self, manifest: &TableManifest) {
        self.fs.disarm_faults();
        assert_eq!(files(&self.fs).len(), manifest.fragments().len());
        let fs: Arc<dyn FileSystem> = Arc::new(self.fs.clone());
        let found = verify(&fs, &dir(), manifest);
        assert!(found.is_empty(), "{found:?}");
    }

    fn replay(&self, table: &DocumentTable) {
        let covered = table.covered();
        for record in &self.log {
            match record {
                Record::Write(versions) if versions[0].0 >= covered => apply(table, versions),
                Record::Dead(dead) if dead[0].before >= covered => table.add_dead_versions(dead),
                _ => {}
            }
        }
        table.record_reached(self.next_place);
    }

    /// Runs up to `max` steps.
    fn take(&mut self, table: &DocumentTable, steps: &mut Steps<'_>, max: usize) -> End {
        for _ in 0..max {
            let Some(step) = steps.next() else { return End::Done };
            match self.step(table, step, steps) {
                Ok(()) => {}
                Err(end) => return end,
            }
        }
        End::Done
    }

    fn step(
        &mut self,
        table: &DocumentTable,
        step: &Step,
        steps: &mut Steps<'_>,
    ) -> std::result::Result<(), End> {
        match step {
            Step::Write(documents) => self.write(table, documents),
            Step::Rewind(vbuckets) => self.rewind(table, vbuckets),
            Step::Replace(vbucket, ids) => self.replace(table, vbucket % VBUCKETS, ids),
            Step::Raise(vbucket, by) => {
                let v = usize::from(vbucket % VBUCKETS);
                self.floors[v] = (self.floors[v] + by).min(self.ends[v]);
            }
            Step::Change(kind, between, fate) => {
                self.change(table, *kind, *between, *fate, steps)?;
            }
            Step::Walk(cut, after) => self.walk(table, *cut, after.map(id))?,
            Step::Read(walk, bytes) => self.read(*walk, *bytes)?,
            Step::Check(salt) => {
                if !self.fs.is_crashed() {
                    self.check(table, *salt);
                }
            }
            Step::Reopen => return Err(End::Reopen),
            Step::Crash(0) => return Err(End::Crash),
            Step::Crash(after) => self.fs.crash_at(self.fs.operations() + after),
        }
        if self.fs.is_crashed() { Err(End::Crash) } else { Ok(()) }
    }

    fn write(&mut self, table: &DocumentTable, documents: &[(u32, Option<u16>)]) {
        let mut versions = Vec::new();
        for (n, len) in documents {
            let id = id(*n);
            let v = usize::from(vbucket_of(&id, VBUCKETS).0);
            self.ends[v] += 1;
            versions.push(self.version(id, self.ends[v], *len));
        }
        self.feed(table, versions);
    }

    fn version(
        &mut self,
        id: String,
        seqno: u64,
        len: Option<u16>,
    ) -> (u64, String, u64, Option<Vec<u8>>) {
        let place = self.next_place;
        self.next_place += 1 + place % 3;
        let text =
            |len| format!("{{\"place\":{place},\"x\":\"{}\"}}", "x".repeat(usize::from(len)));
        (place, id, seqno, len.map(|len| text(len).into_bytes()))
    }

    fn feed(&mut self, table: &DocumentTable, versions: Vec<(u64, String, u64, Option<Vec<u8>>)>) {
        if versions.is_empty() {
            return;
        }
        for (_, id, seqno, document) in &versions {
            self.model.put(id, *seqno, document.clone());
        }
        apply(table, &versions);
        self.log.push(Record::Write(versions));
    }

    fn rewind(&mut self, table: &DocumentTable, vbuckets: &[(u16, u64)]) {
        let mut dead = Vec::new();
        for (vbucket, by) in vbuckets {
            let vbucket = vbucket % VBUCKETS;
            let v = usize::from(vbucket);
            self.ends[v] = self.ends[v].saturating_sub(*by).max(self.floors[v]);
            self.model.rewind(vbucket, self.ends[v]);
            dead.push((vbucket, self.ends[v]));
        }
        self.kill(table, &dead);
    }

    fn kill(&mut self, table: &DocumentTable, dead: &[(u16, u64)]) {
        let before = self.next_place;
        let dead = dead.iter().map(|(vbucket, after)| DeadVersions {
            vbucket: VbucketId(*vbucket),
            before,
            after: Seqno(*after),
        });
        let dead: Vec<_> = dead.collect();
        if dead.is_empty() {
            return;
        }
        self.told.dead += dead.len() as u64;
        // The next version may have the place of the rewind itself.
        table.add_dead_versions(&dead);
        self.log.push(Record::Dead(dead));
    }

    fn replace(&mut self, table: &DocumentTable, vbucket: u16, ids: &[u32]) {
        let v = usize::from(vbucket);
        self.kill(table, &[(vbucket, 0)]);
        self.model.rewind(vbucket, 0);
        let mut ids: Vec<String> = ids.iter().map(|n| id(*n)).collect();
        ids.retain(|id| vbucket_of(id, VBUCKETS).0 == vbucket);
        ids.sort();
        ids.dedup();
        let purged = 3 * ids.len() as u64;
        (self.floors[v], self.ends[v]) = (purged, purged);
        for (n, id) in ids.into_iter().enumerate() {
            // In the order of their ids, so in no order of their seqnos.
            let seqno = 1 + (n as u64 * 7 + 5) % purged.max(1);
            let version = self.version(id, seqno, Some(5));
            self.feed(table, vec![version]);
        }
    }

    fn change(
        &mut self,
        table: &DocumentTable,
        kind: Kind,
        between: usize,
        fate: Fate,
        steps: &mut Steps<'_>,
    ) -> std::result::Result<(), End> {
        let floors = self.floors.clone();
        let retention = || Retention { from: floors.into_iter().map(Seqno).collect() };
        let prepared = match kind {
            Kind::Flush => table.prepare_flush(retention),
            Kind::Merge => table.prepare_merge(retention),
            Kind::FullMerge => table.prepare_full_merge(retention),
            Kind::Neighbours(salt) => {
                table.prepare_merge_of(|tables| neighbours(tables.fragments.len(), salt), retention)
            }
        };
        let Some(change) = self.uncrashed(prepared)? else { return Ok(()) };
        match self.take(table, steps, between % 6) {
            End::Done => {}
            end => {
                // A process that ends does not clean up.
                std::mem::forget(change);
                return Err(end);
            }
        }
        self.settle(change, kind, fate);
        Ok(())
    }

    fn settle(&mut self, change: TableChange<'_>, kind: Kind, fate: Fate) {
        let (mut is_written, mut is_refused) = (true, false);
        match (fate, kind) {
            (Fate::Dropped, _) => return drop(change),
            (Fate::Failed, _) => (is_written, is_refused) = (false, true),
            (Fate::FailedAndWritten, _) => is_refused = true,
            (Fate::Installed, Kind::Flush) => self.told.flushes += 1,
            (Fate::Installed, _) => self.told.merges += 1,
        }
        let installed = change.install(|manifest| {
            if is_written {
                self.durable = postcard::to_stdvec(manifest).unwrap();
            }
            let refused = Error::internal("the manifest cannot be written");
            if is_refused { Err(refused) } else { Ok(()) }
        });
        assert_eq!(installed.is_err(), is_refused);
    }

    /// Returns a random readable cut: at or above the floors.
    fn cut(&self, salt: u64) -> Vec<u64> {
        let cut = self.floors.iter().zip(&self.ends).enumerate().map(|(v, (floor, end))| {
            let room = end - floor + 2;
            floor + (salt.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (8 * v)) % room
        });
        cut.collect()
    }

    fn walk(
        &mut self,
        table: &DocumentTable,
        cut: Option<u64>,
        after: Option<String>,
    ) -> std::result::Result<(), End> {
        let cut = cut.map(|salt| self.cut(salt));
        let seqnos = cut.as_ref().map(|cut| cut.iter().copied().map(Seqno).collect());
        let walk = self.uncrashed(table.walk(after.as_deref(), seqnos))?;
        let expected = self.model.rows(after.as_deref(), cut.as_deref());
        assert!(cut.is_some() || walk.documents_about() as usize + 5000 > expected.len());
        self.walks.push((walk, expected.into()));
        Ok(())
    }

    fn read(&mut self, walk: usize, bytes: usize) -> std::result::Result<(), End> {
        if self.walks.is_empty() {
            return Ok(());
        }
        let at = walk % self.walks.len();
        let chunk = self.walks[at].0.next_chunk(bytes);
        let chunk = self.uncrashed(chunk)?;
        for row in chunk.iter() {
            let expected = self.walks[at].1.pop_front();
            let found = (row.id.to_owned(), row.seqno.0, chunk.shared(&row).to_vec());
            assert_eq!(Some(found), expected);
            self.told.rows_walked += 1;
        }
        if chunk.is_empty() {
            assert_eq!(self.walks.swap_remove(at).1.pop_front(), None, "the walk ended too soon");
        }
        Ok(())
    }

    /// Compares reads of all single ids with the model.
    fn check(&mut self, table: &DocumentTable, salt: u64) {
        let cut = self.cut(salt);
        let seqnos: Vec<Seqno> = cut.iter().copied().map(Seqno).collect();
        let plain = |found: StoredVersion| (found.seqno.0, found.document.to_vec());
        let ids: Vec<String> = (0..IDS).map(id).chain(["nobody".to_owned()]).collect();
        let asked: Vec<&str> = ids.iter().map(String::as_str).collect();
        let Ok(many) = self.uncrashed(table.get_many(&asked, usize::MAX)) else { return };
        for (id, found) in ids.iter().zip(many) {
            let expected = self.model.get(id, None);
            assert_eq!(found.map(plain), expected, "{id}");
            let Ok(has) = self.uncrashed(table.contains(id)) else { return };
            assert_eq!(has, expected.is_some(), "{id}");
            let Ok(changed) = self.uncrashed(table.changed_at(id)) else { return };
            let floor = self.floors[usize::from(vbucket_of(id, VBUCKETS).0)];
            // A merge may have forgotten a deletion at or below the floor.
            let is_known = |seqno: &u64| has || *seqno > floor;
            let changed = changed.map(|seqno| seqno.0).filter(is_known);
            assert_eq!(changed, self.model.changed_at(id).filter(is_known), "{id}");
            let Ok(found) = self.uncrashed(table.get_at(id, &seqnos)) else { return };
            let expected = self.model.get(id, Some(&cut));
            assert_eq!(found.map(plain), expected, "{id} as of {cut:?}, floors {:?}", self.floors);
            self.told.cuts += 1;
        }
        let many = table.get_many_at(&asked, &seqnos, usize::MAX);
        let Ok(many) = self.uncrashed(many) else { return };
        let as_of = ids.iter().map(|id| self.model.get(id, Some(&cut)));
        assert!(many.into_iter().map(|found| found.map(plain)).eq(as_of), "as of {cut:?}");
    }
}

/// Returns a random range of neighbouring fragments; `None` if there are too few.
fn neighbours(fragments: usize, salt: u64) -> Option<Range<usize>> {
    let first = (salt as usize).checked_rem(fragments)?;
    let count = 1 + (salt >> 32) as usize % (fragments - first).min(4);
    Some(first..first + count)
}

fn apply(table: &DocumentTable, versions: &[(u64, String, u64, Option<Vec<u8>>)]) {
    let versions: Vec<VersionRef<'_>> = versions
        .iter()
        .map(|(place, id, seqno, document)| VersionRef {
            place: *place,
            id,
            seqno: Seqno(*seqno),
            document: document.as_deref(),
        })
        .collect();
    table.apply(&versions).unwrap();
}
