//! Random histories of a change log on simulated files, compared with a naive model.

use std::path::PathBuf;

use proto::env::real::SeededRandom;
use proto::env::{Env, Random as _, sim};
use proto::model::ids::{Seqno, VbucketId};
use storage::log::Lsn;

use super::naive_model::{
    Model, ModelVbucket, Op, VBUCKETS, add, apply, check_range, ops_of, ordered,
};
use crate::change_log::*;

/// A change log on simulated files, driven by a seed, compared with a model.
pub(super) struct History {
    pub(super) env: Env,
    pub(super) fs: sim::SimFs,
    pub(super) dir: PathBuf,
    random: SeededRandom,
    pub(super) options: ChangeLogOptions,
    /// All groups, each with the LSN of its end and the model after it.
    pub(super) groups: Vec<(Lsn, Vec<Op>, Model)>,
    /// Number of groups that are synced.
    pub(super) synced: usize,
    /// The durable checkpoint, and the number of groups that it covers.
    pub(super) checkpoint: (LogState, usize),
    /// The branch of new mutations.
    vbuuid: u64,
    /// The name of the history in failure messages.
    pub(super) name: String,
    group: GroupBuilder,
}

impl History {
    pub(super) fn new(seed: u64) -> Self {
        let (env, _, fs) = sim::world(seed);
        let options = ChangeLogOptions {
            segment_bytes: 300 + 500 * (seed % 4),
            open_files: None,
            index_cache: IndexCache::new(if seed.is_multiple_of(2) { 1 << 20 } else { 300 }),
        };
        Self {
            env,
            fs,
            dir: PathBuf::from("/data/bucket/log"),
            random: SeededRandom::new(!seed),
            options,
            groups: Vec::new(),
            synced: 0,
            checkpoint: (LogState::new(VBUCKETS), 0),
            vbuuid: 1,
            name: format!("seed {seed}"),
            group: GroupBuilder::default(),
        }
    }

    pub(super) fn below(&self, n: u64) -> u64 {
        self.random.next_u64() % n
    }

    pub(super) fn model(&self) -> Model {
        let last = self.groups.last().map(|(_, _, model)| model.clone());
        last.unwrap_or_else(|| vec![ModelVbucket::default(); usize::from(VBUCKETS)])
    }

    /// Returns a random group that the model's state allows.
    fn ops(&mut self, model: &mut Model) -> Vec<Op> {
        let mut ops = Vec::new();
        for n in 0..=self.below(5) {
            let vbucket = self.below(u64::from(VBUCKETS)) as u16;
            let of = &model[usize::from(vbucket)];
            let (purged, end) = (of.purged, of.end);
            // A look back must not read mutations of the group itself.
            let op = match self.below(24) {
                0 => Op::Record(self.below(1000)),
                1 if n == 0 => Op::Rewind(vbucket, purged + self.below(end - purged + 1)),
                2 if self.below(3) == 0 => Op::Remove(vbucket),
                3 if n == 0 && self.below(4) == 0 => Op::Rewind(vbucket, 0),
                4 | 5 if end == 0 => Op::Begin(vbucket, 1 + self.below(50)),
                6 => {
                    let document =
                        ("copied".into(), self.below(9), vec![7; self.below(90) as usize]);
                    Op::Documents(vbucket, vec![document])
                }
                7 | 8 if n == 0 => {
                    let points = model.iter().zip(0..).filter(|_| self.below(3) > 0);
                    let point = |(of, vbucket): (&ModelVbucket, u16)| {
                        (vbucket, of.purged + self.below(of.end - of.purged + 1))
                    };
                    Op::Purge(points.map(point).collect())
                }
                12 => Op::Transaction(self.below(1000)),
                9 => {
                    self.vbuuid += 1;
                    continue;
                }
                kind => {
                    let id = format!("id-{}", self.below(50));
                    let len = self.below(if kind == 10 { 900 } else { 60 });
                    let document = (kind != 11).then(|| vec![self.below(256) as u8; len as usize]);
                    let vbuuid = self.vbuuid;
                    Op::Mutation { vbucket, vbuuid, seqno: end + 1, id, document }
                }
            };
            apply(model, &op);
            ops.push(op);
        }
        ops
    }

