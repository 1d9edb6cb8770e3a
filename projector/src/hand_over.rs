//! The two ends of a vbucket's hand-over ([`proto::homes`] has its steps).
//!
//! The target pulls: pieces of the log until little is missing, then the last piece, with which the home releases the
//! vbucket. When all is durable here it asks the coordinator to be the home. Every step may be repeated, by this
//! process or by the one after it: what is here already says where to go on.
//!
//! A vbucket of whose log the beginning was purged cannot be copied so: it stays where it is, and the hand-over
//! waits until it is cancelled.

use std::sync::Arc;
use std::time::Duration;

use proto::api::{HandOverPiece, HandOverRequest, PushMutation};
use proto::command::{Command, CommandRequest, Outcome, RequestId};
use proto::cut::Position;
use proto::history::branch_of;
use proto::homes::HandOver;
use proto::ids::{BucketId, Seqno};
use proto::index::NodeInfo;
use proto::plant::{self, Plant};
use proto::{Error, ErrorCode, Result};

use crate::service::Projector;
use crate::source::bucket::Bucket;
use crate::source::keeping::not_home;
use crate::source::writer::Writer;
use crate::source::{LogRange, Mutation};

/// Bytes of a piece, about.
const PIECE_BYTES: usize = 4 << 20;
/// Mutations that may be missing when the home is asked to release the vbucket: what takes milliseconds.
const LAST_PIECE_MUTATIONS: u64 = 1_000;
/// Between two tries.
const RETRY: Duration = Duration::from_millis(200);

/// The home's end: the next piece.
pub async fn give(projector: &Projector, request: HandOverRequest) -> Result<HandOverPiece> {
    let HandOverRequest { bucket, handing, after, release } = request;
    let bucket = projector.bucket(bucket).await?;
    let vbucket = handing.vbucket;
    // The target may have heard of it before.
    let look = |_: Option<&_>| (bucket.homes().handing_of(vbucket) == Some(&handing)).then_some(());
    projector.wait_for(look, || not_home(&bucket, vbucket)).await?;
    if release {
        let home = Arc::clone(&bucket);
        projector.alone(home, move |writer, bucket| writer.release(bucket, &handing)).await?;
    }
    let (_, losses) = bucket.logs();
    // In this order: what was released before it was looked at has its end.
    let keeping = bucket.keeping();
    let history = bucket.history();
    let given_up = bucket.record().given_up.remove(&vbucket).unwrap_or_default();
    if !keeping.kept.contains(vbucket) {
        return Err(not_home(&bucket, vbucket));
    }
    let end = history.durable.get(vbucket);
    if after.seqno > end.seqno || !history.logs.includes(vbucket, after) {
        let what = format!(
            "vbucket {vbucket}: {:x}/{} is not in its history",
            after.vbuuid.0, after.seqno
        );
        return Err(Error::new(ErrorCode::OutOfOrder, what));
    }
    let branches = history.logs.get(vbucket).cloned().unwrap_or_default();
    let store = Arc::clone(&projector.streams.store);
    let range = LogRange { bucket: bucket.info.id, vbucket, after: after.seqno, to: end.seqno };
    let read = match after.seqno < end.seqno {
        true => projector.env.blocking(move || store.read_log(range, PIECE_BYTES)).await?,
        false => Vec::new(),
    };
    if bucket.logs().1 != losses {
        return Err(Error::unavailable("a piece of the history was lost meanwhile"));
    }
    if read.first().is_some_and(|first| first.seqno.0 > after.seqno.0 + 1) {
        let what = format!("the log of vbucket {vbucket} was purged behind seqno {}", after.seqno);
        return Err(Error::new(ErrorCode::HistoryPurged, what));
    }
    let mutations = read.iter().map(|mutation| PushMutation {
        vbucket,
        position: Position { vbuuid: branch_of(&branches, mutation.seqno), seqno: mutation.seqno },
        id: mutation.id.to_string(),
        kind: mutation.kind,
        document: mutation.document.clone(),
    });
    let released = keeping.released.contains(vbucket);
    Ok(HandOverPiece { mutations: mutations.collect(), branches, given_up, end, released })
}

