//! Plots: bars of the medians with the range of all rounds, as SVG.

use std::fmt::Write;

use super::super::figures::{Figure, POSTGRESQL, Side};
use super::numbers::number;

/// The width of a plot in pixels, the unit of all lengths here.
const WIDTH: f64 = 760.0;
/// The left end of all bars; the servers' names are to the left of it.
const BARS_FROM: f64 = 150.0;
/// The length of the longest bar; the values are to the right of the bars.
const BAR_MAX: f64 = 500.0;
const BAR_HEIGHT: f64 = 14.0;
const LINE_HEIGHT: f64 = 20.0;
/// The height of a figure's name with the space below its bars.
const FIGURE_HEIGHT: f64 = 36.0;
const MARGIN: f64 = 12.0;

/// The colours of Sextant, of further servers of Sextant, and of PostgreSQL; readable on white.
const COLOURS: [&str; 3] = ["#0f766e", "#5eaaa3", "#94a3b8"];

/// Returns a plot of figures. Each figure has its own scale, because units and sizes differ.
pub fn bars(figures: &[&Figure]) -> String {
    let lines: usize = figures.iter().map(|figure| figure.sides.len()).sum();
    let height = 2.0 * MARGIN + figures.len() as f64 * FIGURE_HEIGHT + lines as f64 * LINE_HEIGHT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    let mut top = MARGIN;
    for figure in figures {
        svg += &one(figure, top);
        top += FIGURE_HEIGHT + figure.sides.len() as f64 * LINE_HEIGHT;
    }
    svg += "</svg>\n";
    svg
}

fn one(figure: &Figure, top: f64) -> String {
    let better = if figure.unit.is_rate() { "more is better" } else { "less is better" };
    let title = format!("{} ({}, {better})", figure.name, figure.unit.text());
    let mut svg = format!(
        "<text x=\"{MARGIN}\" y=\"{:.0}\" font-weight=\"bold\" fill=\"#111827\">{}</text>\n",
        top + LINE_HEIGHT - 6.0,
        escaped(&title)
    );
    let most = figure.sides.iter().map(|side| side.value.max).fold(0.0, f64::max);
    for (n, side) in figure.sides.iter().enumerate() {
        svg += &bar(side, n, most, top + (n + 1) as f64 * LINE_HEIGHT + 4.0);
    }
    svg
}

/// Returns a bar: the name, a bar up to the median, a line from the minimum to the maximum, and the
/// median as text.
fn bar(side: &Side, n: usize, most: f64, top: f64) -> String {
    let length = |value: f64| if most > 0.0 { value / most * BAR_MAX } else { 0.0 };
    let colour = match side.peer == POSTGRESQL {
        true => COLOURS[2],
        false => COLOURS[n.min(1)],
    };
    let (base, middle) = (top + BAR_HEIGHT - 3.0, top + BAR_HEIGHT / 2.0);
    let [median, min, max] = [side.value.median, side.value.min, side.value.max].map(length);
    let mut svg = String::new();
    let _infallible = write!(
        svg,
        "<text x=\"{:.0}\" y=\"{base:.0}\" text-anchor=\"end\" fill=\"#374151\">{}</text>\n\
         <rect x=\"{BARS_FROM}\" y=\"{top:.0}\" width=\"{median:.1}\" height=\"{BAR_HEIGHT}\" fill=\"{colour}\"/>\n\
         <line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle:.0}\" y2=\"{middle:.0}\" stroke=\"#111827\"/>\n\
         <text x=\"{:.1}\" y=\"{base:.0}\" fill=\"#374151\">{}</text>\n",
        BARS_FROM - 8.0,
        escaped(&side.peer),
        BARS_FROM + min,
        BARS_FROM + max,
        BARS_FROM + max + 8.0,
        number(side.value.median)
    );
    svg
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::super::figures::{Group, Unit};
    use super::super::super::spread::Spread;
    use super::*;

    fn figure(values: &[(&str, f64)]) -> Figure {
        let side = |(peer, value): &(&str, f64)| Side {
            peer: (*peer).into(),
            value: Spread { median: *value, min: *value / 2.0, max: *value },
            cpu_us: None,
            ratio: None,
        };
        let sides = values.iter().map(side).collect();
        Figure { name: "a < b & c".into(), group: Group::Ranges, unit: Unit::Ms, sides }
    }

    #[test]
    fn the_longest_bar_has_the_whole_length() {
        let svg = bars(&[&figure(&[("Sextant", 50.0), (POSTGRESQL, 200.0)])]);
        assert!(svg.contains("width=\"125.0\"") && svg.contains("width=\"500.0\""), "{svg}");
        assert!(svg.contains("a &lt; b &amp; c (ms, less is better)"), "{svg}");
        assert!(svg.contains(">50.0</text>") && svg.ends_with("</svg>\n"), "{svg}");
    }

    #[test]
    fn a_figure_of_zeros_has_bars_of_no_length() {
        let svg = bars(&[&figure(&[("Sextant", 0.0)])]);
        assert!(svg.contains("width=\"0.0\"") && !svg.contains("NaN"), "{svg}");
    }
}