    /// Appends a random group; returns the log's error.
    pub(super) fn append(&mut self, log: &ChangeLog) -> proto::Result<()> {
        let mut model = self.model();
        let ops = self.ops(&mut model);
        if ops.is_empty() {
            return Ok(());
        }
        self.group.clear();
        ops.iter().for_each(|op| add(&mut self.group, op));
        // A failed append may have reached the disk.
        self.groups.push((Lsn::MAX, ordered(&ops), model));
        let place = log.append(&self.group)?;
        let at = self.groups.len() - 1;
        self.groups[at].0 = place.end;
        Ok(())
    }

    /// Runs some steps; ends early if the log fails.
    pub(super) fn work(&mut self, log: &ChangeLog, steps: u64) -> proto::Result<()> {
        for _ in 0..steps {
            self.append(log)?;
            if self.below(3) == 0 {
                log.sync()?;
                self.synced = self.groups.len();
                if self.below(2) == 0 {
                    log.record_synced_end()?;
                }
                self.check_reads(log);
            }
            // The state is that of the visible part.
            if self.below(5) == 0 && self.synced == self.groups.len() {
                self.checkpoint = (log.state(), self.synced);
            }
            if self.below(5) == 0 {
                log.release(self.checkpoint.0.from)?;
            }
        }
        Ok(())
    }

    /// Opens the log from the checkpoint, and checks that it has all synced groups, and possibly
    /// some later groups in order. Removes the groups that a crash has lost from the model.
    pub(super) fn open(&mut self) -> proto::Result<ChangeLog> {
        let log = self.open_only()?;
        self.check_reads(&log);
        Ok(log)
    }

    /// Like [`Self::open`], without a comparison of the reads.
    pub(super) fn open_only(&mut self) -> proto::Result<ChangeLog> {
        let mut replayed: Vec<(Lsn, Vec<Op>)> = Vec::new();
        let (state, known) = self.checkpoint.clone();
        let (env, dir, options) = (self.env.clone(), self.dir.clone(), self.options.clone());
        let log = ChangeLog::open(&env, &dir, &options, &state, &mut |event, place| {
            match replayed.last_mut() {
                Some((end, ops)) if *end == place.group.end => ops.extend(ops_of(&event)),
                _ => replayed.push((place.group.end, ops_of(&event))),
            }
            Ok(())
        })?;
        let behind = &self.groups[known..];
        assert!(replayed.len() <= behind.len(), "{}: more groups than were appended", self.name);
        for ((end, ops), (expected_end, expected, _)) in replayed.iter().zip(behind) {
            assert!(end == expected_end || *expected_end == Lsn::MAX);
            assert_eq!(&ordered(ops), expected, "{}: a group is not whole", self.name);
        }
        let count = known + replayed.len();
        let (name, synced) = (&self.name, self.synced);
        assert!(count >= synced, "{name}: synced groups are lost: {count} of {synced}");
        self.groups.truncate(count);
        if let (Some(last), Some((end, _))) = (self.groups.last_mut(), replayed.last()) {
            last.0 = *end;
        }
        // The groups that recovery keeps are synced.
        self.synced = count;
        Ok(log)
    }

    /// Compares all readable data with the model.
    pub(super) fn check_reads(&self, log: &ChangeLog) {
        if let Err(error) = self.reads_agree(log) {
            let is_fault = self.fs.is_crashed() || error.message.contains("simulated fault");
            assert!(is_fault, "{}: {error}", self.name);
        }
    }

    pub(super) fn reads_agree(&self, log: &ChangeLog) -> proto::Result<()> {
        let model = self.model();
        for (extent, (of, vbucket)) in log.extents().iter().zip(model.iter().zip(0..)) {
            let expected = (of.purged, of.end, of.bytes_to(of.purged), of.bytes_to(of.end));
            let found = (extent.purged.0, extent.end.0, extent.bytes_purged, extent.bytes_end);
            assert_eq!(found, expected, "{}: vbucket {vbucket}", self.name);
            let vbucket = VbucketId(vbucket);
            let to = self.below(of.end + 3);
            assert_eq!(log.bytes_to(vbucket, Seqno(to))?, of.bytes_to(to), "bytes to {to}");
            let range = VbucketRange { vbucket, after: Seqno(0), to: Seqno(u64::MAX) };
            check_range(of, log.read(range, usize::MAX)?, 0, u64::MAX, usize::MAX);
            let (after, to) = (self.below(of.end + 2), self.below(of.end + 2));
            let bytes = self.below(400) as usize;
            let range = VbucketRange { vbucket, after: Seqno(after), to: Seqno(to) };
            check_range(of, log.read(range, bytes)?, after, to, bytes);
        }
        Ok(())
    }
}
