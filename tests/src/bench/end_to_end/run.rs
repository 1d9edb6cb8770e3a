//! One run of the benchmark: starts the servers, measures, and stops them, even after an error or a
//! signal.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use super::super::Outcome;
use super::bench::Bench;
use super::documents::Documents;
use super::figures::{Figures, Group, Version};
use super::machine;
use super::measure::{freshness, idle, loading, ranges, whole_index, writes};
use super::peers::Peer;
use super::peers::postgres::Postgres;
use super::peers::sextant::Sextant;
use super::report::table;
use super::settings::{Other, Settings};

/// Runs the bench, prints its table, and writes the JSON file if one is wanted.
pub fn run(settings: &Settings) -> Outcome<()> {
    settings.check_json()?;
    let parent = settings.dir.clone().unwrap_or_else(std::env::temp_dir);
    let dir = tempfile::Builder::new().prefix("bench-").tempdir_in(parent)?;
    // PostgreSQL's user passes through it.
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // A signal drops the measurement, and with it the servers.
    let figures = runtime.block_on(async {
        tokio::select! {
            biased;
            signal = signalled() => Err(signal),
            figures = measure(settings, dir.path()) => figures,
        }
    })?;
    print!("{}", table::text(&figures));
    if let Some(path) = &settings.json {
        std::fs::write(path, serde_json::to_string_pretty(&figures)? + "\n")?;
    }
    Ok(())
}

/// Waits for a signal that ends the process; returns the error that names it.
async fn signalled() -> Box<dyn std::error::Error + Send + Sync> {
    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let (mut interrupt, mut terminate) = match signals {
        (Ok(interrupt), Ok(terminate)) => (interrupt, terminate),
        (Err(error), _) | (_, Err(error)) => return error.into(),
    };
    tokio::select! {
        _ = interrupt.recv() => "interrupted".into(),
        _ = terminate.recv() => "terminated".into(),
    }
}

async fn measure(settings: &Settings, dir: &Path) -> Outcome<Figures> {
    let mut bench = start(settings, dir).await?;
    loading::load_read_bucket(&bench).await?;
    if settings.wants(&[Group::Idle]) {
        idle::measure(&mut bench).await?;
    }
    if settings.wants(&[Group::Ranges]) {
        ranges::measure(&mut bench).await?;
    }
    // The other server's processes would only take processor time from the measured ones.
    let beside = bench.beside.take();
    let peers = bench.peers.iter().chain(&beside);
    let versions = peers
        .map(|peer| Version { peer: peer.name().into(), version: peer.version().into() })
        .collect();
    drop(beside);
    if settings.wants(&[Group::WholeIndex]) {
        whole_index::measure(&mut bench).await?;
    }
    if settings.wants(&[Group::Loading]) {
        loading::create_index(&mut bench).await?;
    }
    // Writes go into the bucket that was loaded last.
    if settings.wants(&[Group::Loading, Group::Writes, Group::Freshness]) {
        loading::copy_in(&mut bench).await?;
    }
    if settings.wants(&[Group::Writes]) {
        writes::measure(&mut bench).await?;
    }
    if settings.wants(&[Group::Freshness]) {
        freshness::measure(&mut bench).await?;
    }
    Ok(Figures {
        date: machine::day()?,
        commands: settings.commands(),
        machine: machine::this()?,
        versions,
        rows: settings.rows,
        seconds: settings.seconds,
        rounds: settings.rounds,
        figures: std::mem::take(&mut bench.figures),
    })
}

async fn start(settings: &Settings, dir: &Path) -> Outcome<Bench> {
    let documents = Documents::new(settings.rows)?;
    let binary = settings.sextant()?;
    let mut peers: Vec<Box<dyn Peer>> = vec![Box::new(Sextant::dev(&binary, dir)?)];
    if settings.peers.contains(&Other::Postgres) {
        peers.push(Box::new(Postgres::start(dir)?));
    }
    let beside: Option<Box<dyn Peer>> = match settings.processes {
        true => Some(Box::new(Sextant::processes(&binary, dir).await?)),
        false => None,
    };
    let time = Duration::from_secs(settings.seconds);
    Ok(Bench { peers, beside, documents, time, rounds: settings.rounds, figures: Vec::new() })
}
