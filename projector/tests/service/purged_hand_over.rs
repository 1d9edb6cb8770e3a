//! Hand-overs of a vbucket with a purged log: its documents and its purge point are copied.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use projector::testing::{BucketRecord, DocumentStore, StoredDocument};
use proto::ErrorCode;
use proto::model::assignment::VbucketSet;
use proto::model::cut::Cut;
use proto::model::ids::*;
use proto::model::index::*;
use proto::rpc::api::*;
use proto::rpc::mutation::*;

use crate::common::*;
use crate::hand_over::*;

const VBUCKET: VbucketId = VbucketId(0);
/// The number of documents, each of which changes several times.
const DOCUMENTS: u64 = 40;

/// Returns a mutation of a document that changes repeatedly and is sometimes deleted.
fn change(seqno: u64) -> PushMutation {
    let mut mutation = pushed(1 + seqno % DOCUMENTS);
    mutation.position.seqno = Seqno(seqno);
    if seqno.is_multiple_of(7) {
        (mutation.kind, mutation.document) = (MutationKind::Deletion, Bytes::new());
    } else {
        mutation.document = Bytes::from(format!("{{\"n\":{seqno}}}"));
    }
    mutation
}

/// Returns the documents of the vbucket after the mutations up to a seqno.
fn expected(end: u64) -> BTreeMap<String, Bytes> {
    let mut documents = BTreeMap::new();
    for mutation in (1..=end).map(change) {
        match mutation.kind {
            MutationKind::Upsert => documents.insert(mutation.id, mutation.document),
            MutationKind::Deletion => documents.remove(&mutation.id),
        };
    }
    documents
}

/// Returns the documents of the vbucket in a store.
fn documents(world: &World) -> BTreeMap<String, Bytes> {
    let Ok(mut snapshot) = world.store.snapshot(PUSHED) else { return BTreeMap::new() };
    let all = snapshot.next_chunk(usize::MAX).expect("documents").into_iter();
    let here = all.filter(|stored| vbucket_of(&stored.id, VBUCKETS) == VBUCKET);
    here.map(|stored| (stored.id, stored.document)).collect()
}

async fn push(pair: &Pair, seqnos: std::ops::RangeInclusive<u64>) {
    pair.push_all(seqnos.map(change).collect()).await;
}

fn purge(world: &World, to: u64) {
    world.store.purge(PUSHED, &[(VBUCKET, Seqno(to))]).expect("purged");
}

/// Returns the request of an indexer that has the vbucket up to a seqno.
fn from(seqno: u64) -> SubscribeRequest {
    let mut cut = Cut::zero(VBUCKETS);
    cut.set(VBUCKET, at(seqno));
    SubscribeRequest { node: INDEXERS[0], bucket: PUSHED, from: Some(cut), last_epoch: Epoch(0) }
}

/// Reads a stream of the vbucket from one seqno to another.
async fn stream_from(pair: &Pair, seqno: u64, end: u64) -> Result<(), ErrorCode> {
    let subscribe = async || pair.source().subscribe(from(seqno)).await.ok();
    let mut stream = until("both know", subscribe).await;
    let first = stream.next().await.expect("it begins");
    first.map_err(|error| error.code)?;
    read_to(&mut stream, &mut { seqno }, end).await;
    Ok(())
}

/// Reads a backfill of the vbucket from its owner. Returns its cut and the number of documents.
async fn backfill(pair: &Pair) -> (Cut, usize) {
    let vbuckets: VbucketSet = [VBUCKET].into_iter().collect();
    let index = &pair.indexes[0];
    let mut count = 0;
    let mut cut = Cut::default();
    for node in INDEXERS {
        let request = BackfillRequest {
            node,
            index: index.local_id(),
            revision: index.revision,
            vbuckets: Some(vbuckets.clone()),
        };
        let mut stream = pair.other.projector().backfill(request).await.expect("a backfill");
        while let Some(message) = stream.next().await {
            match message.expect("it goes on") {
                BackfillMessage::Begin { cut: at } => cut = at,
                BackfillMessage::Documents(body) => {
                    count += KeyVersionsReader::new(&body).count();
                }
                BackfillMessage::Progress { read, of } => assert!(read <= of, "{read} of {of}"),
                BackfillMessage::End => {}
            }
        }
    }
    (cut, count)
}

#[tokio::test]
async fn a_vbucket_with_a_purged_log_is_handed_over_with_its_documents() {
    let mut pair = Pair::new().await;
    let mut index = IndexInfo::clone(&index(1, PartitionBy::DocumentId));
    index.bucket = PUSHED;
    pair.indexes.push(Arc::new(index));
    pair.show(pair.assignment.clone());
    push(&pair, 1..=500).await;
    purge(&pair.first, 480);
    let transfer = pair.hand_over().await;
    assert_eq!(documents(&pair.other), expected(500));
    let extents = [&pair.first, &pair.other].map(|world| world.store.extents(PUSHED).unwrap()[0]);
    assert_eq!(extents[0].purged, Seqno(480));
    assert_eq!((extents[1].purged, extents[1].end), (extents[0].purged, extents[0].end));
    pair.finish(transfer);
    push(&pair, 501..=520).await;
    assert_eq!(stream_from(&pair, 470, 520).await, Err(ErrorCode::HistoryPurged));
    assert_eq!(stream_from(&pair, 480, 520).await, Ok(()));
    assert_eq!(stream_from(&pair, 500, 520).await, Ok(()));
    let (cut, count) = backfill(&pair).await;
    assert_eq!((cut.get(VBUCKET), count), (at(520), expected(520).len()));
    until("the old home has removed it", async || documents(&pair.first).is_empty().then_some(()))
        .await;
    until("and its log", async || {
        (pair.first.store.extents(PUSHED).unwrap()[0].end.0 == 0).then_some(())
    })
    .await;
    // A process that finds this on its disk continues with it.
    pair.other.start().await;
    push(&pair, 521..=530).await;
    assert_eq!(documents(&pair.other), expected(530));
    assert_eq!(stream_from(&pair, 500, 530).await, Ok(()));
}