/// The target's end: takes over what the catalog says is on its way here, one vbucket after another. Runs until
/// cancelled, at any await without harm.
pub async fn take_all(projector: Arc<Projector>) {
    let mut catalogs = projector.catalog.subscribe();
    let client = projector.env.random.next_u64();
    let (mut sequence, mut failures) = (0, 0);
    loop {
        // One that cannot be carried out does not hold up the others.
        let next = next_hand_over(&projector, failures);
        let Some((bucket, handing, home)) = next else {
            if catalogs.changed().await.is_err() {
                return;
            }
            continue;
        };
        sequence += 1;
        let request = RequestId { client, sequence };
        match take(&projector, bucket, handing, &home, request).await {
            Ok(()) => {
                tracing::info!(%bucket, vbucket = %handing.vbucket, from = %home.id, "a vbucket was handed over");
                wait_settled(&projector, bucket, handing).await;
            }
            Err(error) => {
                failures += 1;
                let vbucket = handing.vbucket;
                if error.code == ErrorCode::HistoryPurged {
                    tracing::warn!(%bucket, %vbucket, %error, "it stays where it is; CANCEL MOVES ends this");
                } else {
                    tracing::debug!(%bucket, %vbucket, %error, "a hand-over; trying again");
                }
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Waits a little until the catalog that is known here has heard of the end of a hand-over.
async fn wait_settled(projector: &Projector, bucket: BucketId, handing: HandOver) {
    let look = |catalog: Option<&proto::index::Catalog>| {
        let homes = catalog.and_then(|catalog| catalog.buckets.get(&bucket)).map(|b| &b.homes);
        let pending = homes.is_some_and(|h| h.handing_of(handing.vbucket) == Some(&handing));
        (!pending).then_some(())
    };
    let late = projector.wait_for(look, || Error::unavailable("the catalog is late")).await;
    late.err().inspect(|error| tracing::debug!(%error, "a hand-over"));
}

/// A hand-over to this projector, and where it comes from; another one after each failure.
fn next_hand_over(
    projector: &Projector,
    failures: usize,
) -> Option<(BucketId, HandOver, Arc<NodeInfo>)> {
    let catalog = projector.catalog.borrow().clone()?;
    let me = projector.config.node.id;
    let mut coming = Vec::new();
    for bucket in catalog.buckets.values() {
        for handing in bucket.homes.handing().iter().filter(|handing| handing.to == me) {
            let home = catalog.nodes.get(&bucket.homes.home(handing.vbucket)?)?;
            coming.push((bucket.id, *handing, Arc::clone(home)));
        }
    }
    let next = failures.checked_rem(coming.len())?;
    Some(coming.swap_remove(next))
}

async fn take(
    projector: &Projector,
    id: BucketId,
    handing: HandOver,
    home: &NodeInfo,
    request: RequestId,
) -> Result<()> {
    let bucket = projector.bucket(id).await?;
    let source = projector.directory.projector(home);
    let mut release = false;
    loop {
        let after = bucket.durable().get(handing.vbucket);
        let wanted = HandOverRequest { bucket: id, handing, after, release };
        let piece = match source.hand_over(wanted).await {
            Ok(piece) => piece,
            Err(error) if error.code == ErrorCode::OutOfOrder => {
                let vbucket = handing.vbucket;
                projector
                    .alone(Arc::clone(&bucket), move |writer, b| writer.forget(b, vbucket))
                    .await?;
                continue;
            }
            Err(error) => return Err(error),
        };
        let reached = piece.mutations.last().map_or(after.seqno, |last| last.position.seqno);
        let left = piece.end.seqno.0 - reached.0.min(piece.end.seqno.0);
        let is_last = (piece.released || plant::is(Plant::NotReleased)) && left == 0;
        copy(projector, &bucket, handing, piece).await?;
        if is_last {
            break;
        }
        if reached == after.seqno && left > 0 {
            return Err(Error::unavailable("the home has no more of the log than that"));
        }
        release |= left <= LAST_PIECE_MUTATIONS && !plant::is(Plant::NotReleased);
    }
    let command = Command::HandedOver { bucket: id, number: handing.number };
    let request = CommandRequest { request: Some(request), command };
    match projector.directory.coordinator().propose(request).await? {
        Outcome::Refused(error) => Err(error),
        _ => Ok(()),
    }
}

async fn copy(
    projector: &Projector,
    bucket: &Arc<Bucket>,
    handing: HandOver,
    piece: HandOverPiece,
) -> Result<()> {
    let mutations: Vec<_> = piece
        .mutations
        .into_iter()
        .map(|PushMutation { vbucket, position: Position { seqno, .. }, id, kind, document }| {
            Mutation::new((vbucket, seqno), Arc::from(id), kind, document)
        })
        .collect();
    // The branches that begin beyond the copy's end come again with the next piece.
    let end = mutations.last().map_or(bucket.durable().get(handing.vbucket).seqno, |m| m.seqno);
    let (mut branches, given_up) = (piece.branches, piece.given_up);
    branches.retain(|(_, began)| Seqno(*began) <= end);
    let work = move |writer: &Writer, bucket: &Bucket| {
        writer.copy(bucket, &handing, (&branches, given_up), mutations)
    };
    projector.alone(Arc::clone(bucket), work).await
}
