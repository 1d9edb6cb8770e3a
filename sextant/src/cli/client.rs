//! Client commands. They use the SQL port of a running cluster like any PostgreSQL client.

use std::io::{IsTerminal, Read, Write};

use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use proto::{Error, ErrorCode, Result};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

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

/// Connects to a cluster's SQL port.
pub async fn connect(at: &str) -> Result<Client> {
    let (host, port) = at.rsplit_once(':').ok_or_else(|| {
        Error::new(ErrorCode::InvalidParameter, format!("{at:?} is not HOST:PORT"))
    })?;
    let parameters = format!("host={host} port={port} user=sextant connect_timeout=5");
    let (client, connection) =
        tokio_postgres::connect(&parameters, NoTls).await.map_err(|error| {
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

async fn print(client: &Client, statements: &str) -> Result<()> {
    let messages = client
        .simple_query(statements)
        .await
        .map_err(|error| Error::new(ErrorCode::InvalidParameter, describe(&error)))?;
    let mut table: Option<Table> = None;
    for message in messages {
        match message {
            SimpleQueryMessage::RowDescription(columns) => {
                let mut head = Table::new();
                head.load_style(UTF8_HORIZONTAL_ONLY);
                head.set_header(columns.iter().map(|column| column.name().to_owned()));
                table = Some(head);
            }
            SimpleQueryMessage::Row(row) => {
                let cells = (0..row.len()).map(|n| row.get(n).unwrap_or("").to_owned());
                table.get_or_insert_with(Table::new).add_row(cells);
            }
            SimpleQueryMessage::CommandComplete(rows) => match table.take() {
                Some(table) => say(&format!("{table}\n({rows} rows)\n"))?,
                None => say(&format!("ok ({rows})\n"))?,
            },
            _ => {}
        }
    }
    Ok(())
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
