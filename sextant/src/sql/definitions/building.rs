//! Remarks for a client whose statement waits for the build of an index. The first remark is
//! about a likely mistake or an obstacle; later remarks at intervals are about the progress. If
//! the statement is interrupted, the build continues, and the client is told so.

use std::collections::BTreeSet;
use std::time::Duration;

use proto::expr::Expr;
use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::data_set::Version;
use proto::model::ids::{Generation, IndexId};
use proto::model::index::{IndexInfo, IndexSpec, IndexState};
use proto::rpc::api::{BuildStatus, SILENT_MS_MAX};
use proto::value::Value;
use proto::{Error, ErrorCode, Result};
use tokio::time::timeout;

use crate::access::Access;
use crate::quoted_name::quoted_name;
use crate::sql::remarks::Remarks;

/// The time limit of a call whose answer a remark needs. Without an answer, no remark is sent.
const ASK_WAIT: Duration = Duration::from_secs(2);
/// The interval between two remarks about the progress of a build.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);
/// The maximum number of paths that a remark names.
const PATHS_NAMED_MAX: usize = 5;

/// The maximum number of partitions whose numbers a text contains.
const PARTITIONS_NAMED_MAX: usize = 16;

const BUILD_IS_STUCK: &str = "it goes on over the next version that is loaded (ALTER BUCKET … LOAD VERSION); CANCEL BUILD ends it";
const BUILD_WAITS: &str = "the build begins, or goes on, when a projector of the bucket answers; SHOW NODES shows the nodes";

/// Reads some documents of the bucket of a new index. Sends a remark if the projector does not
/// answer, or if no document has some of the definition's paths.
pub async fn look_at_documents(access: &Access, spec: &IndexSpec, remarks: &Remarks) {
    let catalog = access.catalog();
    let Some(bucket) = catalog.bucket(&spec.bucket) else { return };
    match sample(access, bucket).await {
        Ok(documents) if documents.is_empty() => {}
        Ok(documents) => {
            let missing = missing_paths(spec, &documents);
            if !missing.is_empty() {
                let (count, bucket) = (documents.len(), &spec.bucket);
                let message = format!(
                    "none of {count} sampled documents of bucket \"{bucket}\" has {}",
                    missing.join(", ")
                );
                remarks.send(message, Some("look for a wrong name, if documents should have it"));
            }
        }
        Err(why) => {
            let message = format!("the build of index \"{}\" waits: {why}", spec.name);
            remarks.send(message, Some(BUILD_WAITS));
        }
    }
}

/// Returns some documents of a bucket, or a text with the reason why there are none.
async fn sample(access: &Access, bucket: &BucketInfo) -> std::result::Result<Vec<Value>, String> {
    match timeout(ASK_WAIT, access.sample(bucket)).await {
        Ok(Ok(documents)) => {
            // A stored document was parsed before; an unreadable one is no evidence about paths.
            Ok(documents.iter().filter_map(|document| Value::parse_json(document).ok()).collect())
        }
        Ok(Err(error)) if error.is_retry() => Err(error.message),
        Ok(Err(_)) => Ok(Vec::new()),
        Err(_) => Err(format!("no projector of bucket \"{}\" answers", bucket.name)),
    }
}

/// Returns the paths of a definition that do not exist in any of the documents, as text.
fn missing_paths(spec: &IndexSpec, documents: &[Value]) -> Vec<String> {
    let mut missing = BTreeSet::new();
    let mut look = |expr: &Expr| {
        expr.any(&mut |part| {
            if let Expr::Path(steps) = part
                && documents.iter().all(|document| matches!(document.path(steps), Value::Missing))
            {
                missing.insert(part.to_string());
            }
            false
        });
    };
    spec.keys.iter().for_each(|key| look(&key.expr));
    spec.include.iter().for_each(|column| look(&column.expr));
    spec.predicate.iter().for_each(&mut look);
    spec.partition.exprs().iter().for_each(&mut look);
    missing.into_iter().take(PATHS_NAMED_MAX).collect()
}

/// Waits until an index, or one generation of it, serves scans. Sends remarks about the progress
/// at intervals.
pub async fn wait_built(
    access: &Access,
    index: IndexId,
    generation: Option<Generation>,
    remarks: &Remarks,
) -> Result<()> {
    let mut ready = std::pin::pin!(access.wait_ready(index, generation));
    loop {
        if let Ok(done) = timeout(PROGRESS_EVERY, ready.as_mut()).await {
            return done;
        }
        let catalog = access.catalog();
        // A build over the next version of the data set may replace the first build.
        let next = catalog.next_generation(index);
        let Some(info) = next.or_else(|| catalog.indexes.get(&index)) else { continue };
        if let Ok(Some((message, hint))) = timeout(ASK_WAIT, progress(access, info)).await {
            remarks.send(message, hint);
        }
    }
}

