//! The two text formats of `/metrics`.
//!
//! Clients that request it (`Accept: application/openmetrics-text`) get OpenMetrics 1.0. All
//! others get the classic text format of Prometheus, version 0.0.4. The classic format has no
//! units and no line at the end, and the heads of counters contain the names with their suffix.

use std::fmt;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

/// The media type by which a client requests OpenMetrics.
const OPEN_METRICS: &str = "application/openmetrics-text";

/// A text format of `/metrics`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricsFormat {
    /// OpenMetrics, version 1.0.0.
    OpenMetrics,
    /// The classic text format of Prometheus, version 0.0.4.
    Classic,
}

impl MetricsFormat {
    /// Returns the format for a client with this `Accept` header.
    pub(crate) fn for_accept(accept: Option<&str>) -> Self {
        let is_refused = |range: &str| {
            let parameters = range.split(';').skip(1).map(str::trim);
            let weight = parameters.filter_map(|parameter| parameter.strip_prefix("q=")).next();
            weight.and_then(|weight| weight.parse::<f64>().ok()) == Some(0.0)
        };
        let asks = |range: &str| {
            let media = range.split(';').next().unwrap_or_default().trim();
            media.eq_ignore_ascii_case(OPEN_METRICS) && !is_refused(range)
        };
        match accept.is_some_and(|accept| accept.split(',').any(asks)) {
            true => Self::OpenMetrics,
            false => Self::Classic,
        }
    }

    /// Returns the content type of the text.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Classic => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Returns the metrics of a registry as text.
    pub(crate) fn text(self, registry: &Registry) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, registry)?;
        let text = sort_samples(&text);
        Ok(match self {
            Self::OpenMetrics => text,
            Self::Classic => classic(&text),
        })
    }
}

/// Sorts the samples of each metric, because the library returns them in random order. The
/// samples of a histogram are not sorted, since they are already ordered by their bounds; no
/// histogram of this program has labels.
fn sort_samples(text: &str) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut is_histogram = false;
    for run in lines.chunk_by_mut(|one, next| is_sample(one) == is_sample(next)) {
        match is_sample(run[0]) {
            false => is_histogram = run.iter().any(|line| line.trim_end().ends_with(" histogram")),
            true if !is_histogram => run.sort_unstable(),
            true => {}
        }
    }
    lines.concat()
}

/// Returns true for a line with a sample, and not a head.
fn is_sample(line: &str) -> bool {
    !line.starts_with('#')
}

/// Converts a text from OpenMetrics to the classic format.
fn classic(text: &str) -> String {
    let is_known = |line: &&str| !line.starts_with("# UNIT ") && !line.starts_with("# EOF");
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().filter(is_known) {
        match line.strip_prefix("# TYPE ").and_then(|rest| rest.strip_suffix(" counter")) {
            Some(name) => {
                if let Some(help) = lines.last_mut() {
                    *help = help.replacen(
                        &format!("# HELP {name} "),
                        &format!("# HELP {name}_total "),
                        1,
                    );
                }
                lines.push(format!("# TYPE {name}_total counter"));
            }
            None => lines.push(line.to_owned()),
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_metrics_only_on_request() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, expected) in [
            (None, MetricsFormat::Classic),
            (Some("*/*"), MetricsFormat::Classic),
            (Some("text/plain, Application/OpenMetrics-Text"), MetricsFormat::OpenMetrics),
            (Some(prometheus), MetricsFormat::OpenMetrics),
            (Some("application/openmetrics-text; q=0"), MetricsFormat::Classic),
        ] {
            assert_eq!(MetricsFormat::for_accept(accept), expected, "{accept:?}");
        }
    }

    #[test]
    fn samples_are_sorted_but_not_buckets() {
        let text = "# TYPE a counter\na_total{n=\"2\"} 1\na_total{n=\"1\"} 1\n# TYPE b histogram\n\
                    b_sum 1\nb_bucket{le=\"2.5\"} 1\nb_bucket{le=\"10.0\"} 1\nb_bucket{le=\"+Inf\"} 1\n\
                    # TYPE c gauge\nc{n=\"2\"} 1\nc{n=\"1\"} 1\n# EOF\n";
        let ordered = text
            .replace(
                "a_total{n=\"2\"} 1\na_total{n=\"1\"} 1",
                "a_total{n=\"1\"} 1\na_total{n=\"2\"} 1",
            )
            .replace("c{n=\"2\"} 1\nc{n=\"1\"} 1", "c{n=\"1\"} 1\nc{n=\"2\"} 1");
        assert_eq!(sort_samples(text), ordered);
    }

    #[test]
    fn classic_counter_heads_have_suffixes() {
        let text = "# HELP a Some.\n# TYPE a counter\na_total 1\n# HELP b_seconds Time.\n# TYPE b_seconds gauge\n\
                    # UNIT b_seconds seconds\nb_seconds 1\n# EOF\n";
        let expected = "# HELP a_total Some.\n# TYPE a_total counter\na_total 1\n# HELP b_seconds Time.\n\
                        # TYPE b_seconds gauge\nb_seconds 1\n";
        assert_eq!(classic(text), expected);
    }
}
