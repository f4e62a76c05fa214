//! Progress on stderr: a bar on a terminal, log lines elsewhere. Stdout contains only results.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::support::network::url_secrets::hide_url_secrets;
use crate::support::terminal::verbosity::{ProgressMode, Verbosity};
use crate::support::text::cut::cut_message;
use crate::support::text::{escape_control_chars, format_count};

/// Time between two log lines.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Shows the progress of a run.
#[derive(Debug)]
pub struct Progress {
    view: ProgressView,
    verbosity: Verbosity,
    total: Option<u64>,
    /// Name of the counted items, in the plural.
    items: &'static str,
    /// Word for a result (`verdict`), and word for an item without one (`unscored`).
    results: [&'static str; 2],
    throughput_start: Option<ThroughputStart>,
}

/// The counts of a run so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProgressCounts {
    /// Cases read, unreadable ones included.
    pub cases: u64,
    /// Verdicts of this process, without those reused from an earlier run.
    pub new_verdicts: u64,
    /// Pairs with a verdict.
    pub judged: u64,
    /// Pairs without a verdict.
    pub unscored: u64,
}

#[derive(Debug)]
enum ProgressView {
    Bar(ProgressBar),
    Log { last: Instant },
    Nothing,
}

/// The time and counts at the first new verdict. Reused verdicts do not count for the throughput.
#[derive(Clone, Copy, Debug)]
struct ThroughputStart {
    time: Instant,
    cases: u64,
    new_verdicts: u64,
}

impl Progress {
    /// Creates the progress over cases. `total`: their number, if known.
    pub fn new(mode: ProgressMode, verbosity: Verbosity, total: Option<u64>) -> Self {
        Self::with_items(mode, verbosity, total, "cases")
    }

    /// Creates the progress over other items. `items`: their name in the plural.
    pub fn with_items(
        mode: ProgressMode,
        verbosity: Verbosity,
        total: Option<u64>,
        items: &'static str,
    ) -> Self {
        let terminal = io::stderr().is_terminal();
        let view = match mode {
            _ if verbosity.quiet => ProgressView::Nothing,
            ProgressMode::None => ProgressView::Nothing,
            ProgressMode::Auto if !terminal => ProgressView::log(),
            ProgressMode::Log => ProgressView::log(),
            ProgressMode::Auto | ProgressMode::Bar => ProgressView::bar(total, items),
        };
        let results = ["verdict", "unscored"];
        Self { view, verbosity, total, items, results, throughput_start: None }
    }

    /// Sets the word for a result, and the word for an item without one.
    #[must_use]
    pub fn with_results(mut self, result: &'static str, missing: &'static str) -> Self {
        self.results = [result, missing];
        if let ProgressView::Bar(bar) = &self.view {
            bar.set_message(format!("waiting for the first {result}"));
        }
        self
    }

    /// Updates the counts, and shows them if it is time for a log line.
    pub fn update(&mut self, counts: ProgressCounts) {
        let ProgressCounts { cases, new_verdicts, .. } = counts;
        // The clock starts after the first new verdict: loading does not count.
        if self.throughput_start.is_none() && new_verdicts > 0 {
            self.throughput_start =
                Some(ThroughputStart { time: Instant::now(), cases, new_verdicts });
        }
        let speed = self.throughput_start.and_then(|start| {
            let elapsed = start.time.elapsed().as_secs_f64();
            let cases_left = self.total?.saturating_sub(cases);
            throughput(elapsed, new_verdicts - start.new_verdicts, cases - start.cases, cases_left)
        });
        match &mut self.view {
            ProgressView::Bar(bar) => {
                bar.set_position(cases);
                bar.set_message(describe_counts(counts, speed, self.results));
            }
            ProgressView::Log { last } if last.elapsed() >= LOG_INTERVAL => {
                *last = Instant::now();
                let total = self.total.map_or(String::new(), |total| format!(" of {total}"));
                print_lines(&format!(
                    "{cases}{total} {}, {}",
                    self.items,
                    describe_counts(counts, speed, self.results)
                ));
            }
            ProgressView::Log { .. } | ProgressView::Nothing => {}
        }
    }

    /// Updates the number of items of work that gives no verdicts. `message`: what else is known.
    pub fn advance(&mut self, items: u64, message: &str) {
        match &mut self.view {
            ProgressView::Bar(bar) => {
                bar.set_position(items);
                bar.set_message(message.to_owned());
            }
            ProgressView::Log { last } if last.elapsed() >= LOG_INTERVAL => {
                *last = Instant::now();
                print_lines(&format!("{items} {}, {message}", self.items));
            }
            ProgressView::Log { .. } | ProgressView::Nothing => {}
        }
    }

