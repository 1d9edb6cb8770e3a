//! The Markdown file of a run.

use std::fmt::Write;
use std::path::Path;

use super::super::super::Outcome;
use super::super::figures::{Figure, Figures, Group, Side};
use super::numbers::{number, spread};
use super::svg;

/// The maximum number of characters in a line of text.
const LINE_CHARS_MAX: usize = 120;

const INTRODUCTION: &str = "Sextant as its users meet it: the published binary, over SQL. All servers ran on one machine \
    and in one run; clients shared its processors. This file is made by `bench report`.";
const READING: &str = "In each round the servers take turns, and their order changes. A cell has the median of the \
    rounds, and in parentheses the minimum and the maximum. *CPU* is the CPU time of the server, of all its processes, in \
    microseconds for each request, row or document. *×* is the rate over PostgreSQL's rate, or PostgreSQL's time over the \
    time, formed round by round: below 1 PostgreSQL is ahead. The bench compares the servers' answers and ends with an \
    error if one differs.";
const SERVERS: &str = "PostgreSQL has `shared_buffers = 1GB`, `max_wal_size = 4GB`, `maintenance_work_mem = 512MB`, and its \
    default durability. Its table has a primary key and an index on `n` that includes `id`. `sextant dev` runs three \
    coordinators, a projector, three indexers and a router in one process; the figures of *Sextant, processes* are of one \
    coordinator, a projector, three indexers and a router as processes.";

/// Writes the Markdown file, and its plots into a folder with its name without extension.
pub fn write(json: &Path, out: &Path) -> Outcome<()> {
    let text = std::fs::read_to_string(json)
        .map_err(|error| format!("read the figures in {}: {error}", json.display()))?;
    let figures: Figures = serde_json::from_str(&text)
        .map_err(|error| format!("read the figures in {}: {error}", json.display()))?;
    let plots = out.with_extension("");
    if plots == out {
        return Err("--out must end in .md: the plots' folder has its name without that".into());
    }
    std::fs::create_dir_all(&plots)?;
    let folder = plots.file_name().unwrap_or_default().to_string_lossy();
    for group in Group::ALL {
        let of_group = of_group(&figures, group);
        if !of_group.is_empty() {
            let file = plots.join(group.file_name()).with_extension("svg");
            std::fs::write(file, svg::bars(&of_group))?;
        }
    }
    Ok(std::fs::write(out, document(&figures, &folder))?)
}

fn of_group(figures: &Figures, group: Group) -> Vec<&Figure> {
    figures.figures.iter().filter(|figure| figure.group == group).collect()
}

/// Returns the text of the file. `folder` contains the plots.
fn document(figures: &Figures, folder: &str) -> String {
    let mut text = head(figures);
    text += &slower(figures);
    for group in Group::ALL {
        let of_group = of_group(figures, group);
        if of_group.is_empty() {
            continue;
        }
        let (title, file) = (group.title(), group.file_name());
        let _infallible = write!(text, "\n## {title}\n\n{}\n\n", wrapped(about(group)));
        let _infallible = write!(text, "![{title}]({folder}/{file}.svg)\n\n");
        text += &table(&of_group);
    }
    text += "\n## Repeat it\n\n```console\n";
    for command in &figures.commands {
        let _infallible = writeln!(text, "$ {command}");
    }
    text + "```\n"
}

/// Returns the text with line breaks instead of some spaces, so that no line of several words
/// exceeds the limit.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let chars = word.chars().count();
        if length > 0 {
            let fits = length + 1 + chars <= LINE_CHARS_MAX;
            lines.push(if fits { ' ' } else { '\n' });
            length = if fits { length + 1 } else { 0 };
        }
        lines += word;
        length += chars;
    }
    lines
}

fn head(figures: &Figures) -> String {
    let Figures { date, machine, rows, seconds, rounds, .. } = figures;
    let (cores, model, memory) =
        (machine.cores, &machine.cpu_model, number(machine.memory_mb as f64));
    let mut text = format!(
        "# Performance\n\n{}\n\n| | |\n|---|---|\n| date | {date} |\n\
         | machine | {cores} cores ({model}), {memory} MiB of memory |\n",
        wrapped(INTRODUCTION)
    );
    for version in &figures.versions {
        let _infallible = writeln!(text, "| {} | {} |", version.peer, version.version);
    }
    let _infallible = write!(
        text,
        "| documents | {} in each bucket, of about 90 bytes |\n\
         | rounds | {rounds} of {seconds} s for each figure |\n\n{}\n\n{}\n",
        number(*rows as f64),
        wrapped(READING),
        wrapped(SERVERS)
    );
    text
}

