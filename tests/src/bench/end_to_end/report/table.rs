//! The table that a run prints.

use std::fmt::Write;

use super::super::figures::{Figures, Group, Side};
use super::numbers::{number, spread};

/// Returns the figures as text, with a line for each server of each figure.
pub fn text(figures: &Figures) -> String {
    let mut text = String::new();
    let machine = &figures.machine;
    let Figures { rows, seconds, rounds, date, .. } = figures;
    let _infallible = writeln!(
        text,
        "{date}: {rows} documents, {rounds} rounds of {seconds} s, {} cores ({}), {} MiB",
        machine.cores, machine.cpu_model, machine.memory_mb
    );
    for group in Group::ALL {
        let mut of_group = figures.figures.iter().filter(|figure| figure.group == group).peekable();
        if of_group.peek().is_none() {
            continue;
        }
        let _infallible = writeln!(text, "\n{}", group.title());
        for figure in of_group {
            let _infallible = writeln!(text, "  {} ({})", figure.name, figure.unit.text());
            for side in &figure.sides {
                text += &line(side);
            }
        }
    }
    text
}

fn line(side: &Side) -> String {
    let cpu = side.cpu_us.map_or(String::new(), |cpu| format!("CPU {} µs", number(cpu.median)));
    let ratio = side.ratio.map_or(String::new(), |ratio| format!("× {}", spread(ratio)));
    let line = format!("    {:<20} {:<34} {cpu:<16} {ratio}", side.peer, spread(side.value));
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::super::super::spread::Spread;
    use super::*;

    #[test]
    fn a_line_has_the_rate_the_cpu_time_and_the_ratio() {
        let spread = |median| Spread { median, min: median / 2.0, max: median * 2.0 };
        let side = Side {
            peer: "Sextant".into(),
            value: spread(1000.0),
            cpu_us: Some(spread(40.0)),
            ratio: Some(spread(1.5)),
        };
        let words: Vec<String> = line(&side).split_whitespace().map(str::to_owned).collect();
        let expected = "Sextant 1,000 (500 to 2,000) CPU 40.0 µs × 1.50 (0.750 to 3.00)";
        assert_eq!(words.join(" "), expected);
        let without = line(&Side { cpu_us: None, ratio: None, ..side });
        assert!(without.ends_with("(500 to 2,000)\n"), "{without:?}");
    }
}