    /// Prints a message, unless `--quiet` is set.
    pub fn note(&self, text: &str) {
        if !self.verbosity.quiet {
            self.print(text);
        }
    }

    /// Prints the reason for an exit code that is not 0, even with `--quiet`.
    pub fn warn(&self, text: &str) {
        self.print(text);
    }

    /// Returns true if `--verbose` is set.
    pub fn is_verbose(&self) -> bool {
        self.verbosity.verbose
    }

    /// Prints a message if `--verbose` is set.
    pub fn note_verbose(&self, text: &str) {
        if self.verbosity.verbose {
            self.print(text);
        }
    }

    /// Runs a function that prints, without the progress bar on the terminal.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.view {
            ProgressView::Bar(bar) => bar.suspend(print),
            ProgressView::Log { .. } | ProgressView::Nothing => print(),
        }
    }

    /// Removes the progress bar.
    pub fn finish(&self) {
        if let ProgressView::Bar(bar) = &self.view {
            bar.finish_and_clear();
        }
    }

    fn print(&self, text: &str) {
        match &self.view {
            ProgressView::Bar(bar) => bar.suspend(|| print_lines(text)),
            ProgressView::Log { .. } | ProgressView::Nothing => print_lines(text),
        }
    }
}

impl ProgressView {
    fn log() -> Self {
        Self::Log { last: Instant::now() }
    }

    fn bar(total: Option<u64>, items: &str) -> Self {
        let template = match total {
            Some(_) => format!("{{bar:32}} {{pos}}/{{len}} {items}, {{msg}}"),
            None => format!("{{spinner}} {{pos}} {items}, {{msg}}"),
        };
        let style = ProgressStyle::with_template(&template);
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
        // Without a valid template the bar has the default style.
        let bar = match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        };
        bar.set_message("waiting for the first verdict");
        Self::Bar(bar)
    }
}

/// Returns verdicts per second, and the seconds left.
fn throughput(elapsed: f64, verdicts: u64, cases: u64, cases_left: u64) -> Option<(f64, f64)> {
    if elapsed < 0.05 || verdicts == 0 || cases == 0 {
        return None;
    }
    Some((verdicts as f64 / elapsed, cases_left as f64 * elapsed / cases as f64))
}

fn describe_counts(
    counts: ProgressCounts,
    speed: Option<(f64, f64)>,
    [result, missing]: [&str; 2],
) -> String {
    let mut text = format_count(counts.judged, result);
    if counts.unscored > 0 {
        let _ = write!(text, ", {} {missing}", counts.unscored);
    }
    if let Some((rate, left)) = speed {
        let _ = write!(text, ", {rate:.1}/s, {} left", format_duration(left));
    }
    text
}

/// Formats a duration in seconds with at most two units.
pub fn format_duration(seconds: f64) -> String {
    if seconds < 9.95 {
        return format!("{seconds:.1} s");
    }
    let rounded = seconds.round() as u64;
    match rounded {
        0..60 => format!("{rounded} s"),
        60..3600 => format!("{} min {:02} s", rounded / 60, rounded % 60),
        _ => format!("{} h {:02} min", rounded / 3600, rounded / 60 % 60),
    }
}

/// Prints lines to stderr with control characters escaped and without credentials in URLs. Ignores
/// a closed stderr.
pub(crate) fn print_lines(text: &str) {
    let text = hide_url_secrets(text);
    let text = cut_message(&text);
    let lines: Vec<String> = text.lines().map(escape_control_chars).collect();
    let _ = writeln!(io::stderr(), "{}", lines.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_follows_from_new_cases() {
        let (rate, left) = throughput(10.0, 40, 20, 60).unwrap();
        assert!((rate - 4.0).abs() < 1e-9);
        assert!((left - 30.0).abs() < 1e-9);
        assert_eq!(throughput(0.0, 1, 1, 1), None);
    }

    #[test]
    fn durations_have_two_units() {
        assert_eq!(format_duration(0.04), "0.0 s");
        assert_eq!(format_duration(59.4), "59 s");
        assert_eq!(format_duration(61.0), "1 min 01 s");
        assert_eq!(format_duration(7_260.0), "2 h 01 min");
    }
}
