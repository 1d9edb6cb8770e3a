//! The cluster of a case, as its client uses it: documents, pages of the scan, and events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proto::model::bucket::SourceKind;
use proto::model::catalog::Catalog;
use proto::model::ids::{IndexId, NodeId, SliceNo};
use proto::model::index::IndexInfo;
use proto::model::moves::PlannedMove;
use proto::model::node::Role;
use proto::model::topology::{IndexTopology, PartitionKey, TopologyProvider};
use proto::rpc::api::{CheckedWrites, Write, WriteKind};
use proto::rpc::command::{Command, CreateBucket, CreateIndex, Outcome, RemoveNode, StartMoves};
use proto::rpc::scan::{Consistency, HedgeAfter, KeyRange, Output, ScanRequest};
use proto::value::key;
use proto::value::{DOCUMENT_BYTES_MAX, Value};
use router::{Router, ScanBatch};
use serde_json::json;
use sextant::sql::ast::Statement;
use sextant::sql::definitions::define::definition;
use sextant::sql::parse::parse;
use tokio::time::{sleep, timeout};

use super::case::{Case, Entry, Event, Op};
use super::play::{Failure, PATIENCE};
use crate::sim::cluster::client::{Client, ClientBackend};

/// The maximum number of attempts to move a slice whose copy the leader is removing.
const REPAIRED_MAX: u32 = 500;

/// The client of the cluster.
pub struct Cluster {
    routers: [Arc<Router>; 2],
    backend: ClientBackend,
    index: Arc<IndexInfo>,
    /// The value of the partition field for each slice.
    fields: Vec<i64>,
    partitions: Vec<u16>,
    /// The previous shard of each partition that moved.
    previous: BTreeMap<u16, u64>,
}

/// A page of a scan.
pub struct Page {
    /// The rows of the page.
    pub rows: Vec<Entry>,
    /// The token from which the next page continues; `None` after the last page.
    pub token: Option<String>,
}

/// The node of a shard.
pub fn node_of(shard: u64) -> NodeId {
    NodeId(200 + shard)
}

impl Cluster {
    /// Waits until all nodes have joined, and creates the index.
    pub async fn start(case: &Case, seed: u64) -> Result<Self, Failure> {
        let Client { routers, backend, .. } = Client::start(seed, 1);
        let nodes = case.shards().len();
        let indexers = |catalog: &Catalog| {
            catalog.nodes.values().filter(|node| node.role == Role::Indexer).count() == nodes
        };
        timeout(PATIENCE, routers[0].wait_catalog(indexers)).await?;
        let partitions = case.partitions();
        let index = create(&backend, partitions.len()).await?;
        let fields = fields(&index.topology);
        Ok(Self { routers, backend, index, fields, partitions, previous: BTreeMap::new() })
    }

    fn slice_of(&self, pid: u16) -> SliceNo {
        let at = self.partitions.iter().position(|known| *known == pid);
        SliceNo(at.expect("a partition of the case") as u16)
    }

    fn document(&self, entry: &Entry) -> (String, bytes::Bytes) {
        let (k, pk, pid) = *entry;
        let p = self.fields[usize::from(self.slice_of(pid).0)];
        (format!("{k}/{pk}/{pid}"), json!({ "k": k, "pk": pk, "p": p }).to_string().into())
    }

    /// Writes the initial contents.
    pub async fn load(&self, entries: &[Entry]) -> Result<(), Failure> {
        let write = |entry: &Entry| {
            let (id, document) = self.document(entry);
            Write { id, kind: WriteKind::Upsert(document) }
        };
        let writes: Vec<Write> = entries.iter().map(write).collect();
        self.write(writes).await?;
        // The scan begins when all of it is applied.
        let all = ScanRequest { consistency: Consistency::RequestPlus, ..self.any_request() };
        let mut scan = self.routers[0].scan(all, None).await?;
        while scan.next().await?.is_some() {}
        Ok(())
    }

