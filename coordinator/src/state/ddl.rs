//! DDL: buckets and indexes. One namespace for both; numbers are never used twice.

use std::sync::Arc;

use proto::model::bucket::{BucketInfo, SourceKind, VBUCKETS_MAX};
use proto::model::homes::Homes;
use proto::model::ids::{BucketId, Generation, IndexId, NodeId, TopologyNo};
use proto::model::index::{
    COLUMNS_MAX, IndexInfo, IndexSpec, IndexState, PartitionBy, REPLICAS_MAX, SLICES_MAX,
};
use proto::model::node::Role;
use proto::model::topology::IndexTopology;
use proto::rpc::command::Outcome;
use proto::{Error, ErrorCode, Result, expr::Expr};

use super::epochs::VBUCKETS_IN_ALL_MAX;
use super::{BucketState, Change, Effect, EpochHistory, IndexRecord, StateContext, moves};
use crate::planner;

/// No name is longer; PostgreSQL's clients show about half of that.
const NAME_BYTES_MAX: usize = 128;
/// No declaration is longer; it travels with the catalog.
const SQL_BYTES_MAX: usize = 64 << 10;

impl StateContext {
    pub(super) fn create_bucket(
        &mut self,
        (name, vbuckets, source): (&str, u16, SourceKind),
        projectors: u16,
        if_not_exists: bool,
    ) -> Change {
        check_name(name)?;
        if let Some(id) = self.bucket_named(name).filter(|_| if_not_exists) {
            return Ok((Outcome::Bucket(id), Vec::new()));
        }
        self.check_free(name)?;
        check_range("vbuckets", u64::from(vbuckets), 1, u64::from(VBUCKETS_MAX))?;
        self.check_vbuckets_in_all(vbuckets)?;
        let homes = Homes::dealt(vbuckets, &self.projectors_for(source, vbuckets, projectors)?);
        self.last_bucket += 1;
        let id = BucketId(self.last_bucket);
        let info = BucketInfo::new(id, name, vbuckets, source, NodeId(0)).with_homes(homes);
        let epochs = EpochHistory::new(id, vbuckets, self.steady_ms);
        let first = epochs.last().clone();
        self.buckets.insert(id, BucketState { info: Arc::new(info), epochs, logs: Arc::default() });
        self.thin_epochs();
        Ok((Outcome::Bucket(id), vec![Effect::CatalogChanged, Effect::EpochPublished(first)]))
    }

    fn check_vbuckets_in_all(&self, more: u16) -> Result<()> {
        let all = self.vbuckets_in_all() + usize::from(more);
        if all <= VBUCKETS_IN_ALL_MAX {
            return Ok(());
        }
        let what = format!("{all} vbuckets in all buckets; at most {VBUCKETS_IN_ALL_MAX}");
        Err(Error::new(ErrorCode::OverLimit, what)
            .with_hint("DROP BUCKET what is no longer needed, or give the new one fewer vbuckets"))
    }

    pub(super) fn drop_bucket(&mut self, name: &str, if_exists: bool) -> Change {
        let Some(id) = self.bucket_named(name) else {
            return if if_exists { Ok((Outcome::Done, Vec::new())) } else { Err(no_bucket(name)) };
        };
        self.buckets.remove(&id);
        self.indexes.retain(|_, index| index.info.bucket != id);
        Ok((Outcome::Done, vec![Effect::CatalogChanged, Effect::BucketDropped(id)]))
    }

