//! Queries the owners of other vbuckets for the state of open commits of producers ([`crate::source`] has the states of parts).
//!
//! Only late commits are queried: usually the next epochs show their state. No answer is needed for correctness, and the query is repeated
//! as long as the commit is open.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use proto::lock::lock;
use proto::model::assignment::VbucketSet;
use proto::model::ids::NodeId;
use proto::model::pushed_commit::PushedCommit;
use proto::rpc::api::PushedLook;
use tokio::time::timeout;

use crate::projector::Projector;
use crate::source::view::bucket::Bucket;

/// The pause between two turns.
const ASK_EVERY: Duration = Duration::from_millis(250);
/// The time limit of a question.
const ANSWER_WAIT: Duration = Duration::from_secs(2);
/// Questions at once.
const ASKED_MAX: usize = 16;
/// The number of commits of a bucket that are queried in one turn; the others follow in the next turns.
const COMMITS_MAX: usize = 64;

/// Asks about the late commits of all buckets until it is cancelled; safe to cancel at any await. A slow owner holds up nothing else here.
pub(crate) async fn ask_about_parts(projector: Arc<Projector>) -> Infallible {
    loop {
        tokio::time::sleep(ASK_EVERY).await;
        ask(&projector).await;
    }
}

/// Asks about the late commits of all buckets once.
async fn ask(projector: &Projector) {
    let mut questions = Vec::new();
    for bucket in projector.bucket_ids().into_iter().filter_map(|id| projector.find(id)) {
        for (commit, wanted) in bucket.ask_for_pushed(COMMITS_MAX) {
            let commit = Arc::new(commit);
            let owners = owners(&bucket, &wanted).into_iter();
            questions.extend(owners.map(|of| (Arc::clone(&bucket), Arc::clone(&commit), of)));
        }
    }
    let silent = &Mutex::new(BTreeSet::new());
    stream::iter(questions)
        .for_each_concurrent(ASKED_MAX, |(bucket, commit, (owner, wanted))| async move {
            ask_owner(projector, &bucket, &commit, (owner, wanted), silent).await;
        })
        .await;
}

/// The owners of vbuckets.
fn owners(bucket: &Bucket, wanted: &VbucketSet) -> BTreeMap<NodeId, VbucketSet> {
    let (assignment, mut owners) = (bucket.assignment(), BTreeMap::<_, VbucketSet>::new());
    for vbucket in wanted.iter() {
        if let Some(owner) = assignment.owner(vbucket) {
            owners.entry(owner).or_default().insert(vbucket);
        }
    }
    owners
}

async fn ask_owner(
    projector: &Projector,
    bucket: &Bucket,
    commit: &PushedCommit,
    (owner, wanted): (NodeId, VbucketSet),
    silent: &Mutex<BTreeSet<NodeId>>,
) {
    let catalog = projector.catalog.borrow().clone();
    let node = catalog.and_then(|catalog| catalog.nodes.get(&owner).cloned());
    let Some(node) = node.filter(|_| !lock(silent).contains(&owner)) else { return };
    let look = PushedLook { bucket: bucket.info.id, commit: commit.clone(), wanted };
    let asked = projector.directory.projector(&node);
    match timeout(ANSWER_WAIT, asked.look_at_pushed(look)).await {
        Ok(Ok(told)) => bucket.note_told(commit, &told),
        // The owner is not queried again in this turn.
        Ok(Err(_)) | Err(_) => drop(lock(silent).insert(owner)),
    }
}
