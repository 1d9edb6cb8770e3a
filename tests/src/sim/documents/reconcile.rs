//! The comparison of a store with its mirror, after the store was opened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use projector::testing::{
    BucketRecord, DamagedBucket, DocumentStore, LogExtent, LogRange, Mutation, StoredDocument,
    StoredId,
};
use proto::Result;
use proto::model::ids::{BucketId, Seqno, VbucketId};

use super::contents::Contents;
use super::mirror::{Known, StoreChange};

/// The size of a piece in which a log or a snapshot is read, in bytes.
const PIECE_BYTES: usize = 4 << 10;

/// The contents of a store, as they were read.
pub struct Found {
    cas: u64,
    ids: BTreeMap<BucketId, StoredId>,
    buckets: BTreeMap<BucketId, FoundBucket>,
    /// The buckets that are damaged.
    pub(super) damaged: BTreeMap<BucketId, DamagedBucket>,
}

/// The contents of a bucket in a store, as they were read.
struct FoundBucket {
    record: BucketRecord,
    ends: Vec<Seqno>,
    extents: Vec<LogExtent>,
    logs: Vec<Vec<Arc<Mutation>>>,
    documents: Vec<StoredDocument>,
}

impl Found {
    /// Reads the contents of a store.
    pub fn read(store: &dyn DocumentStore) -> Result<Self> {
        let read = |(record, ends)| {
            let of_bucket = FoundBucket::read(store, record, ends)?;
            Ok((of_bucket.record.info.id, of_bucket))
        };
        Ok(Self {
            cas: store.catalog_cas()?,
            ids: store.unique_ids()?,
            damaged: store.damaged()?,
            buckets: store.buckets()?.into_iter().map(read).collect::<Result<_>>()?,
        })
    }
}

impl FoundBucket {
    fn read(store: &dyn DocumentStore, record: BucketRecord, ends: Vec<Seqno>) -> Result<Self> {
        let bucket = record.info.id;
        let vbuckets = (0..record.info.vbuckets).map(VbucketId);
        let logs = vbuckets.map(|vbucket| log(store, bucket, vbucket)).collect::<Result<_>>()?;
        let (mut snapshot, mut documents) = (store.snapshot(bucket)?, Vec::new());
        loop {
            let piece = snapshot.next_chunk(PIECE_BYTES)?;
            if piece.is_empty() {
                break;
            }
            documents.extend(piece);
        }
        Ok(Self { record, ends, extents: store.extents(bucket)?, logs, documents })
    }
}

/// Returns the retained log of a vbucket.
fn log(
    store: &dyn DocumentStore,
    bucket: BucketId,
    vbucket: VbucketId,
) -> Result<Vec<Arc<Mutation>>> {
    let mut found: Vec<Arc<Mutation>> = Vec::new();
    loop {
        let after = found.last().map_or(Seqno(0), |mutation| mutation.seqno);
        let range = LogRange { bucket, vbucket, after, to: Seqno(u64::MAX) };
        let piece = store.read_log(range, PIECE_BYTES)?;
        if piece.is_empty() {
            return Ok(found);
        }
        found.extend(piece);
    }
}

/// The outcome of a comparison.
#[derive(Default)]
pub(super) struct Settled {
    /// The indexes of the changes in doubt that are stored, in order.
    pub(super) kept: Vec<usize>,
    /// The differences that no change in doubt explains.
    pub(super) differences: Vec<String>,
}

/// Determines which changes in doubt a store contains.
pub(super) fn settle(known: &Known, doubts: &[&StoreChange], found: &Found) -> Settled {
    let mut settled = Settled::default();
    let of_manifest = |n: &usize| !matches!(doubts[*n], StoreChange::Bucket(..));
    let of_manifest: Vec<usize> = (0..doubts.len()).filter(of_manifest).collect();
    let mut manifest = Known { cas: known.cas, ids: known.ids.clone(), ..Known::default() };
    let empty = |(bucket, contents): (&BucketId, &Contents)| {
        (*bucket, Contents::new(contents.record.clone()))
    };
    manifest.buckets = known.buckets.iter().map(empty).collect();
    match choose(&manifest, &of_manifest, doubts, |known| manifest_differs(known, found)) {
        Ok(kept) => settled.kept.extend(kept),
        Err(why) => settled.differences.push(why),
    }
    let mut known = known.clone();
    for n in &settled.kept {
        // A new catalog fits always.
        let _ = known.apply(doubts[*n]);
    }
    for (bucket, has) in &found.buckets {
        let Some(contents) = known.buckets.get(bucket) else { continue };
        let mine = |n: &usize| matches!(doubts[*n], StoreChange::Bucket(of, _) if of == bucket);
        let mine: Vec<usize> = (0..doubts.len()).filter(mine).collect();
        let alone = Known { buckets: [(*bucket, contents.clone())].into(), ..Known::default() };
        match choose(&alone, &mine, doubts, |known| differs(&known.buckets[bucket], has)) {
            Ok(kept) => settled.kept.extend(kept),
            Err(why) => settled.differences.push(format!("bucket {bucket}: {why}")),
        }
    }
    settled
}