/// Returns a text about the progress of a build, or about the reason why it waits, with a hint.
/// Returns `None` if the leading coordinator does not know it.
async fn progress(access: &Access, info: &IndexInfo) -> Option<(String, Option<&'static str>)> {
    let status = access.status().await.ok()?;
    let catalog = access.catalog();
    let name = &info.spec.name;
    if let Some((_, _, version)) = catalog.version(info.bucket)
        && let Some(lost) = lost_partitions(version)
    {
        let message =
            format!("the build of index \"{name}\" over version '{}' waits: {lost}", version.name);
        return Some((message, Some(BUILD_IS_STUCK)));
    }
    let projectors = catalog.buckets.get(&info.bucket)?.assignment.projectors();
    let silent = status
        .nodes
        .iter()
        .find(|report| report.silent_ms >= SILENT_MS_MAX && projectors.contains(&report.node));
    if let Some(report) = silent {
        let (node, s) = (report.node, report.silent_ms / 1_000);
        let message = format!(
            "the build of index \"{name}\" waits: projector {node} has been silent for {s} s"
        );
        return Some((message, Some(BUILD_WAITS)));
    }
    let build = status.build_status(info)?;
    let left = build.seconds_left.map_or_else(String::new, |s| format!(", about {s} s left"));
    let BuildStatus { percent, entries, .. } = build;
    Some((format!("index \"{name}\" is built to {percent} %, {entries} entries{left}"), None))
}

/// Returns a text about the partitions of a version that no projector has. Returns `None` if some
/// projector has each partition.
pub fn lost_partitions(version: &Version) -> Option<String> {
    let mut named: Vec<String> =
        version.lost_partitions().map(|partition| partition.to_string()).collect();
    if named.len() > PARTITIONS_NAMED_MAX {
        named.truncate(PARTITIONS_NAMED_MAX);
        named.push("…".to_owned());
    }
    let what = || format!("no projector has the documents of partitions {}", named.join(", "));
    (!named.is_empty()).then(what)
}

/// Extends the error of a CREATE INDEX whose name is taken, if the existing index is still being
/// built.
pub fn with_build_note(error: Error, catalog: &Catalog, name: &str) -> Error {
    if error.code != ErrorCode::Exists || !is_being_built(catalog, name) {
        return error;
    }
    error.with_hint(format!("its build goes on in the background: {}", how_to_end(name)))
}

/// Sends a remark for a CREATE INDEX IF NOT EXISTS if the existing index is still being built.
/// The statement does not wait for that build.
pub fn tell_of_build(catalog: &Catalog, name: &str, remarks: &Remarks) {
    if is_being_built(catalog, name) {
        let message = format!("index \"{name}\" exists, and is being built in the background");
        remarks.send(message, Some("SHOW INDEXES shows its progress; CANCEL BUILD ends it"));
    }
}

/// Returns a text about what an interrupted CREATE INDEX or BUILD INDEX has left, and a
/// hint.
pub fn state_after_create(catalog: &Catalog, names: &[String]) -> (String, String) {
    let built: Vec<_> = names.iter().filter(|name| is_being_built(catalog, name)).collect();
    let serves = |name: &String| {
        catalog.index(name).is_some_and(|index| index.state == IndexState::Maintenance)
    };
    let list = |names: &[&String]| {
        names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
    };
    let all: Vec<_> = names.iter().collect();
    if let [first, ..] = built[..] {
        let left = format!("the build of index {} goes on in the background", list(&built));
        return (left, how_to_end(first));
    }
    if names.iter().all(serves) {
        let left = format!("index {} was complete by then, and serves scans", list(&all));
        return (left, "SHOW INDEXES shows it; DROP INDEX removes it".to_owned());
    }
    let left =
        format!("the build of index {} goes on in the background if it had begun", list(&all));
    (left, names.first().map_or_else(String::new, |name| how_to_end(name)))
}

/// Returns a text about what an interrupted ALTER INDEX or REINDEX has left, and a hint.
pub fn state_after_alter(catalog: &Catalog, name: &str) -> (String, String) {
    if is_being_built(catalog, name) {
        let left =
            format!("the build for index \"{name}\" goes on in the background, and switches to it");
        return (left, how_to_end(name));
    }
    let left = format!("index \"{name}\" is not being changed now");
    (left, "SHOW INDEXES shows its definition".to_owned())
}

