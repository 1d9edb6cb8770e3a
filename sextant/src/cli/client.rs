//! Client commands. They use the SQL port of a running cluster like any PostgreSQL client.

use std::io::{IsTerminal, Read, Write};
use std::time::Duration;

use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use futures::TryStreamExt;
use proto::{Error, ErrorCode, Result};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// Time limit for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The cluster to connect to.
#[derive(Debug, clap::Args)]
pub struct Target {
    /// Address of the cluster's SQL port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7432", env = "SEXTANT_SQL")]
    pub(super) at: String,
}

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

/// The host and port of `HOST:PORT`; an IPv6 address stands in brackets.
fn host_and_port(at: &str) -> Result<(&str, u16)> {
    let parts = at.rsplit_once(':').and_then(|(host, port)| {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = bare.unwrap_or(host);
        // Without brackets the port may be a part of the address.
        let is_clear = bare.is_some() || !host.contains(':');
        Some((host, port.parse().ok()?)).filter(|_| is_clear && !host.is_empty())
    });
    parts.ok_or_else(|| {
        Error::new(ErrorCode::InvalidParameter, format!("{at:?} is not HOST:PORT"))
            .with_hint("write an IPv6 address in brackets: [::1]:7432")
    })
}

/// Connects to a cluster's SQL port.
pub async fn connect(at: &str) -> Result<Client> {
    let (host, port) = host_and_port(at)?;
    let mut config = tokio_postgres::Config::new();
    config.host(host).port(port).user("sextant").connect_timeout(CONNECT_TIMEOUT);
    let (client, connection) = config.connect(NoTls).await.map_err(|error| {
        Error::unavailable(format!("connecting to {at}: {}", describe(&error)))
            .with_hint("is the cluster running? `sextant dev` starts one and prints its ports")
    })?;
    // The task ends when the client is dropped.
    proto::env::Env::real()
        .spawn_request("sql-connection", async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "SQL connection");
            }
        })
        .detach();
    Ok(client)
}

/// The text of a PostgreSQL error with its causes.
pub fn describe(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        let hint = error.hint().map(|hint| format!(" (hint: {hint})")).unwrap_or_default();
        return format!("{} [{}]{hint}", error.message(), error.code().code());
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
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
    let client = connect(&args.target.at).await?;
    print(&client, &statements).await
}

/// Prints each result as it arrives, so that the results before an error are seen.
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
                Some((table, shown)) => say(&format!("{table}\n{}", count_line(rows, shown)))?,
                None => say(&format!("ok ({rows})\n"))?,
            },
            _ => {}
        }
    }
    Ok(())
}

/// The line under a table. The tags of SHOW and EXPLAIN have no count, which reads as zero rows.
fn count_line(counted: u64, shown: u64) -> String {
    match (counted, shown) {
        (0, 1..) => String::new(),
        (1, _) => "(1 row)\n".to_owned(),
        (rows, _) => format!("({rows} rows)\n"),
    }
}

/// Prints to standard output. A closed pipe (`| head`) is not an error.
pub(super) fn say(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Prints the state of a cluster.
pub async fn status(args: StatusArgs) -> Result<()> {
    let client = connect(&args.target.at).await?;
    for what in ["NODES", "BUCKETS", "INDEXES", "SLICES", "MOVES"] {
        say(&format!("{what}\n"))?;
        print(&client, &format!("SHOW {what}")).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_one_of_ipv6_in_brackets() {
        assert_eq!(host_and_port("[::1]:7432").expect("an address"), ("::1", 7432));
        assert_eq!(host_and_port("db.example:1").expect("an address"), ("db.example", 1));
        for wrong in ["::1:7432", "localhost", ":7432", "[]:7432", "h:port", "h:99999"] {
            assert!(host_and_port(wrong).expect_err(wrong).hint.is_some(), "{wrong}");
        }
    }

    #[test]
    fn a_table_without_a_counted_tag_has_no_line_of_zero_rows() {
        assert_eq!(count_line(0, 3), "");
        assert_eq!(count_line(0, 0), "(0 rows)\n");
        assert_eq!(count_line(1, 1), "(1 row)\n");
        assert_eq!(count_line(7, 7), "(7 rows)\n");
    }
}
