//! `sextant rebalance`: starts a rebalance and shows its progress until all moves have ended.

use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use proto::{Error, ErrorCode, Result};
use tokio_postgres::{Client, SimpleQueryMessage, SimpleQueryRow};

use super::client::print_text;
use super::sql_client::{Target, describe};

/// The interval between two checks of the moves.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// `sextant rebalance`
#[derive(Debug, clap::Args)]
pub struct RebalanceArgs {
    #[command(flatten)]
    target: Target,
    /// Rebalance only this index
    #[arg(long, value_name = "NAME")]
    index: Option<String>,
    /// Print the planned moves without starting them
    #[arg(long)]
    dry_run: bool,
    /// Start the moves and do not wait for their end
    #[arg(long)]
    no_wait: bool,
}

/// Runs the command. Returns an error if a move is undone.
pub async fn run(args: RebalanceArgs) -> Result<()> {
    let client = args.target.connect().await?;
    let statement = match &args.index {
        Some(index) => format!("REBALANCE INDEX \"{}\"", index.replace('"', "\"\"")),
        None => "REBALANCE".to_owned(),
    };
    for row in query(&client, &format!("EXPLAIN {statement}")).await? {
        print_text(&format!("{}\n", row.get(0).unwrap_or_default()))?;
    }
    if args.dry_run {
        return Ok(());
    }
    let before = moves(&client).await?.into_keys().max().unwrap_or(0);
    query(&client, &statement).await?;
    if args.no_wait { Ok(()) } else { wait(&client, before).await }
}

/// Runs a query and returns its rows.
async fn query(client: &Client, sql: &str) -> Result<Vec<SimpleQueryRow>> {
    let messages = client
        .simple_query(sql)
        .await
        .map_err(|error| Error::new(ErrorCode::InvalidParameter, describe(&error)))?;
    let rows = messages.into_iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    Ok(rows.collect())
}

/// A row of SHOW MOVES.
struct Move {
    what: String,
    stage: String,
    percent: u64,
    seconds_left: Option<u64>,
    note: String,
}

/// Returns the rows of SHOW MOVES, by the number of the move.
async fn moves(client: &Client) -> Result<BTreeMap<u64, Move>> {
    let mut moves = BTreeMap::new();
    for row in query(client, "SHOW MOVES").await? {
        let text = |column: &str| row.get(column).unwrap_or_default().to_owned();
        let number = |column: &str| row.get(column).and_then(|text| text.parse::<u64>().ok());
        let mv = Move {
            what: format!("{} slice {}", text("index"), text("slice")),
            stage: text("stage"),
            percent: number("percent").unwrap_or(0),
            seconds_left: number("seconds_left"),
            note: text("note"),
        };
        moves.insert(number("move").unwrap_or(0), mv);
    }
    Ok(moves)
}

/// Shows a progress bar until no move with a number above `before` is in progress. A move in the
/// stage `done` counts as ended, although its source still waits for older scans.
async fn wait(client: &Client, before: u64) -> Result<()> {
    let style = ProgressStyle::with_template("{bar:40} {percent:>3}% {msg}");
    let bar = ProgressBar::new(100);
    bar.set_style(style.map_err(|error| Error::internal(error.to_string()))?);
    loop {
        let moves = moves(client).await?;
        let under_way = |mv: &&Move| matches!(&*mv.stage, "start" | "pending" | "catchup");
        let open: Vec<&Move> = moves.values().filter(under_way).collect();
        let mine = moves.range(before + 1..).map(|(_, mv)| mv);
        let (count, done) = mine.fold((0, 0), |(count, done), mv| {
            let percent = if under_way(&mv) { mv.percent } else { 100 };
            (count + 1, done + percent)
        });
        bar.set_position(u64::checked_div(done, count).unwrap_or(100));
        if open.is_empty() {
            bar.finish_with_message("done");
            return ended(&moves, before);
        }
        let left = open.iter().filter_map(|mv| mv.seconds_left).max();
        let left = left.map_or(String::new(), |left| format!(", {left} s left"));
        let first = open.iter().find(|mv| mv.stage != "start").unwrap_or(&open[0]);
        let what = format!("{} to go{left}; {} ({})", open.len(), first.what, first.stage);
        bar.set_message(what);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Prints the result of the moves with a number above `before`; an error if a move was undone.
fn ended(moves: &BTreeMap<u64, Move>, before: u64) -> Result<()> {
    let mine = moves.range(before + 1..).map(|(_, mv)| mv);
    let undone: Vec<&Move> = mine.clone().filter(|mv| mv.stage == "undone").collect();
    match undone.first() {
        None => print_text(&format!("{} moves carried out\n", mine.count())),
        Some(first) => Err(Error::unavailable(format!(
            "{} moves were undone; {}: {}",
            undone.len(),
            first.what,
            first.note
        ))
        .with_hint("SHOW MOVES shows the reasons; run `sextant rebalance` again to retry")),
    }
}
