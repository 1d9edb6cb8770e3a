//! The client commands `sql` and `status`. They use the SQL port of a running cluster like any
//! PostgreSQL client.

use std::io::{IsTerminal, Read, Write};

use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use futures::TryStreamExt;
use proto::{Error, ErrorCode, Result};
use tokio_postgres::{Client, SimpleQueryMessage};

use super::sql_client::{Target, describe};

/// `sextant sql`
#[derive(Debug, clap::Args)]
pub struct SqlArgs {
    #[command(flatten)]
    target: Target,
    /// Statements to run, separated by semicolons; standard input if it is left out
    #[arg(short, long, value_name = "SQL")]
    command: Vec<String>,
}

/// `sextant status`
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    #[command(flatten)]
    target: Target,
}

/// Runs statements and prints their results.
pub async fn sql(args: SqlArgs) -> Result<()> {
    let mut statements = args.command.join(";\n");
    if args.command.is_empty() {
        if std::io::stdin().is_terminal() {
            eprintln!("reading statements from standard input; end with control-D");
        }
        std::io::stdin().read_to_string(&mut statements)?;
    }
    let client = args.target.connect().await?;
    print(&client, &statements).await
}

/// Runs statements and prints each result when it arrives, so that the results before an error
/// are visible.
async fn print(client: &Client, statements: &str) -> Result<()> {
    let failed = |error| Error::new(ErrorCode::InvalidParameter, describe(&error));
    let messages = client.simple_query_raw(statements).await.map_err(failed)?;
    let mut messages = std::pin::pin!(messages);
    let mut table: Option<(Table, u64)> = None;
    while let Some(message) = messages.try_next().await.map_err(failed)? {
        match message {
            SimpleQueryMessage::RowDescription(columns) => {
                let mut head = Table::new();
                head.load_style(UTF8_HORIZONTAL_ONLY);
                head.set_header(columns.iter().map(|column| column.name().to_owned()));
                table = Some((head, 0));
            }
            SimpleQueryMessage::Row(row) => {
                let cells = (0..row.len()).map(|n| row.get(n).unwrap_or("").to_owned());
                let (table, shown) = table.get_or_insert_with(|| (Table::new(), 0));
                table.add_row(cells);
                *shown += 1;
            }
            SimpleQueryMessage::CommandComplete(rows) => match table.take() {
                Some((table, shown)) => {
                    print_text(&format!("{table}\n{}", count_line(rows, shown)))?
                }
                None => print_text(&format!("ok ({rows})\n"))?,
            },
            _ => {}
        }
    }
    Ok(())
}

/// Returns the line below a table with its number of rows. `counted` is the number in the command
/// tag. SHOW and EXPLAIN have zero in their tags, so for them the number of printed rows
/// (`shown`) is used.
fn count_line(counted: u64, shown: u64) -> String {
    match (counted, shown) {
        (0, 1..) => String::new(),
        (1, _) => "(1 row)\n".to_owned(),
        (rows, _) => format!("({rows} rows)\n"),
    }
}

/// Prints to standard output. A closed pipe (`| head`) is not an error.
pub(super) fn print_text(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Prints the state of a cluster.
pub async fn status(args: StatusArgs) -> Result<()> {
    let client = args.target.connect().await?;
    for what in ["NODES", "BUCKETS", "INDEXES", "SLICES", "MOVES"] {
        print_text(&format!("{what}\n"))?;
        print(&client, &format!("SHOW {what}")).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_rows_are_counted_for_show() {
        assert_eq!(count_line(0, 3), "");
        assert_eq!(count_line(0, 0), "(0 rows)\n");
        assert_eq!(count_line(1, 1), "(1 row)\n");
        assert_eq!(count_line(7, 7), "(7 rows)\n");
    }
}
