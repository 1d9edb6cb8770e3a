//! `sextant source recover`: recovers a projector that lacks documents which its indexes contain.
//!
//! No other node has these documents, so nothing happens automatically: the bucket is not served,
//! and its indexes keep their entries. An operator restores the newest copy of the directory, or
//! accepts the loss (`--accept-loss`), usually after the remaining index entries are written to a
//! file (`--report`).

use std::io::Write;
use std::path::{Path, PathBuf};

use futures::TryStreamExt;
use projector::{DiskStoreOptions, LostCommit, RecoveredBucket, RecoveryOutcome, recover_source};
use proto::env::Env;
use proto::model::history::MissingEnd;
use proto::model::ids::BucketId;
use proto::{Error, ErrorCode, Result};
use serde_json::{Map, Value};
use tokio_postgres::{Client, SimpleQueryMessage};

use super::client::print_text;
use super::sql_client::{Target, describe};
use super::verify::nodes;

/// The maximum number of lost commits of a bucket that are printed.
const COMMITS_SHOWN: usize = 50;

/// `sextant source`
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: SourceCommand,
}

#[derive(Debug, clap::Subcommand)]
enum SourceCommand {
    /// Recover a projector that has lost documents, or write down what its indexes still know of
    /// them
    Recover(RecoverArgs),
}

/// `sextant source recover`
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["accept_loss", "report"])))]
struct RecoverArgs {
    /// Give up what is lost: make the damaged buckets of a stopped projector again from what is whole, and accept the losses
    /// that it was told of at its last start. The indexes go back to what is left when it starts
    #[arg(long, requires = "data")]
    accept_loss: bool,
    /// The data directory of a projector, or of `sextant dev`
    #[arg(long, value_name = "DIR", conflicts_with = "report")]
    data: Option<PathBuf>,
    /// With --accept-loss: give up all documents of a bucket that cannot be made again, by its name or number
    #[arg(long, value_name = "BUCKET", conflicts_with = "report")]
    give_up: Vec<String>,
    /// Write all entries of the bucket's indexes to a file, one JSON object per line, and change nothing
    #[arg(long, value_name = "FILE", requires = "bucket")]
    report: Option<PathBuf>,
    /// The bucket to report
    #[arg(long, value_name = "NAME", conflicts_with = "accept_loss")]
    bucket: Option<String>,
    #[command(flatten)]
    target: Target,
}

/// Runs a command.
pub async fn run(args: Args) -> Result<()> {
    let SourceCommand::Recover(args) = args.command;
    match (args.report, args.bucket, args.data) {
        (Some(file), Some(bucket), _) => report(&args.target, &bucket, &file).await,
        (_, _, Some(data)) => {
            let env = Env::real();
            let inside = env.clone();
            env.blocking(move || accept_loss(&inside, &data, &args.give_up)).await
        }
        _ => Err(Error::internal("a recovery without a directory and without a report")),
    }
}

/// Recovers the directory of each projector in `data`.
fn accept_loss(env: &Env, data: &Path, given_up: &[String]) -> Result<()> {
    let mut dirs = nodes(env, data)?;
    dirs.retain(|dir| projector::is_source_dir(env, dir));
    if dirs.is_empty() {
        let what = format!("{} is not the data directory of a projector", data.display());
        return Err(Error::new(ErrorCode::InvalidParameter, what)
            .with_hint("use the --data of the projector or of `sextant dev`"));
    }
    let mut unsaved = 0;
    for dir in dirs {
        let _lock = env.fs.lock_dir(&dir).map_err(|error| {
            Error::from(error)
                .context(format!("locking {}", dir.display()))
                .with_hint("stop the projector first")
        })?;
        let found = recover_source(env, &dir, &DiskStoreOptions::default(), given_up)
            .map_err(|error| error.context(dir.display().to_string()))?;
        unsaved +=
            found.iter().filter(|b| matches!(b.outcome, RecoveryOutcome::Unsaved(_))).count();
        print_text(&text(&dir, &found))?;
    }
    match unsaved {
        0 => print_text(
            "Start the projector. What it then lacks of a published epoch is told by statements that need the documents; \
                  stop it and run this command again to accept that.\n",
        ),
        _ => Err(Error::new(
            ErrorCode::Corrupt,
            format!("buckets that cannot be made again: {unsaved}"),
        )
        .with_hint("restore the named files from a copy, or give these buckets up with --give-up")),
    }
}