    async fn write(&self, writes: Vec<Write>) -> Result<(), Failure> {
        let bucket = self.backend.bucket("b").await?;
        let writes = CheckedWrites::new(writes, DOCUMENT_BYTES_MAX)?;
        while self.backend.writer(&bucket)?.write(writes.clone()).await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    fn any_request(&self) -> ScanRequest {
        ScanRequest {
            index: self.index.local_id(),
            ranges: [KeyRange::all()].into(),
            partitions: None,
            filter: None,
            reverse: false,
            ordered: false,
            distinct_parts: None,
            limit: None,
            offset: 0,
            output: Output::Rows { include: false },
            consistency: Consistency::Any,
            own: None,
            timeout_ms: PATIENCE.as_millis() as u64,
            hedge_after: HedgeAfter::Usual,
        }
    }

    /// Returns the request of the case's scan.
    pub fn request(&self, case: &Case) -> ScanRequest {
        let bound = |key: i64| {
            let mut encoded = Vec::new();
            key::encode_part(&Value::int(key), false, &mut encoded);
            encoded
        };
        let high = key::successor(&bound(case.range.1)).map(bytes::Bytes::from);
        let range = KeyRange { low: bound(case.range.0).into(), high };
        ScanRequest { ranges: [range].into(), ordered: case.is_sorted(), ..self.any_request() }
    }

    /// Reads a page of at most `rows` rows from a token on. With 0 rows, returns a token before any
    /// row is read.
    pub async fn page(
        &self,
        request: &ScanRequest,
        token: Option<&str>,
        rows: u64,
        number: usize,
    ) -> Result<Page, Failure> {
        let router = &self.routers[number % 2];
        let mut scan = router.scan(request.clone(), token).await?;
        scan.end_page_after(rows);
        let mut page = Vec::new();
        while let Some(batch) = scan.next().await? {
            let ScanBatch::Rows(block) = batch else { return Err("not rows".into()) };
            for row in block.iter() {
                page.push(entry_of(row.entry)?);
            }
        }
        Ok(Page { rows: page, token: scan.token()? })
    }

    /// Executes an event between two rows of the scan.
    pub async fn happen(&mut self, event: &Event) -> Result<(), Failure> {
        match &event.op {
            Op::Migrate { pid, to, .. } => self.migrate(*pid, *to).await,
            Op::Restore { pid } => {
                let back = *self.previous.get(pid).ok_or("it has not moved")?;
                self.migrate(*pid, back).await
            }
            Op::Copy { pid, to } => self.copy(*pid, *to).await,
            Op::AddShard { .. } | Op::Lose => Ok(()),
            Op::RemoveShard { sid } => {
                let command = Command::RemoveNode(RemoveNode { node: node_of(*sid), force: false });
                self.backend.command(command.into()).await?;
                Ok(())
            }
            Op::Insert { entry } => {
                let (id, document) = self.document(entry);
                self.write(vec![Write { id, kind: WriteKind::Upsert(document) }]).await
            }
            Op::Delete { entry } => {
                let (id, _) = self.document(entry);
                self.write(vec![Write { id, kind: WriteKind::Delete }]).await
            }
            Op::Lag { sid, n } => {
                let host = format!("indexer-{}", node_of(*sid));
                turmoil::partition("client", host.clone());
                let pause = Duration::from_millis(20 * n.clamp(&1, &50));
                let lag = async move {
                    sleep(pause).await;
                    turmoil::repair("client", host);
                };
                self.backend.cluster().env().spawn_request("lag", lag).detach();
                Ok(())
            }
        }
    }

    fn topology(&self) -> Option<Arc<IndexTopology>> {
        let catalog = self.backend.catalog();
        catalog.indexes.get(&self.index.id).map(|index| Arc::clone(&index.topology))
    }

    fn assignment(&self, slice: SliceNo) -> Vec<NodeId> {
        self.topology().map_or_else(Vec::new, |topology| topology.replicas(slice).to_vec())
    }

    /// Moves a slice; waits until only its new node has it and no move is in progress.
    pub async fn migrate(&mut self, pid: u16, shard: u64) -> Result<(), Failure> {
        let (slice, to) = (self.slice_of(pid), node_of(shard));
        for tries_left in (0..REPAIRED_MAX).rev() {
            let before = self.assignment(slice);
            if before == [to] {
                break;
            }
            let from = *before.iter().find(|node| **node != to).ok_or("no home")?;
            self.previous.insert(pid, from.0 - 200);
            let to_too = (!before.contains(&to)).then_some(to);
            match self.start_move(slice, Some(from), to_too).await {
                Ok(()) => break,
                // The leader removes a second copy by itself, since the index needs only one; or such a move is in progress.
                Err(_) if tries_left > 0 => {
                    sleep(Duration::from_millis(20)).await;
                }
                Err(refusal) => return Err(refusal),
            }
        }
        self.settle(slice, move |topology| topology.replicas(slice) == [to]).await
    }

    async fn copy(&mut self, pid: u16, shard: u64) -> Result<(), Failure> {
        let (slice, to) = (self.slice_of(pid), node_of(shard));
        if self.assignment(slice).contains(&to) {
            return Ok(());
        }
        let before = self.topology().map_or(0, |topology| topology.number.0);
        self.start_move(slice, None, Some(to)).await?;
        // The leader removes one of the copies soon, also the new one. A catalog between the two changes may be missed.
        let made = move |topology: &IndexTopology| {
            topology.replicas(slice).contains(&to) || topology.number.0 >= before + 2
        };
        self.settle(slice, made).await
    }

    async fn start_move(
        &self,
        slice: SliceNo,
        from: Option<NodeId>,
        to: Option<NodeId>,
    ) -> Result<(), Failure> {
        let mv = PlannedMove {
            index: self.index.id,
            generation: self.index.generation,
            slice,
            from,
            to,
            reason: "the case".into(),
        };
        self.backend.command(StartMoves { moves: vec![mv] }.into()).await?;
        Ok(())
    }

    async fn settle(
        &self,
        slice: SliceNo,
        there: impl Fn(&IndexTopology) -> bool,
    ) -> Result<(), Failure> {
        let id: IndexId = self.index.id;
        let settled = |catalog: &Catalog| {
            catalog.indexes.get(&id).is_some_and(|index| {
                there(&index.topology) && index.moves.iter().all(|mv| mv.slice != slice)
            })
        };
        let nodes: BTreeSet<NodeId> = self.assignment(slice).into_iter().collect();
        let waited = timeout(PATIENCE, self.routers[0].wait_catalog(settled)).await;
        waited.map(drop).map_err(|_| {
            format!("slice {slice} does not come to its place, it is on {nodes:?}").into()
        })
    }
}

async fn create(backend: &ClientBackend, slices: usize) -> Result<Arc<IndexInfo>, Failure> {
    let bucket = Command::CreateBucket(CreateBucket {
        name: "b".into(),
        vbuckets: 4,
        source: SourceKind::Embedded,
        projectors: 1,
        copies: None,
        if_not_exists: true,
    });
    let made = loop {
        match backend.command(bucket.clone().into()).await {
            Ok(Outcome::Bucket(made)) => break made,
            _ => sleep(Duration::from_millis(20)).await,
        }
    };
    let sql = format!("CREATE INDEX i ON b (k, pk) PARTITION BY HASH (p) WITH (slices = {slices})");
    let parsed = parse(&sql).map_err(|error| error.error)?.remove(0).statement;
    let Statement::CreateIndex(create) = parsed else { return Err("not an index".into()) };
    let command = Command::CreateIndex(CreateIndex {
        bucket: made,
        spec: definition(&create).expect("a definition"),
        defer_build: false,
        if_not_exists: true,
    });
    let Outcome::Index(index) = backend.command(command.into()).await? else {
        return Err("no index".into());
    };
    timeout(PATIENCE, backend.wait_ready(index, None)).await??;
    let catalog = backend.catalog();
    Ok(Arc::clone(catalog.indexes.get(&index).ok_or("the index is gone")?))
}

/// Returns a number for each slice whose hash belongs to the slice.
fn fields(topology: &IndexTopology) -> Vec<i64> {
    let mut fields = BTreeMap::new();
    for field in 0.. {
        let mut encoded = Vec::new();
        key::encode_part(&Value::int(field), false, &mut encoded);
        fields.entry(topology.partition(PartitionKey::Encoded(&encoded))).or_insert(field);
        if fields.len() == usize::from(topology.slices()) {
            break;
        }
    }
    fields.into_values().collect()
}

fn entry_of(entry: &[u8]) -> Result<Entry, Failure> {
    let mut rest = entry;
    key::decode_part(&mut rest, false)?;
    key::decode_part(&mut rest, false)?;
    let id = std::str::from_utf8(rest)?;
    let mut numbers = id.split('/');
    let mut next = || numbers.next().ok_or("an id of another kind");
    Ok((next()?.parse()?, next()?.parse()?, next()?.parse()?))
}