/// The maximum number of changes in doubt of one store. A process ends when its store fails, so
/// only the changes in progress are in doubt. All subsets are tried, so this also limits the cost.
const IN_DOUBT_MAX: usize = 16;

/// Returns the changes in doubt, and their order, that explain all differences; otherwise the
/// difference without any of them.
fn choose(
    known: &Known,
    of: &[usize],
    doubts: &[&StoreChange],
    differs: impl Fn(&Known) -> Option<String>,
) -> std::result::Result<Vec<usize>, String> {
    if of.len() > IN_DOUBT_MAX {
        return Err(format!("{} changes are in doubt: a store that failed was used on", of.len()));
    }
    for order in orders(of) {
        let mut after = known.clone();
        let fits = order.iter().all(|n| after.apply(doubts[*n]).is_ok());
        if fits && differs(&after).is_none() {
            return Ok(order);
        }
    }
    let what = differs(known).unwrap_or_default();
    let in_doubt: Vec<&StoreChange> = of.iter().map(|n| doubts[*n]).collect();
    Err(format!("{what}; in doubt were {in_doubt:?}"))
}

/// Returns all subsets of a few changes in all orders; of many changes only in the given order.
fn orders(of: &[usize]) -> Vec<Vec<usize>> {
    let mut all: BTreeSet<Vec<usize>> = [Vec::new()].into();
    for _ in of {
        let longer = all.iter().flat_map(|order| {
            let fits = |n: &&usize| {
                let is_last = order.last().is_none_or(|last| last < *n);
                !order.contains(n) && (of.len() <= 3 || is_last)
            };
            of.iter().filter(fits).map(|n| order.iter().chain([n]).copied().collect())
        });
        let longer: Vec<Vec<usize>> = longer.collect();
        all.extend(longer);
    }
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by_key(Vec::len);
    all
}

/// Returns a text about a difference in the buckets, their ids or the catalog.
fn manifest_differs(known: &Known, found: &Found) -> Option<String> {
    let must: Vec<BucketId> = known.buckets.keys().copied().collect();
    let has: BTreeSet<BucketId> =
        found.buckets.keys().chain(found.damaged.keys()).copied().collect();
    let has: Vec<BucketId> = has.into_iter().collect();
    if must != has {
        return Some(format!("the store has buckets {has:?}, not {must:?}"));
    }
    if (known.cas, &known.ids) != (found.cas, &found.ids) {
        return Some(format!(
            "the store has catalog {} and ids {:?}, not {} and {:?}",
            found.cas, found.ids, known.cas, known.ids
        ));
    }
    None
}

/// Returns a text about a difference in a bucket.
fn differs(must: &Contents, has: &FoundBucket) -> Option<String> {
    for (at, found) in has.logs.iter().enumerate() {
        let extent = must.extent(at);
        let expected = must.retained(at);
        let is_lost =
            |mutation: &&Arc<Mutation>| !found.iter().any(|found| is_same(found, mutation));
        if let Some(lost) = expected.iter().find(is_lost) {
            return Some(format!(
                "the store lost an acknowledged mutation of vbucket {at}, seqno {}: it has {:?}, not {extent:?}",
                lost.seqno, has.extents[at]
            ));
        }
        let is_new =
            |mutation: &&Arc<Mutation>| !expected.iter().any(|known| is_same(known, mutation));
        if let Some(new) = found.iter().find(is_new) {
            return Some(format!("the store has {new:?}, which it must not have: {extent:?}"));
        }
        if has.extents[at] != extent || has.ends[at] != extent.end {
            let (has, end) = (has.extents[at], has.ends[at]);
            return Some(format!("vbucket {at} has {has:?} and ends at {end}, not {extent:?}"));
        }
    }
    if has.record != must.record {
        return Some(format!("the store has {:?}, not {:?}", has.record, must.record));
    }
    documents_differ(must, has)
}

fn documents_differ(must: &Contents, has: &FoundBucket) -> Option<String> {
    let stored = has.documents.iter();
    let found: BTreeMap<&str, _> = stored.map(|s| (&*s.id, (s.seqno, &s.document))).collect();
    for (id, (seqno, document)) in &must.documents {
        let of_id = found.get(&**id);
        if of_id != Some(&(*seqno, document)) {
            return Some(format!("document {id} is {of_id:?}, not {document:?} of seqno {seqno}"));
        }
    }
    if found.len() != has.documents.len() {
        return Some("a document is shown twice".into());
    }
    let extra = found.keys().find(|id| !must.documents.contains_key(**id));
    extra.map(|id| format!("document {id} is there, which must not be"))
}

/// True if two mutations are equal.
pub(super) fn is_same(one: &Mutation, other: &Mutation) -> bool {
    (one.seqno, one.kind, &one.id, &one.document)
        == (other.seqno, other.kind, &other.id, &other.document)
}
