//! `sextant inspect`: prints and checks a file of an indexer or a projector.

use std::path::{Path, PathBuf};

use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use projector::inspect::{
    ItemContent, ItemInfo as ChangeInfo, describe_changes, describe_checkpoint,
};
use proto::env::Env;
use proto::model::ids::{BucketId, VbucketId};
use proto::model::open_commit::CommitId;
use proto::{Error, ErrorCode, Result};
use serde::Serialize;
use storage::fragment::{self, BlockInfo, FragmentInfo};
use storage::log::{self, RecordInfo, RecordState, SegmentInfo};
use storage::manifest::{self, CheckedManifest, ItemInfo};

use super::client::print_text;

/// `sextant inspect`
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, clap::Subcommand)]
enum Kind {
    /// A fragment of slices or documents: fragments/*.frag
    Fragment(FileArgs),
    /// A segment of an indexer's commit log: log/*.log
    Log(FileArgs),
    /// A segment of a bucket's change log: buckets/*/log/*.log
    Changes(FileArgs),
    /// A checkpoint of a bucket, or the manifest of a projector: checkpoint.1, source.1
    Checkpoint(FileArgs),
    /// A manifest of an indexer: manifests/*.manifest
    Manifest(FileArgs),
}

#[derive(Debug, clap::Args)]
struct FileArgs {
    /// The file to print
    file: PathBuf,
    /// Print each block or record, not only totals and damaged places
    #[arg(long)]
    all: bool,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// Prints a file. Returns an error for a damaged file, after all readable contents are printed.
pub async fn run(args: Args) -> Result<()> {
    let env = Env::real();
    let inside = env.clone();
    env.blocking(move || match args.kind {
        Kind::Fragment(args) => inspect_fragment(&inside, &args),
        Kind::Log(args) => inspect_log(&inside, &args),
        Kind::Changes(args) => inspect_changes(&inside, &args),
        Kind::Checkpoint(args) => inspect_checkpoint(&inside, &args),
        Kind::Manifest(args) => inspect_manifest(&inside, &args),
    })
    .await
}

/// Prints a value as one line of JSON.
fn print_json(value: &impl Serialize) -> Result<()> {
    let line = serde_json::to_string(value).map_err(|error| Error::internal(error.to_string()))?;
    print_text(&(line + "\n"))
}

/// Stores an error in `first` unless `first` has one already. Used by printers in callbacks,
/// which cannot return errors.
fn keep_first_error(first: &mut Result<()>, printed: Result<()>) {
    if first.is_ok() {
        *first = printed;
    }
}

/// Returns an error if a file has damaged places.
fn check_undamaged(path: &Path, count: u64) -> Result<()> {
    match count {
        0 => Ok(()),
        _ => {
            let message = format!("damaged places in {}: {count}", path.display());
            Err(Error::new(ErrorCode::Corrupt, message))
        }
    }
}

/// Returns an empty table with these column heads.
fn table(head: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    table.set_header(head.iter().copied());
    table
}

/// Prints a fragment.
fn inspect_fragment(env: &Env, args: &FileArgs) -> Result<()> {
    let mut printed = Ok(());
    let info = fragment::describe(env, &args.file, &mut |block| {
        if args.all {
            keep_first_error(
                &mut printed,
                if args.json { print_json(block) } else { print_text(&block_line(block)) },
            );
        }
    })?;
    printed?;
    if args.json {
        print_json(&info)?
    } else {
        print_text(&fragment_text(&info))?
    }
    check_undamaged(&args.file, info.findings.len() as u64)
}

/// Returns a line of text about a block of a fragment.
fn block_line(block: &BlockInfo) -> String {
    let BlockInfo { block: number, slice, offset, stored_bytes, raw_bytes, rows, .. } = block;
    let (tombstones, oldest, newest, first) =
        (block.tombstones, block.oldest, block.newest, &block.first);
    format!(
        "block {number} at {offset}: slice {slice}, {rows} rows, {tombstones} tombstones, epochs \
         {oldest} to {newest}, {stored_bytes} of {raw_bytes} bytes, from {first}\n"
    )
}

/// Returns a text about a fragment.
fn fragment_text(info: &FragmentInfo) -> String {
    let stats = &info.stats;
    let mut text = format!(
        "fragment {}: {} bytes, columns {}\n{} rows, {} tombstones, epochs {} to {}, {}\n\
         blocks {} bytes, {} uncompressed; filter {} bytes\n",
        info.id,
        info.file_bytes,
        info.columns,
        stats.rows,
        stats.tombstones,
        stats.oldest,
        stats.newest,
        if stats.versions { "several versions of some entries" } else { "one version per entry" },
        info.block_bytes,
        info.raw_bytes,
        info.filter_bytes,
    );
    let mut slices = table(&["slice", "blocks", "rows", "bytes", "first", "last"]);
    for section in &info.sections {
        slices.add_row([
            section.slice.to_string(),
            section.blocks.to_string(),
            section.rows.to_string(),
            section.bytes.to_string(),
            section.first.clone(),
            section.last.clone(),
        ]);
    }
    text += &format!("{slices}\n");
    for finding in &info.findings {
        text += &format!("damaged: {finding}\n");
    }
    text
}

/// Prints a segment of an indexer's commit log.
fn inspect_log(env: &Env, args: &FileArgs) -> Result<()> {
    let mut printed = Ok(());
    let info = log::describe(env, &args.file, &mut |record| {
        if args.all || record.state != RecordState::Ok {
            keep_first_error(
                &mut printed,
                if args.json { print_json(record) } else { print_text(&record_line(record)) },
            );
        }
    })?;
    printed?;
    let SegmentInfo {
        base, log_id, end, records, payload_bytes, room_bytes, damaged: count, ..
    } = info;
    if args.json {
        print_json(&info)?;
    } else {
        print_text(&format!(
            "segment of log {log_id:016x} from LSN {base} to {end}: {records} records with {payload_bytes} bytes{}\n",
            unused_space_text(room_bytes)
        ))?;
    }
    check_undamaged(&args.file, count).map_err(|error| {
        error.with_hint(
            "a crash may leave a torn record at the end of the last segment; the next start removes it",
        )
    })
}

/// Prints a segment of a bucket's change log.
fn inspect_changes(env: &Env, args: &FileArgs) -> Result<()> {
    let (mut printed, mut items, mut mutations, mut count) = (Ok(()), 0, 0, 0);
    let info = describe_changes(&*env.fs, &args.file, &mut |item| {
        let is_damaged = matches!(item.content, ItemContent::Damaged { .. });
        items += 1;
        count += u64::from(is_damaged);
        if let ItemContent::Run { first, last, .. } = item.content {
            mutations += last.0 + 1 - first.0;
        }
        if args.all || is_damaged {
            keep_first_error(
                &mut printed,
                if args.json { print_json(item) } else { print_text(&change_line(item)) },
            );
        }
    })?;
    printed?;
    let SegmentInfo { base, log_id, end, records, room_bytes, .. } = info;
    if args.json {
        print_json(&info)?;
    } else {
        print_text(&format!(
            "segment of change log {log_id:016x} from LSN {base} to {end}: {records} groups with {items} items, {mutations} mutations{}\n",
            unused_space_text(room_bytes)
        ))?;
    }
    check_undamaged(&args.file, count.max(info.damaged))
}

/// Returns a text about the unused space, filled with zeros, after the last record of a segment.
fn unused_space_text(bytes: u64) -> String {
    if bytes == 0 { String::new() } else { format!(", and room of {bytes} bytes behind them") }
}

/// Returns a line of text about an item of a change log.
fn change_line(item: &ChangeInfo) -> String {
    let ChangeInfo { lsn, group_offset, bytes, content } = item;
    let what = match content {
        ItemContent::Run { vbucket, vbuuid, first, last } => {
            format!("seqnos {first} to {last} of vbucket {vbucket}, branch {vbuuid:x}")
        }
        ItemContent::Record => "the record of the bucket".into(),
        ItemContent::Rewind { vbucket, to } => format!("vbucket {vbucket} goes back to seqno {to}"),
        ItemContent::Remove { vbucket } => format!("vbucket {vbucket} is removed"),
        ItemContent::Begin { vbucket, purged } => {
            format!("vbucket {vbucket} begins, purged up to seqno {purged}")
        }
        ItemContent::Documents { vbucket, documents } => {
            format!("{documents} copied documents of vbucket {vbucket}")
        }
        ItemContent::Purge { points } => format!("{} vbuckets are purged", points.len()),
        ItemContent::Committed { transaction, affected, participants } => {
            let beside = match &participants[..] {
                [] => String::new(),
                all => format!(" here, with buckets {}", joined(all)),
            };
            format!("transaction {transaction} is committed, {affected} documents{beside}")
        }
        ItemContent::Prepared { transaction, documents, participants } => {
            let all = joined(participants);
            format!(
                "transaction {transaction} is prepared, {documents} documents, with buckets {all}"
            )
        }
        ItemContent::RolledBack { transaction } => {
            format!("transaction {transaction} is rolled back")
        }
        ItemContent::Settled { commit: CommitId::Joint(transaction) } => {
            format!("an epoch has transaction {transaction} in all its buckets")
        }
        ItemContent::Settled { commit: CommitId::Pushed(transaction) } => {
            format!("transaction {transaction} of the producer is no longer waited for")
        }
        ItemContent::Pushed { transaction, vbuckets } => {
            let vbuckets: Vec<_> = vbuckets.iter().map(VbucketId::to_string).collect();
            let vbuckets = vbuckets.join(", ");
            format!(
                "transaction {transaction} of the producer is committed, in vbuckets {vbuckets}"
            )
        }
        ItemContent::Damaged { what } => format!("damaged: {what}"),
    };
    format!("LSN {lsn}, group at {group_offset}: {what}, {bytes} bytes\n")
}

/// Returns the numbers of buckets as text.
fn joined(buckets: &[BucketId]) -> String {
    let numbers: Vec<_> = buckets.iter().map(BucketId::to_string).collect();
    numbers.join(", ")
}

/// Prints a checkpoint of a bucket or the manifest of a projector.
fn inspect_checkpoint(env: &Env, args: &FileArgs) -> Result<()> {
    let contents = describe_checkpoint(&*env.fs, &args.file)?;
    if args.json {
        return print_json(&contents);
    }
    let text = serde_json::to_string_pretty(&contents);
    print_text(&(text.map_err(|error| Error::internal(error.to_string()))? + "\n"))
}

/// Returns a line of text about a record of a commit log.
fn record_line(record: &RecordInfo) -> String {
    let what = match (record.state, record.mark) {
        (RecordState::Ok, false) => "record",
        (RecordState::Ok, true) => "mark",
        (RecordState::BadPayload, _) => "damaged: record with a bad payload",
        (RecordState::Unreadable, _) => "damaged: unreadable",
    };
    let durable = record.durable.map(|lsn| format!(", durable to {lsn}")).unwrap_or_default();
    format!("LSN {} at {}: {what}, {} bytes{durable}\n", record.lsn, record.offset, record.bytes)
}

/// Prints a manifest of an indexer.
fn inspect_manifest(env: &Env, args: &FileArgs) -> Result<()> {
    let described = manifest::describe(env, &args.file)?;
    if args.json { print_json(&described) } else { print_text(&manifest_text(&described)) }
}

/// Returns a text about a manifest of an indexer.
fn manifest_text(described: &CheckedManifest) -> String {
    match described {
        CheckedManifest::Node { next_file, buckets, dead } => {
            let mut marks = table(&["bucket", "epoch", "parent", "horizon"]);
            for mark in buckets {
                marks.add_row([
                    mark.bucket.to_string(),
                    mark.epoch.to_string(),
                    mark.parent.to_string(),
                    mark.horizon.to_string(),
                ]);
            }
            let dead = dead.iter().map(|dead| {
                let (bucket, above, to) = (dead.bucket, dead.above, dead.to);
                format!("bucket {bucket}: a rollback removed the epochs above {above} up to {to}\n")
            });
            format!("node: the next file is {next_file}\n{marks}\n{}", dead.collect::<String>())
        }
        CheckedManifest::Index {
            index,
            generation,
            name,
            bucket,
            floor,
            points,
            flushed,
            entries,
            items,
        } => {
            let floor = match floor {
                Some(floor) if points.is_empty() => format!("answers from epoch {floor} on"),
                Some(floor) => format!(
                    "answers from epoch {floor} on, can go back to {}",
                    points.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
                ),
                None => "is being built".into(),
            };
            let entries: u64 = entries.values().sum();
            let fragments = fragments_table(items);
            format!(
                "index {index} {name:?}, generation {generation}, bucket {bucket}: {floor}, all up \
                 to epoch {flushed} is in fragments, which have {entries} entries\n{fragments}\n"
            )
        }
    }
}

/// Returns a table of the fragments in a manifest.
fn fragments_table(items: &[ItemInfo]) -> Table {
    let mut fragments =
        table(&["slice", "group", "fragment", "rows of", "columns", "epochs", "from", "to"]);
    for item in items {
        fragments.add_row([
            item.slice.to_string(),
            item.group.clone(),
            item.file.to_string(),
            item.rows_of.to_string(),
            item.columns.clone(),
            format!("{} to {}", item.epoch_from, item.epoch_to),
            item.low.clone(),
            item.high.clone().unwrap_or_else(|| "end".into()),
        ]);
    }
    fragments
}
