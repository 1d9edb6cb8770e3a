//! The same of a vbucket of whose log the beginning was purged: its documents go over, and the purge point.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use projector::testing::{BucketRecord, DocumentStore, StoredDocument};
use proto::ErrorCode;
use proto::model::cut::Cut;
use proto::model::homes::VbucketSet;
use proto::model::ids::*;
use proto::model::index::*;
use proto::rpc::api::*;
use proto::rpc::mutation::*;

use crate::common::*;
use crate::hand_over::*;

const VBUCKET: VbucketId = VbucketId(0);
/// Documents, each changed some times.
const DOCUMENTS: u64 = 40;

/// The mutation of a document that is changed over and over, and now and then deleted.
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

/// The documents of the vbucket after so many changes.
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

/// The documents of the vbucket that are in a store.
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

/// An indexer that has the vbucket up to a place.
fn from(seqno: u64) -> SubscribeRequest {
    let mut cut = Cut::zero(VBUCKETS);
    cut.set(VBUCKET, at(seqno));
    SubscribeRequest { node: INDEXERS[0], bucket: PUSHED, from: Some(cut), last_epoch: Epoch(0) }
}

/// How a stream from a place of the vbucket goes on.
async fn stream_from(pair: &Pair, seqno: u64, end: u64) -> Result<(), ErrorCode> {
    let subscribe = async || pair.source().subscribe(from(seqno)).await.ok();
    let mut stream = until("both know", subscribe).await;
    let first = stream.next().await.expect("it begins");
    first.map_err(|error| error.code)?;
    read_to(&mut stream, &mut { seqno }, end).await;
    Ok(())
}

/// What a backfill of the vbucket from its home says.
async fn backfill(pair: &Pair) -> (Cut, usize) {
    let vbuckets: VbucketSet = [VBUCKET].into_iter().collect();
    let index = &pair.indexes[0];
    let mut count = 0;
    let mut cut = Cut::default();
    for node in INDEXERS {
        let request = BackfillRequest {
            node,
            index: index.id,
            generation: index.generation,
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
                BackfillMessage::End => {}
            }
        }
    }
    (cut, count)
}

#[tokio::test]
async fn a_vbucket_whose_log_was_purged_goes_over_with_its_documents_and_its_purge_point() {
    let mut pair = Pair::new().await;
    let mut index = IndexInfo::clone(&index(1, PartitionBy::DocumentId));
    index.bucket = PUSHED;
    pair.indexes.push(Arc::new(index));
    pair.show(pair.homes.clone());
    push(&pair, 1..=500).await;
    purge(&pair.first, 480);
    let handing = pair.hand_over().await;
    assert_eq!(documents(&pair.other), expected(500));
    let extents = [&pair.first, &pair.other].map(|world| world.store.extents(PUSHED).unwrap()[0]);
    assert_eq!(extents[0].purged, Seqno(480));
    assert_eq!((extents[1].purged, extents[1].end), (extents[0].purged, extents[0].end));
    pair.finish(handing);
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
    // A process that finds all this on its disk goes on with it.
    pair.other.start().await;
    push(&pair, 521..=530).await;
    assert_eq!(documents(&pair.other), expected(530));
    assert_eq!(stream_from(&pair, 500, 530).await, Ok(()));
}

#[tokio::test]
async fn a_copy_that_was_begun_by_a_process_that_is_no_more_begins_anew() {
    let mut pair = Pair::new().await;
    push(&pair, 1..=200).await;
    purge(&pair.first, 100);
    pair.other.stop();
    let handing = pair.begin();
    leave_a_part(&mut pair).await;
    pair.wait_for(handing).await;
    assert_eq!(documents(&pair.other), expected(200), "nothing is left of the first try");
    pair.finish(handing);
    push(&pair, 201..=210).await;
    assert_eq!(documents(&pair.other), expected(210));
}

#[tokio::test]
async fn a_part_that_was_given_up_is_removed_and_one_that_is_kept_by_mistake_is_not_shown() {
    let mut pair = Pair::new().await;
    push(&pair, 1..=200).await;
    purge(&pair.first, 100);
    leave_a_part(&mut pair).await;
    pair.show(pair.homes.clone());
    until("the part is gone", async || {
        let extent = pair.other.store.extents(PUSHED).unwrap()[0];
        (documents(&pair.other).is_empty() && extent == Default::default()).then_some(())
    })
    .await;
    // An older disk than the catalog: the vbucket was whole here, and is a part again.
    pair.other.stop();
    let handing = pair.begin();
    pair.finish(handing);
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
async fn writes_and_purges_overtake_a_copy_and_it_is_right_in_the_end() {
    let mut pair = Pair::new().await;
    push(&pair, 1..=100).await;
    purge(&pair.first, 90);
    let handing = pair.begin();
    let mut end = 100;
    for _ in 0..30 {
        let to = end + 1 + end % 5;
        match pair.first.projector().push(request(end + 1..=to)).await {
            Ok(_) => end = to,
            Err(error) if error.code == ErrorCode::NotHome => break,
            Err(error) => panic!("{error}"),
        }
        purge(&pair.first, end - 3);
    }
    pair.wait_for(handing).await;
    assert_eq!(documents(&pair.other), expected(end));
    pair.finish(handing);
    push(&pair, end + 1..=end + 10).await;
    assert_eq!(documents(&pair.other), expected(end + 10));
}

fn request(seqnos: std::ops::RangeInclusive<u64>) -> PushRequest {
    PushRequest { bucket: PUSHED, branches: vec![], mutations: seqnos.map(change).collect() }
}

/// Puts a part of the vbucket onto the other's disk, with documents that are no more, and starts it anew.
async fn leave_a_part(pair: &mut Pair) {
    pair.other.stop();
    let store = pair.other.store.clone();
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
