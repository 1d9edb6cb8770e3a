//! Reads documents of a version of a data set ([`crate::model::data_set`]). Each partition of the
//! version is at several projectors, its holders.
//!
//! All holders of a partition have equal documents, which never change. So the owner is queried
//! first. If it has not answered within [`STAGE`], or fails, another holder is queried too. The
//! first good answer is returned.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::try_join_all;
use futures::stream::FuturesUnordered;
use tokio::time::sleep;

use crate::error::{Error, ErrorCode, ErrorKind, Result};
use crate::model::bucket::BucketInfo;
use crate::model::data_set::Version;
use crate::model::ids::{NodeId, vbucket_of};
use crate::rpc::api::{Documents, DocumentsRequest, ProjectorApi};

/// The time to wait for a holder before the next one is queried as well. A read of some documents
/// takes some milliseconds.
const STAGE: Duration = Duration::from_millis(50);

/// Reads documents of a version; `find` returns the client of a projector.
pub async fn documents_of_version(
    (bucket, version): (&BucketInfo, &Version),
    request: DocumentsRequest,
    find: impl Fn(NodeId) -> Result<Arc<dyn ProjectorApi>>,
) -> Result<Documents> {
    let mut groups: BTreeMap<Vec<NodeId>, (Vec<usize>, Vec<String>)> = BTreeMap::new();
    let asked = request.ids.len();
    for (n, id) in request.ids.iter().enumerate() {
        let vbucket = vbucket_of(id, bucket.vbuckets);
        let owner = bucket.assignment.owner(vbucket);
        let partition = version.partitions.get(usize::from(vbucket.0));
        let holders = partition.map_or(&[][..], |partition| &partition.holders);
        let others = holders.iter().copied().filter(|holder| Some(*holder) != owner);
        let group = groups.entry(owner.into_iter().chain(others).collect()).or_default();
        group.0.push(n);
        group.1.push(id.clone());
    }
    let found = groups.into_iter().map(|(holders, (places, ids))| {
        let (request, find) = (DocumentsRequest { ids, ..request.clone() }, &find);
        async move {
            Ok::<_, Error>(
                places.into_iter().zip(first_good_answer(&holders, request, find).await?),
            )
        }
    });
    let mut documents = vec![None; asked];
    for (n, document) in try_join_all(found).await?.into_iter().flatten() {
        documents[n] = document;
    }
    Ok(documents)
}

/// Queries holders of a partition one after another, and returns the first good answer.
async fn first_good_answer(
    holders: &[NodeId],
    request: DocumentsRequest,
    find: impl Fn(NodeId) -> Result<Arc<dyn ProjectorApi>>,
) -> Result<Documents> {
    let ask = |holder: NodeId| {
        let (projector, request) = (find(holder), request.clone());
        async move { (holder, async { projector?.get_for_transaction(request).await }.await) }
    };
    let (mut waiting, mut asked) = (holders.iter(), FuturesUnordered::new());
    let mut failed = Vec::new();
    loop {
        let next = waiting.as_slice().first().copied();
        if asked.is_empty() {
            let Some(next) = next else { return Err(no_answer_error(failed)) };
            waiting.next();
            asked.push(ask(next));
        }
        tokio::select! {
            biased;
            Some((holder, answer)) = asked.next() => match answer {
                Ok(documents) => return Ok(documents),
                Err(error) if !may_other_holder_answer(&error) => return Err(error),
                Err(error) => failed.push((holder, error)),
            },
            () = sleep(STAGE), if !waiting.as_slice().is_empty() => {
                asked.extend(waiting.next().map(|next| ask(*next)));
            }
        }
    }
}

/// Returns true if the error is a failure of one holder, so that another holder may still answer.
fn may_other_holder_answer(error: &Error) -> bool {
    // A projector that has not received the version yet does not know its bucket.
    error.code.kind() != ErrorKind::Caller || error.code == ErrorCode::Unknown
}

/// Returns the error for a partition of which no holder has answered. The error is retryable if a
/// holder has answered that it no longer has the partition.
fn no_answer_error(failed: Vec<(NodeId, Error)>) -> Error {
    let mut codes = failed.iter().map(|(_, error)| error.code);
    let first = codes.clone().next();
    let common = first.filter(|first| codes.clone().all(|code| code == *first));
    let code = codes.find(|code| *code == ErrorCode::NotOwner).or(common);
    let told: Vec<_> = failed
        .iter()
        .map(|(holder, error)| format!("projector {holder}: {}", error.message))
        .collect();
    let what = format!("no projector that has the documents answers: {}", told.join("; "));
    Error::new(code.unwrap_or(ErrorCode::Unavailable), what)
        .with_hint("SHOW NODES shows which projector is missing; start it again")
}

#[cfg(test)]
#[path = "version_source_tests.rs"]
mod tests;