/// Returns a text about what an interrupted LOAD VERSION has left, and a hint.
pub fn state_after_load(catalog: &Catalog, bucket: &str, version: &str) -> (String, String) {
    let set = catalog.bucket(bucket).and_then(|bucket| catalog.data_sets.get(&bucket.id));
    let loading = set.and_then(|set| set.loading()).filter(|(_, known)| known.name == version);
    if loading.is_none() {
        let left = format!("version '{version}' is not loading now");
        return (left, "SHOW VERSIONS shows the versions".to_owned());
    }
    let left = format!("the loading of version '{version}' goes on in the background");
    let name = quoted_name(bucket);
    let version = version.replace('\'', "''");
    let hint = format!(
        "SHOW VERSIONS shows its progress; ALTER BUCKET {name} CANCEL VERSION '{version}' ends it"
    );
    (left, hint)
}

/// Returns true if the index with a name, or a new generation of it, is being built.
fn is_being_built(catalog: &Catalog, name: &str) -> bool {
    catalog.index(name).is_some_and(|index| {
        index.state == IndexState::Backfill || catalog.next_generation(index.id).is_some()
    })
}

/// Returns the hint how a client can follow or end the build of an index.
fn how_to_end(name: &str) -> String {
    format!("SHOW INDEXES shows its progress; CANCEL BUILD {} ends it", quoted_name(name))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::model::ids::BucketId;

    use super::*;
    use crate::sql::ast::Statement;
    use crate::sql::definitions::define::definition;

    #[test]
    fn interruptions_report_the_state() {
        let mut catalog = Catalog::default();
        let mut add = |n, name: &str, state| {
            let spec = IndexSpec::new(name, "b");
            let info = IndexInfo::new(IndexId(n), BucketId(1), spec, Vec::new());
            catalog.indexes.insert(IndexId(n), Arc::new(IndexInfo { state, ..info }));
        };
        add(1, "built", IndexState::Backfill);
        add(2, "Two \"words\"", IndexState::Backfill);
        add(3, "whole", IndexState::Maintenance);
        add(4, "declared", IndexState::Pending);
        let left = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            state_after_create(&catalog, &names)
        };
        let (message, hint) = left(&["whole", "built"]);
        assert_eq!(message, "the build of index \"built\" goes on in the background");
        assert_eq!(hint, "SHOW INDEXES shows its progress; CANCEL BUILD built ends it");
        assert!(left(&["Two \"words\""]).1.contains("CANCEL BUILD \"Two \"\"words\"\"\" ends it"));
        assert!(left(&["whole"]).0.contains("serves scans"));
        for name in ["declared", "unheard_of"] {
            let (message, hint) = left(&[name]);
            assert!(message.ends_with("goes on in the background if it had begun"), "{message}");
            assert!(hint.contains(&format!("CANCEL BUILD {name}")), "{hint}");
        }
    }

    #[test]
    fn the_error_mentions_a_running_build() {
        let info = IndexInfo::new(IndexId(1), BucketId(1), IndexSpec::new("i", "b"), Vec::new());
        let mut catalog = Catalog::default();
        let exists = || Error::new(ErrorCode::Exists, "taken").with_hint("another name");
        catalog.indexes.insert(info.id, Arc::new(info));
        let hint = with_build_note(exists(), &catalog, "i").hint.expect("a hint");
        assert!(hint.contains("goes on") && hint.contains("CANCEL BUILD i"), "{hint}");
        assert_eq!(with_build_note(exists(), &catalog, "j"), exists(), "another object");
        let other = Error::unavailable("no leader");
        assert_eq!(with_build_note(other.clone(), &catalog, "i"), other);
    }

    #[test]
    fn paths_that_no_document_has_are_found_in_all_parts_of_a_definition() {
        let missing = |sql: &str| {
            let mut parsed = crate::sql::parse(sql).unwrap();
            let Statement::CreateIndex(create) = parsed.remove(0).statement else {
                panic!("an index")
            };
            let documents = ["{\"a\":1,\"b\":{\"c\":null}}", "{\"d\":[1],\"a\":2}"];
            let documents = documents.map(|text| Value::parse_json(text.as_bytes()).unwrap());
            missing_paths(&definition(&create).unwrap(), &documents)
        };
        assert!(
            missing("CREATE INDEX i ON b (a, b.c) INCLUDE (lower(d)) WHERE b.c IS NULL").is_empty()
        );
        assert_eq!(missing("CREATE INDEX i ON b (a, citty)"), ["citty"]);
        let everywhere =
            "CREATE INDEX i ON b (a) INCLUDE (lower(x)) WHERE y > 3 PARTITION BY HASH (z)";
        assert_eq!(missing(everywhere), ["x", "y", "z"]);
        assert!(missing("CREATE PRIMARY INDEX i ON b").is_empty());
    }
}