/// Returns a text about the recovered buckets of a projector's directory.
fn text(dir: &Path, found: &[RecoveredBucket]) -> String {
    let mut text = format!("{}: {} buckets\n", dir.display(), found.len());
    for RecoveredBucket { bucket, name, outcome, commits } in found {
        let bucket = format!("bucket {name:?} ({bucket})");
        text += &match outcome {
            RecoveryOutcome::Whole(None) => format!("{bucket}: its files are whole\n"),
            RecoveryOutcome::Whole(Some(epoch)) => format!(
                "{bucket}: its files are whole; that it lacks a part of epoch {epoch} is accepted\n"
            ),
            RecoveryOutcome::GivenUp(old) => {
                format!("{bucket}: given up; its files stay in {}\n", old.display())
            }
            RecoveryOutcome::Unsaved(error) => format!("{bucket} cannot be made again: {error}\n"),
            RecoveryOutcome::MadeAgain { damage, lost, old } => {
                let old = old.display();
                let made = format!(
                    "{bucket} was made again from what is whole; its old files stay in {old}\n  damage: {damage}\n"
                );
                lost.iter().fold(made, |made, MissingEnd { vbucket, has, had }| {
                    let gone = had.0 - has.0;
                    made + &format!(
                        "  vbucket {vbucket} ends at seqno {has}, not {had}: {gone} mutations are lost\n"
                    )
                })
            }
        };
        text += &lost_commits(found, commits);
        if matches!(outcome, RecoveryOutcome::Whole(Some(_))) {
            text += "  commits over several buckets that it lacks are halved where another bucket has its part; nothing here names them\n";
        }
    }
    let may_halve = |one: &RecoveredBucket| {
        !one.commits.is_empty() || matches!(one.outcome, RecoveryOutcome::Whole(Some(_)))
    };
    if found.iter().any(may_halve) {
        text += "When the projectors run, SHOW ROLLBACKS names the halved commits that they find, with the bucket that has its part.\n";
    }
    text
}

/// Returns a text about the commits over several buckets whose changes in a bucket are lost.
fn lost_commits(found: &[RecoveredBucket], commits: &[LostCommit]) -> String {
    let named = |bucket: &BucketId| match found.iter().find(|known| known.bucket == *bucket) {
        Some(known) => format!("{:?} ({bucket})", known.name),
        None => bucket.to_string(),
    };
    let mut text = String::new();
    for LostCommit { transaction, participants, was_committed } in
        commits.iter().take(COMMITS_SHOWN)
    {
        let buckets = participants.iter().map(named).collect::<Vec<_>>().join(", ");
        let what = match was_committed {
            true => "its commit is lost here, and halved where another bucket has its part",
            false => "it was prepared; if its first bucket has committed it, its part here is lost",
        };
        text += &format!("  transaction {transaction} over buckets {buckets}: {what}\n");
    }
    let more = commits.len().saturating_sub(COMMITS_SHOWN);
    if more > 0 {
        text += &format!("  and {more} transactions more\n");
    }
    text
}

/// Writes the entries of all indexes of a bucket to a file. An index that cannot be read, because
/// it is being built, is skipped.
async fn report(target: &Target, bucket: &str, path: &Path) -> Result<()> {
    let client = target.connect().await?;
    let indexes = indexes(&client, bucket).await?;
    let file = std::fs::File::create_new(path)
        .map_err(|error| Error::from(error).context(format!("creating {}", path.display())))?;
    let mut out = std::io::BufWriter::new(file);
    let (mut lines, mut unread) = (0, Vec::new());
    for index in &indexes {
        match write_entries(&client, index, &mut out).await {
            Ok(written) => lines += written,
            Err(error) if error.code == ErrorCode::Io => return Err(error),
            Err(error) => unread.push(format!("index {index:?} is not in the report: {error}")),
        }
    }
    let file = out.into_inner().map_err(|error| Error::from(error.into_error()))?;
    file.sync_all()?;
    print_text(&format!("{}: {lines} entries of {} indexes\n", path.display(), indexes.len()))?;
    match unread.is_empty() {
        true => Ok(()),
        false => Err(Error::unavailable(unread.join("; "))),
    }
}