    pub(super) fn create_index(
        &mut self,
        spec: &IndexSpec,
        defer_build: bool,
        if_not_exists: bool,
    ) -> Change {
        check_name(&spec.name)?;
        let bucket = self.bucket_named(&spec.bucket).ok_or_else(|| no_bucket(&spec.bucket))?;
        if let Some(id) = self.index_named(&spec.name).filter(|_| if_not_exists) {
            return Ok((Outcome::Index(id), Vec::new()));
        }
        self.check_free(&spec.name)?;
        check_spec(spec)?;
        let placement = planner::place(spec.slices, spec.replicas, &self.indexer_loads())?;
        self.last_index += 1;
        let id = IndexId(self.last_index);
        let state = if defer_build { IndexState::Pending } else { IndexState::Backfill };
        let info = IndexInfo {
            id,
            bucket,
            spec: Arc::new(spec.clone()),
            state,
            generation: Generation(1),
            topology: Arc::new(IndexTopology { number: TopologyNo(1), placement }),
            moves: Vec::new(),
            revision: 0,
        };
        self.indexes.insert(id, IndexRecord::new(info, self.position, self.unix_ms));
        Ok((Outcome::Index(id), vec![Effect::CatalogChanged]))
    }

    pub(super) fn build_indexes(&mut self, bucket: &str, names: &[String]) -> Change {
        let bucket_id = self.bucket_named(bucket).ok_or_else(|| no_bucket(bucket))?;
        let mut ids = Vec::with_capacity(names.len());
        for name in names {
            let id = self.index_named(name).ok_or_else(|| no_index(name))?;
            if self.indexes[&id].info.bucket != bucket_id {
                return Err(no_index(name).context(format!("bucket \"{bucket}\"")));
            }
            ids.push(id);
        }
        ids.sort_unstable();
        ids.dedup();
        // Those that are being built or ready already are left as they are.
        ids.retain(|id| self.indexes[id].info.state == IndexState::Pending);
        for id in &ids {
            self.set_index_state(*id, IndexState::Backfill);
        }
        let effects = if ids.is_empty() { Vec::new() } else { vec![Effect::CatalogChanged] };
        Ok((Outcome::Building(ids), effects))
    }

    pub(super) fn drop_index(&mut self, name: &str, if_exists: bool) -> Change {
        match self.index_named(name) {
            Some(id) => {
                self.indexes.remove(&id);
                Ok((Outcome::Done, vec![Effect::CatalogChanged]))
            }
            None if if_exists => Ok((Outcome::Done, Vec::new())),
            None => Err(no_index(name)),
        }
    }

    pub(super) fn index_ready(&mut self, index: IndexId, generation: Generation) -> Change {
        // Dropped, rebuilt or ready meanwhile: what the leader saw is of the past.
        let building = self.indexes.get(&index).is_some_and(|record| {
            record.info.generation == generation && record.info.state == IndexState::Backfill
        });
        if !building {
            return Ok((Outcome::Done, Vec::new()));
        }
        self.set_index_state(index, IndexState::Maintenance);
        Ok((Outcome::Done, vec![Effect::CatalogChanged]))
    }

    fn set_index_state(&mut self, id: IndexId, state: IndexState) {
        if let Some(record) = self.indexes.get_mut(&id) {
            record.change(self.position, self.unix_ms, |info| info.state = state);
        }
    }

    /// Copies come and go by moves, which the leader plans; what is not built yet stays as it was placed
    /// until then.
    pub(super) fn set_include_apart(&mut self, name: &str, apart: bool) -> Change {
        let id = self.index_named(name).ok_or_else(|| no_index(name))?;
        let Some(record) = self.indexes.get_mut(&id) else { return Err(no_index(name)) };
        if record.info.spec.include_apart == apart {
            return Ok((Outcome::Done, Vec::new()));
        }
        record.change(self.position, self.unix_ms, |info| {
            Arc::make_mut(&mut info.spec).include_apart = apart;
        });
        Ok((Outcome::Done, vec![Effect::CatalogChanged]))
    }

    pub(super) fn set_replicas(&mut self, name: &str, replicas: u8) -> Change {
        check_range("replicas", u64::from(replicas), 0, u64::from(REPLICAS_MAX))?;
        let id = self.index_named(name).ok_or_else(|| no_index(name))?;
        let now = self.indexes[&id].info.spec.replicas;
        if now == replicas {
            return Ok((Outcome::Done, Vec::new()));
        }
        let indexers: Vec<_> = self.receiving_indexers().collect();
        if replicas > now {
            planner::check_enough(replicas, &indexers)?;
        }
        if let Some(record) = self.indexes.get_mut(&id) {
            record.change(self.position, self.unix_ms, |info| {
                Arc::make_mut(&mut info.spec).replicas = replicas;
            });
        }
        Ok((Outcome::Done, vec![Effect::CatalogChanged]))
    }