/// Returns a text about the meaning of a group's figures.
fn about(group: Group) -> &'static str {
    match group {
        Group::Ranges => {
            "Prepared `SELECT id, n … WHERE n >= $1 AND n < $2 ORDER BY n`, or `WHERE n = $1`, at random places, from 8 \
             connections on one thread."
        }
        Group::WholeIndex => {
            "`COPY (SELECT id, n … ORDER BY n) TO STDOUT` from one connection; `min(n), max(n)` from 8; `count(*)` from one. \
             *CPU* of the COPY is for a row."
        }
        Group::Loading => {
            "`CREATE INDEX` over all documents. `COPY` into a bucket with one index of 8 slices, from its beginning until a \
             `request_plus` scan has been answered; at PostgreSQL into a table with a primary key and the same index. *CPU* \
             is for a document."
        }
        Group::Writes => {
            "Prepared upserts of random documents that exist, with random keys, in a bucket with one index; one document each, \
             acknowledged when it is durable. *CPU* includes the work until the index shows all of them."
        }
        Group::Freshness => {
            "Under upserts of 64 clients at half of the rate that the server sustains until its index shows all of them. One \
             more client writes a document and asks for its key from the acknowledgement on, with the default consistency, \
             until it is there. Then one client scans with `request_plus`. PostgreSQL shows each write from its \
             acknowledgement on, so that its times are those of one query."
        }
        Group::Idle => "The CPU time that a loaded server takes without clients.",
    }
}

fn table(figures: &[&Figure]) -> String {
    let mut text =
        "| figure | server | value | CPU µs | × PostgreSQL |\n|---|---|--:|--:|--:|\n".to_owned();
    for figure in figures {
        for (n, side) in figure.sides.iter().enumerate() {
            let name = if n == 0 { &*figure.name } else { "" };
            text += &row(name, side, figure.unit.text());
        }
    }
    text
}

fn row(name: &str, side: &Side, unit: &str) -> String {
    let cpu = side.cpu_us.map_or(String::new(), |cpu| number(cpu.median));
    let ratio = side.ratio.map_or(String::new(), spread);
    format!("| {name} | {} | {} {unit} | {cpu} | {ratio} |\n", side.peer, spread(side.value))
}

/// Returns a text about the figures in which PostgreSQL is faster, the largest difference first.
fn slower(figures: &Figures) -> String {
    let mut lost: Vec<(f64, String)> = Vec::new();
    for figure in &figures.figures {
        for side in &figure.sides {
            if let Some(ratio) = side.ratio.filter(|ratio| ratio.median < 1.0) {
                let line = format!("- {}: {} × {}\n", figure.name, side.peer, spread(ratio));
                lost.push((ratio.median, line));
            }
        }
    }
    lost.sort_by(|a, b| a.0.total_cmp(&b.0));
    match lost.is_empty() {
        true => String::new(),
        false => {
            let lines: String = lost.into_iter().map(|(_, line)| line).collect();
            format!("\n## Where PostgreSQL is ahead\n\n{lines}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::figures::{Machine, POSTGRESQL, Sample, Series, Unit, Version};
    use super::*;

    fn figures() -> Figures {
        let series = |peer: &str, value: f64| Series {
            peer: peer.into(),
            samples: vec![Sample { value, cpu_us: Some(12.0) }],
        };
        let figure = |name: &str, ours: f64| {
            let all = [series("Sextant", ours), series(POSTGRESQL, 1000.0)];
            Figure::from_series(name, Group::Writes, Unit::DocumentsPerS, &all).expect("a round")
        };
        Figures {
            date: "2001-12-31".into(),
            commands: vec!["cargo run".into()],
            machine: Machine { cores: 4, cpu_model: "A CPU".into(), memory_mb: 8000 },
            versions: vec![Version { peer: "Sextant".into(), version: "1.2.3".into() }],
            rows: 10_000,
            seconds: 1,
            rounds: 1,
            figures: vec![figure("won", 2000.0), figure("lost", 500.0)],
        }
    }

    #[test]
    fn the_file_tells_losses_first_and_has_tables_and_commands() {
        let text = document(&figures(), "performance");
        let parts = [
            "## Where PostgreSQL is ahead\n\n- lost: Sextant × 0.500\n\n## Writes of single documents",
            "![Writes of single documents](performance/writes.svg)",
            "| won | Sextant | 2,000 documents/s | 12.0 | 2.00 |\n|  | PostgreSQL | 1,000 documents/s | 12.0 |  |\n",
            "```console\n$ cargo run\n```\n",
            "| machine | 4 cores (A CPU), 8,000 MiB of memory |\n| Sextant | 1.2.3 |",
        ];
        for part in parts {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
        assert!(!text.contains("## Ranges"), "a group without figures is left out");
    }

    #[test]
    fn a_line_ends_before_the_word_that_is_too_much() {
        let text = wrapped(&["1234567890"; 24].join(" "));
        assert_eq!(text.lines().map(str::len).collect::<Vec<_>>(), [120, 120, 21]);
        assert_eq!(wrapped("one word"), "one word");
    }

    #[test]
    fn the_files_come_from_the_json_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let (json, out) = (dir.path().join("figures.json"), dir.path().join("performance.md"));
        let text = serde_json::to_string(&figures()).expect("JSON");
        std::fs::write(&json, text).expect("a file");
        write(&json, &out).expect("a report");
        assert!(dir.path().join("performance/writes.svg").exists());
        assert!(out.exists());
        assert!(write(&json, &dir.path().join("performance")).is_err(), "its folder is missing");
        assert!(write(&out, &out).is_err(), "the report is no JSON");
    }
}
