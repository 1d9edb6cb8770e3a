//! Remarks for a client while an index is built: at once those about a likely mistake or an obstacle, then the progress of
//! the build at intervals.

use std::collections::BTreeSet;
use std::time::Duration;

use proto::Result;
use proto::expr::Expr;
use proto::model::bucket::BucketInfo;
use proto::model::ids::IndexId;
use proto::model::index::{IndexInfo, IndexSpec, PartitionBy};
use proto::rpc::api::SILENT_MS_MAX;
use proto::value::Value;
use tokio::time::timeout;

use super::backend::Backend;
use super::remarks::Remarks;

/// How long the answer to a remark's question may take; without an answer there is no remark.
const ASK_WAIT: Duration = Duration::from_secs(2);
/// The time between two remarks on the progress of a build.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);
/// The number of paths that one remark names.
const PATHS_NAMED_MAX: usize = 5;

const BUILD_WAITS: &str = "the build begins, or goes on, when a projector of the bucket answers; SHOW NODES shows the nodes";

/// Looks at some documents of the bucket of a new index: says that its projector does not answer, or which paths of the
/// definition none of the documents has.
pub async fn look_at_documents(backend: &dyn Backend, spec: &IndexSpec, remarks: &Remarks) {
    let catalog = backend.catalog();
    let Some(bucket) = catalog.bucket(&spec.bucket) else { return };
    match sample(backend, bucket).await {
        Ok(documents) if documents.is_empty() => {}
        Ok(documents) => {
            let missing = missing_paths(spec, &documents);
            if !missing.is_empty() {
                let (count, bucket) = (documents.len(), &spec.bucket);
                let message = format!(
                    "none of {count} sampled documents of bucket \"{bucket}\" has {}",
                    missing.join(", ")
                );
                remarks.tell(message, Some("look for a wrong name, if documents should have it"));
            }
        }
        Err(why) => {
            let message = format!("the build of index \"{}\" waits: {why}", spec.name);
            remarks.tell(message, Some(BUILD_WAITS));
        }
    }
}

/// Some documents of a bucket, or the reason why there are none.
async fn sample(
    backend: &dyn Backend,
    bucket: &BucketInfo,
) -> std::result::Result<Vec<Value>, String> {
    match timeout(ASK_WAIT, backend.sample(bucket)).await {
        Ok(Ok(documents)) => {
            // A stored document was parsed before; an unreadable one says nothing about paths.
            Ok(documents.iter().filter_map(|document| Value::parse_json(document).ok()).collect())
        }
        Ok(Err(error)) if error.is_retry() => Err(error.message),
        Ok(Err(_)) => Ok(Vec::new()),
        Err(_) => Err(format!("no projector of bucket \"{}\" answers", bucket.name)),
    }
}

/// The paths of a definition that are in none of the documents, as text.
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
    if let PartitionBy::Exprs(exprs) = &spec.partition {
        exprs.iter().for_each(&mut look);
    }
    missing.into_iter().take(PATHS_NAMED_MAX).collect()
}

/// Waits until an index serves scans, and tells at intervals how far the build is.
pub async fn wait_built(backend: &dyn Backend, index: IndexId, remarks: &Remarks) -> Result<()> {
    let mut ready = backend.wait_ready(index);
    loop {
        if let Ok(done) = timeout(PROGRESS_EVERY, &mut ready).await {
            return done;
        }
        let catalog = backend.catalog();
        let Some(info) = catalog.indexes.get(&index) else { continue };
        if let Ok(Some((message, hint))) = timeout(ASK_WAIT, progress(backend, info)).await {
            remarks.tell(message, hint);
        }
    }
}

/// How far a build is, or what it waits for; `None` if the leader does not know.
async fn progress(
    backend: &dyn Backend,
    info: &IndexInfo,
) -> Option<(String, Option<&'static str>)> {
    let status = backend.status().await.ok()?;
    let catalog = backend.catalog();
    let projectors = catalog.buckets.get(&info.bucket)?.assignment.projectors();
    let silent = status
        .nodes
        .iter()
        .find(|report| report.silent_ms >= SILENT_MS_MAX && projectors.contains(&report.node));
    let name = &info.spec.name;
    if let Some(report) = silent {
        let (node, s) = (report.node, report.silent_ms / 1_000);
        let message = format!(
            "the build of index \"{name}\" waits: projector {node} has been silent for {s} s"
        );
        return Some((message, Some(BUILD_WAITS)));
    }
    let build = status.build_of(info)?;
    // A node counts the entries of a slice when it has gathered them.
    let entries = match build.entries {
        0 => String::new(),
        entries => format!(", {entries} entries"),
    };
    Some((format!("index \"{name}\" is built to {} %{entries}", build.percent), None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::ast::Statement;
    use crate::sql::define::definition;

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