/// Returns the error for a failed statement.
fn sql_error(error: &tokio_postgres::Error) -> Error {
    Error::new(ErrorCode::InvalidParameter, describe(error))
}

/// Returns the names of the bucket's indexes.
async fn indexes(client: &Client, bucket: &str) -> Result<Vec<String>> {
    let rows = client.simple_query("SHOW INDEXES").await.map_err(|error| sql_error(&error))?;
    let name = |row: &SimpleQueryMessage| match row {
        SimpleQueryMessage::Row(row) if row.get("bucket") == Some(bucket) => {
            row.get("name").map(str::to_owned)
        }
        _ => None,
    };
    let found: Vec<String> = rows.iter().filter_map(name).collect();
    match found.is_empty() {
        false => Ok(found),
        true => {
            let what = format!("bucket {bucket:?} has no index");
            Err(Error::new(ErrorCode::Unknown, what).with_hint("SHOW INDEXES lists all indexes"))
        }
    }
}

/// Writes the entries of an index to a file as they arrive. Returns their number.
async fn write_entries(client: &Client, index: &str, out: &mut impl Write) -> Result<u64> {
    let select = format!("SELECT * FROM \"{}\"", index.replace('"', "\"\""));
    let messages = client.simple_query_raw(&select).await.map_err(|error| sql_error(&error))?;
    let mut messages = std::pin::pin!(messages);
    let mut lines = 0;
    while let Some(message) = messages.try_next().await.map_err(|error| sql_error(&error))? {
        let SimpleQueryMessage::Row(row) = message else { continue };
        let text = |n: usize| row.get(n).map_or(Value::Null, Value::from);
        let columns = row.columns().iter().enumerate();
        let values: Map<String, Value> =
            columns.map(|(n, column)| (column.name().to_owned(), text(n))).collect();
        let line = serde_json::json!({ "index": index, "entry": values });
        writeln!(out, "{line}")?;
        lines += 1;
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use proto::model::ids::{Epoch, Seqno, TransactionId, VbucketId};

    use super::*;

    fn found(
        n: u64,
        name: &str,
        outcome: RecoveryOutcome,
        commits: Vec<LostCommit>,
    ) -> RecoveredBucket {
        RecoveredBucket { bucket: BucketId(n), name: name.into(), outcome, commits }
    }

    fn lost(n: u64, was_committed: bool) -> LostCommit {
        let participants = vec![BucketId(1), BucketId(2), BucketId(7)];
        LostCommit { transaction: TransactionId(n), participants, was_committed }
    }

    #[test]
    fn commits_that_a_recovery_may_halve_are_printed_with_their_buckets() {
        let damage = Error::new(ErrorCode::Corrupt, "offset 7: the group is damaged");
        let end = MissingEnd { vbucket: VbucketId(0), has: Seqno(3), had: Seqno(5) };
        let made = RecoveryOutcome::MadeAgain { damage, lost: vec![end], old: "/old".into() };
        let many = (0..COMMITS_SHOWN as u64 + 3).map(|n| lost(n, true)).collect();
        let all = [
            found(1, "one", made, vec![lost(50, true), lost(51, false)]),
            found(2, "two", RecoveryOutcome::Whole(Some(Epoch(9))), Vec::new()),
            found(3, "three", RecoveryOutcome::GivenUp("/given".into()), many),
        ];
        let text = text(Path::new("/data"), &all);
        let buckets = "over buckets \"one\" (1), \"two\" (2), 7: ";
        for expected in [
            format!("  transaction 50 {buckets}its commit is lost here, and halved where another bucket has its part\n"),
            format!("  transaction 51 {buckets}it was prepared; if its first bucket has committed it, its part here is lost\n"),
            "that it lacks a part of epoch 9 is accepted\n  commits over several buckets that it lacks are halved".to_owned(),
            "  and 3 transactions more\n".to_owned(),
            "SHOW ROLLBACKS names the halved commits".to_owned(),
        ] {
            assert!(text.contains(&expected), "{expected:?} in {text}");
        }
        let whole = [found(2, "two", RecoveryOutcome::Whole(None), Vec::new())];
        let silent = super::text(Path::new("/data"), &whole);
        assert!(!silent.contains("halved"), "{silent}");
    }
}
