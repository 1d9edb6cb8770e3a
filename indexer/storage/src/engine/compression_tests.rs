//! Tests that the compression of an index's definition is used for its fragments: those of its build, of flushes and of
//! compactions.

use std::sync::Arc;

use proto::env::Env;
use proto::model::ids::{BucketId, Generation, IndexId, LocalIndexId, NodeId, Seqno, SliceNo};
use proto::model::index::{Compression, IndexInfo, IndexSpec};
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};

use crate::batch::{EpochBatch, VbucketMutations};
use crate::engine::storage_engine::StorageEngine;
use crate::engine::storage_engine::tests::horizon_mark;
use crate::options::StoreOptions;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;

const INDEX: LocalIndexId = LocalIndexId { index: IndexId(1), generation: Generation(0) };
const NODE: NodeId = NodeId(7);
const DOCUMENTS: u64 = 2_000;

/// Documents whose keys repeat a word, but share no prefix.
fn documents(from: u64) -> bytes::Bytes {
    let mut writer = KeyVersionsWriter::default();
    for n in from..from + DOCUMENTS {
        let id = format!("{n:06}");
        writer.mutation(1, MutationKind::Upsert, &id, 1);
        writer.index(INDEX, 1);
        let key =
            format!("{:x}{}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15), " the same words".repeat(8));
        writer.entry(SliceNo(0), key.as_bytes(), b"");
    }
    writer.finish()
}

/// Bytes of all fragments after a build and after a flush.
async fn fragment_bytes(compression: Compression) -> [u64; 2] {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions::default();
    let store = StorageEngine::open(&Env::real(), NODE, dir.path(), options).unwrap();
    store.load_all();
    let spec = IndexSpec { compression, ..IndexSpec::new("i", "b") };
    let info = Arc::new(IndexInfo::new(INDEX.index, BucketId(1), spec, vec![vec![NODE]]));
    store.begin_build(info, Grouping::Together).await.unwrap();
    store.begin_backfill(INDEX).await.unwrap();
    store.backfill(INDEX, documents(0)).await.unwrap();
    let apply = async |epoch, body| {
        let piece = VbucketMutations { body, base: Seqno(0), after: Seqno(0), to: Seqno(u64::MAX) };
        store
            .apply(EpochBatch {
                mark: horizon_mark(epoch),
                pieces: vec![piece],
                commits: Vec::new(),
            })
            .await
            .unwrap();
        store.flush().await.unwrap();
    };
    apply(1, KeyVersionsWriter::default().finish()).await;
    store.finish_build(INDEX, &horizon_mark(1)).await.unwrap();
    let bytes = || {
        let files = store.context.state.get(INDEX).unwrap();
        let lists = proto::lock::lock(&files.fragment_lists);
        lists.tables.values().filter_map(|table| Some(table.fragment()?.file_bytes())).sum::<u64>()
    };
    let built = bytes();
    apply(2, documents(DOCUMENTS)).await;
    [built, bytes() - built]
}

#[tokio::test]
async fn fragments_have_the_compression_of_their_index() {
    let plain = fragment_bytes(Compression::None).await;
    for compression in [Compression::Lz4, Compression::Zstd] {
        let packed = fragment_bytes(compression).await;
        for (packed, plain) in packed.iter().zip(&plain) {
            assert!(*packed < plain * 3 / 4, "{compression:?}: {packed} of {plain} bytes");
        }
    }
}
