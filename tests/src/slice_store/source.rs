//! The documents of a history and their change streams: a complete log of mutations for each
//! vbucket. From the logs any epoch can be made again, and a backfill snapshot can be taken at any
//! cut; a rollback truncates the logs.

use std::collections::BTreeMap;

use bytes::Bytes;
use proto::model::cut::{Cut, Position};
use proto::model::ids::{Seqno, VbucketId, Vbuuid, vbucket_of};
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};
use storage::VbucketMutations;

use super::shape::Known;

/// The number of vbuckets of the bucket.
pub const VBUCKETS: u16 = 3;

/// A write or a removal of a document; its seqno is its position in the log, from 1.
struct Mutation {
    id: String,
    /// The content from which the entries are derived; `None` for a removal.
    content: Option<u64>,
}

/// The source, with all documents and their logs.
pub struct Source {
    logs: Vec<Vec<Mutation>>,
    branch: Vbuuid,
}

impl Default for Source {
    fn default() -> Self {
        let logs = (0..VBUCKETS).map(|_| Vec::new()).collect();
        Self { logs, branch: Vbuuid(1) }
    }
}

impl Source {
    /// Writes or removes a document.
    pub fn write(&mut self, id: String, content: Option<u64>) {
        let vbucket = vbucket_of(&id, VBUCKETS);
        self.logs[usize::from(vbucket.0)].push(Mutation { id, content });
    }

    /// The cut of all mutations so far.
    pub fn head(&self) -> Cut {
        let end =
            |log: &Vec<Mutation>| Position { vbuuid: self.branch, seqno: Seqno(log.len() as u64) };
        Cut::from_positions(self.logs.iter().map(end).collect())
    }

    /// Returns a random cut between `from` and the head.
    pub fn cut_after(&self, from: &Cut, random: &mut fastrand::Rng) -> Cut {
        let position = |(vbucket, head): (VbucketId, Position)| {
            let seqno = Seqno(random.u64(from.get(vbucket).seqno.0..=head.seqno.0));
            Position { seqno, ..head }
        };
        Cut::from_positions(self.head().iter().map(position).collect())
    }

    /// Truncates the logs at a cut; later writes are on another branch.
    pub fn rewind(&mut self, cut: &Cut) {
        for (vbucket, log) in self.logs.iter_mut().enumerate() {
            log.truncate(cut.get(VbucketId(vbucket as u16)).seqno.0 as usize);
        }
        self.branch.0 += 1;
    }

    /// The documents at a cut, each with the seqno of its last change and its content.
    pub fn documents(&self, cut: &Cut) -> BTreeMap<String, (u64, u64)> {
        let mut documents = BTreeMap::new();
        for (vbucket, position) in cut.iter() {
            let log = &self.logs[usize::from(vbucket.0)];
            for (seqno, mutation) in (1..=position.seqno.0).zip(log) {
                match mutation.content {
                    Some(content) => documents.insert(mutation.id.clone(), (seqno, content)),
                    None => documents.remove(&mutation.id),
                };
            }
        }
        documents
    }

    /// Returns pieces of the streams for the mutations between two cuts. Like frames, a piece may
    /// begin before and end after the required range.
    pub fn pieces<'a>(
        &self,
        from: &Cut,
        to: &Cut,
        indexes: impl Iterator<Item = &'a Known> + Clone,
        random: &mut fastrand::Rng,
    ) -> Vec<VbucketMutations> {
        let mut pieces = Vec::new();
        for (vbucket, end) in to.iter() {
            let log = &self.logs[usize::from(vbucket.0)];
            let (mut after, end) = (from.get(vbucket).seqno.0, end.seqno.0);
            while after < end {
                let to = if random.u8(0..4) > 0 { end } else { random.u64(after + 1..=end) };
                let base = after.saturating_sub(random.u64(0..3));
                let last = (to + random.u64(0..3)).min(log.len() as u64);
                let mut writer = KeyVersionsWriter::default();
                for seqno in base + 1..=last {
                    let mutation = &log[seqno as usize - 1];
                    pack(&mut writer, seqno - base, mutation, indexes.clone());
                }
                let body = writer.finish();
                pieces.push(VbucketMutations {
                    body,
                    base: Seqno(base),
                    after: Seqno(after),
                    to: Seqno(to),
                });
                after = to;
            }
        }
        pieces
    }
}

/// Packs the entries of a document after a mutation, in each index.
fn pack<'a>(
    writer: &mut KeyVersionsWriter,
    seqno_minus_base: u64,
    mutation: &Mutation,
    indexes: impl Iterator<Item = &'a Known> + Clone,
) {
    let kind = match mutation.content {
        Some(_) => MutationKind::Upsert,
        None => MutationKind::Deletion,
    };
    writer.mutation(seqno_minus_base, kind, &mutation.id, indexes.clone().count());
    for known in indexes {
        pack_state(writer, known, &mutation.id, mutation.content);
    }
}

fn pack_state(writer: &mut KeyVersionsWriter, known: &Known, id: &str, content: Option<u64>) {
    let entries = content.map_or(Vec::new(), |content| known.entries(id, content));
    writer.index(known.shape.id, entries.len());
    for (slice, key, include) in &entries {
        writer.entry(*slice, key, include);
    }
}

/// Returns packed documents of a backfill snapshot.
pub fn pack_documents(known: &Known, documents: &[(String, (u64, u64))]) -> Bytes {
    let mut writer = KeyVersionsWriter::default();
    for (id, (seqno, content)) in documents {
        writer.mutation(*seqno, MutationKind::Upsert, id, 1);
        pack_state(&mut writer, known, id, Some(*content));
    }
    writer.finish()
}
