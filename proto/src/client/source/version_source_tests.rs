use async_trait::async_trait;
use bytes::Bytes;

use super::*;
use crate::model::bucket::SourceKind;
use crate::model::data_set::{Files, Partition, VersionStage};
use crate::model::history::{SourceHistory, SourcePlace};
use crate::model::ids::BucketId;
use crate::rpc::api::{
    CopyAnswer, CopyRequest, HandOverPiece, HandOverRequest, PushReply, PushRequest, ResultStream,
    WriteReply, WriteRequest,
};
use crate::rpc::mutation::{BackfillMessage, BackfillRequest, StreamMessage, SubscribeRequest};

/// The simulated state of a projector.
#[derive(Clone, Copy)]
enum Is {
    Well,
    Silent,
    Failing,
    Wrong,
}

struct Holder(NodeId, Is);

fn no<T>() -> Result<T> {
    Err(Error::internal("not in this test"))
}

#[async_trait]
impl ProjectorApi for Holder {
    async fn write(&self, _: WriteRequest) -> Result<WriteReply> {
        no()
    }

    async fn get(&self, _: BucketId, _: Vec<String>) -> Result<Documents> {
        no()
    }

    /// Returns the number of the projector as each document.
    async fn get_for_transaction(&self, request: DocumentsRequest) -> Result<Documents> {
        match self.1 {
            Is::Well => Ok(vec![Some(Bytes::from(self.0.to_string())); request.ids.len()]),
            Is::Silent => std::future::pending().await,
            Is::Failing => Err(Error::unavailable("it has no disk")),
            Is::Wrong => Err(Error::new(ErrorCode::InvalidParameter, "no such id")),
        }
    }

    async fn push(&self, _: PushRequest) -> Result<PushReply> {
        no()
    }

    async fn place(&self, _: BucketId) -> Result<SourcePlace> {
        no()
    }

    async fn history(&self, _: BucketId) -> Result<SourceHistory> {
        no()
    }

    async fn subscribe(&self, _: SubscribeRequest) -> Result<ResultStream<StreamMessage>> {
        no()
    }

    async fn backfill(&self, _: BackfillRequest) -> Result<ResultStream<BackfillMessage>> {
        no()
    }

    async fn hand_over(&self, _: HandOverRequest) -> Result<HandOverPiece> {
        no()
    }

    async fn copy(&self, _: CopyRequest) -> Result<CopyAnswer> {
        no()
    }
}

/// Returns a version with four partitions, all owned by projector 1 and also held by 2 and 3.
fn held() -> (BucketInfo, Version) {
    let bucket = BucketInfo::new(BucketId(7), "b@v1", 4, SourceKind::Files, NodeId(1));
    let partition = Partition { holders: [1, 2, 3].map(NodeId).to_vec(), content: None };
    let version = Version {
        name: "v1".into(),
        bucket: BucketId(7),
        files: Files { pattern: "f.csv".into(), id: "id".into() },
        nodes: [1, 2, 3].map(NodeId).to_vec(),
        stage: VersionStage::Current,
        partitions: vec![partition; 4],
    };
    (bucket, version)
}

async fn read(states: [Is; 3]) -> Result<Vec<String>> {
    let (bucket, version) = held();
    let ids = (0..10).map(|n| format!("d{n}")).collect();
    let request = DocumentsRequest { bucket: BucketId(7), ids, snapshot: None, own: None };
    let find = |node: NodeId| -> Result<Arc<dyn ProjectorApi>> {
        Ok(Arc::new(Holder(node, states[node.0 as usize - 1])))
    };
    let found = documents_of_version((&bucket, &version), request, find).await?;
    let text = |document: Option<Bytes>| String::from_utf8_lossy(&document.expect("one")).into();
    Ok(found.into_iter().map(text).collect())
}

#[tokio::test(start_paused = true)]
async fn the_owner_is_asked_alone_while_it_answers() {
    assert_eq!(read([Is::Well, Is::Wrong, Is::Wrong]).await.unwrap(), vec!["1"; 10]);
}

#[tokio::test(start_paused = true)]
async fn another_holder_is_asked_at_once_when_one_fails_and_beside_one_that_is_silent() {
    let began = tokio::time::Instant::now();
    assert_eq!(read([Is::Failing, Is::Well, Is::Wrong]).await.unwrap(), vec!["2"; 10]);
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(read([Is::Silent, Is::Silent, Is::Well]).await.unwrap(), vec!["3"; 10]);
    assert_eq!(began.elapsed(), 2 * STAGE);
}

#[tokio::test(start_paused = true)]
async fn an_error_about_the_request_is_the_answer_and_without_any_holder_each_is_named() {
    let wrong = read([Is::Wrong, Is::Well, Is::Well]).await.unwrap_err();
    assert_eq!(wrong.code, ErrorCode::InvalidParameter);
    let none = read([Is::Failing, Is::Failing, Is::Failing]).await.unwrap_err();
    assert_eq!(none.code, ErrorCode::Unavailable);
    let names = ["projector 1", "projector 2", "projector 3", "no disk"];
    assert!(names.iter().all(|name| none.message.contains(name)), "{none}");
}