/// The log of an idle vbucket is purged completely, so the target reads no mutation at all.
#[tokio::test]
async fn a_vbucket_whose_log_is_purged_up_to_its_end_is_handed_over() {
    let mut pair = Pair::new().await;
    push(&pair, 1..=200).await;
    purge(&pair.first, 200);
    let transfer = pair.hand_over().await;
    assert_eq!(documents(&pair.other), expected(200));
    pair.finish(transfer);
    push(&pair, 201..=210).await;
    assert_eq!(documents(&pair.other), expected(210));
}

#[tokio::test]
async fn a_copy_that_an_earlier_process_began_starts_again() {
    let mut pair = Pair::new().await;
    push(&pair, 1..=200).await;
    purge(&pair.first, 100);
    pair.other.stop();
    let transfer = pair.begin();
    leave_a_part(&mut pair).await;
    pair.wait_for(transfer).await;
    assert_eq!(documents(&pair.other), expected(200), "nothing is left of the first try");
    pair.finish(transfer);
    push(&pair, 201..=210).await;
    assert_eq!(documents(&pair.other), expected(210));
}

#[tokio::test]
async fn an_abandoned_partial_copy_is_removed_and_a_partial_owned_vbucket_is_hidden() {
    let mut pair = Pair::new().await;
    push(&pair, 1..=200).await;
    purge(&pair.first, 100);
    leave_a_part(&mut pair).await;
    pair.show(pair.assignment.clone());
    until("the part is gone", async || {
        let extent = pair.other.store.extents(PUSHED).unwrap()[0];
        (documents(&pair.other).is_empty() && extent == Default::default()).then_some(())
    })
    .await;
    // A disk that is older than the catalog: the vbucket is partial again although the catalog has it as owned.
    pair.other.stop();
    let transfer = pair.begin();
    pair.finish(transfer);
    leave_a_part(&mut pair).await;
    until("it knows", async || {
        let history = pair.other.projector().history(PUSHED).await.ok()?;
        history.kept.contains(VBUCKET).then_some(())
    })
    .await;
    let history = pair.other.projector().history(PUSHED).await.expect("a history");
    assert_eq!(history.durable.get(VBUCKET).seqno, Seqno(0), "its producer begins anew");
    assert!(documents(&pair.other).is_empty());
}

#[tokio::test]
async fn a_copy_is_correct_although_writes_and_purges_overtake_it() {
    let mut pair = Pair::new().await;
    push(&pair, 1..=100).await;
    purge(&pair.first, 90);
    let transfer = pair.begin();
    let mut end = 100;
    for _ in 0..30 {
        let to = end + 1 + end % 5;
        match pair.first.projector().push(request(end + 1..=to)).await {
            Ok(_) => end = to,
            Err(error) if error.code == ErrorCode::NotOwner => break,
            Err(error) => panic!("{error}"),
        }
        purge(&pair.first, end - 3);
    }
    pair.wait_for(transfer).await;
    assert_eq!(documents(&pair.other), expected(end));
    pair.finish(transfer);
    push(&pair, end + 1..=end + 10).await;
    assert_eq!(documents(&pair.other), expected(end + 10));
}

fn request(seqnos: std::ops::RangeInclusive<u64>) -> PushRequest {
    PushRequest { bucket: PUSHED, branches: vec![], mutations: seqnos.map(change).collect() }
}

/// Puts an incomplete copy of the vbucket, with deleted documents, on the other projector's disk,
/// and restarts that projector.
async fn leave_a_part(pair: &mut Pair) {
    let store = pair.other.store.clone();
    // The projector stores the bucket's record some time after it has seen the bucket in the catalog.
    until("the bucket is stored", async || (!store.buckets().unwrap().is_empty()).then_some(()))
        .await;
    pair.other.stop();
    let (record, _) = store.buckets().expect("buckets").remove(0);
    let mut branches = record.branches.clone();
    branches[0].clear();
    let record = BucketRecord { branches, ..record };
    store.begin_purged(&record, VBUCKET, Seqno(60)).expect("nothing is here yet");
    let document = |n: u64| StoredDocument {
        id: pushed(1_000 + n).id,
        seqno: Seqno(n),
        document: Bytes::from_static(b"{\"n\":0}"),
    };
    store.put_documents(PUSHED, &(1..50).map(document).collect::<Vec<_>>()).expect("put");
    pair.other.start().await;
}