    pub(super) fn bucket_named(&self, name: &str) -> Option<BucketId> {
        self.buckets.iter().find(|(_, bucket)| bucket.info.name == name).map(|(id, _)| *id)
    }

    pub(super) fn index_named(&self, name: &str) -> Option<IndexId> {
        self.indexes.iter().find(|(_, index)| index.info.spec.name == name).map(|(id, _)| *id)
    }

    fn check_free(&self, name: &str) -> Result<()> {
        let kind = match (self.bucket_named(name), self.index_named(name)) {
            (Some(_), _) => "a bucket",
            (_, Some(_)) => "an index",
            (None, None) => return Ok(()),
        };
        Err(Error::new(ErrorCode::Exists, format!("there is {kind} \"{name}\" already"))
            .with_hint("buckets and indexes share one namespace; choose another name"))
    }

    /// The indexers that may get slices, with what they keep when all moves are done.
    pub(super) fn indexer_loads(&self) -> Vec<planner::Load> {
        let placements: Vec<Vec<NodeId>> =
            self.indexes.values().flat_map(|index| moves::settled(&index.info)).collect();
        self.receiving_indexers()
            .map(|id| planner::Load {
                node: id,
                zone: self.nodes[&id].zone.clone(),
                copies: placements.iter().filter(|nodes| nodes.contains(&id)).count(),
                first_copies: placements.iter().filter(|nodes| nodes.first() == Some(&id)).count(),
            })
            .collect()
    }

    /// The indexers that may get slices, ascending.
    pub(super) fn receiving_indexers(&self) -> impl Iterator<Item = NodeId> {
        let indexers = self.nodes.values().filter(|node| node.role == Role::Indexer);
        indexers.map(|node| node.id).filter(|id| !self.draining.contains(id))
    }
}

pub(super) fn no_bucket(name: &str) -> Error {
    Error::new(ErrorCode::Unknown, format!("bucket \"{name}\" does not exist"))
}

pub(super) fn no_index(name: &str) -> Error {
    Error::new(ErrorCode::Unknown, format!("index \"{name}\" does not exist"))
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains('\0') {
        return Err(Error::new(
            ErrorCode::InvalidParameter,
            format!("a name has 1 to {NAME_BYTES_MAX} bytes, this one {}", name.len()),
        ));
    }
    Ok(())
}

fn check_range(what: &str, value: u64, min: u64, max: u64) -> Result<()> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::InvalidParameter,
        format!("{what} = {value} is not between {min} and {max}"),
    ))
}

fn check_spec(spec: &IndexSpec) -> Result<()> {
    let bad = |what: &str| Err(Error::new(ErrorCode::InvalidParameter, what.to_owned()));
    check_range("slices", u64::from(spec.slices), 1, u64::from(SLICES_MAX))?;
    check_range("replicas", u64::from(spec.replicas), 0, u64::from(REPLICAS_MAX))?;
    if spec.keys.len() + spec.include.len() > COLUMNS_MAX || spec.sql.len() > SQL_BYTES_MAX {
        return Err(Error::new(
            ErrorCode::OverLimit,
            format!("an index has at most {COLUMNS_MAX} keys and included expressions"),
        ));
    }
    if spec.primary != spec.keys.is_empty() {
        return bad("an index has keys, unless it is PRIMARY: then it has none");
    }
    let arrays = spec.keys.iter().filter(|part| matches!(part.expr, Expr::Unnest(_))).count();
    if arrays > 1 {
        return Err(Error::new(ErrorCode::Unsupported, "an index has at most one array key")
            .with_hint("index each array by itself"));
    }
    if matches!(&spec.partition, PartitionBy::Exprs(exprs) if exprs.is_empty()) {
        return bad("PARTITION BY HASH needs an expression");
    }
    Ok(())
}
