//! How far a run is: a bar on a terminal, a line now and then elsewhere, nothing when asked.
//!
//! Everything goes to stderr; a person who reads stdout gets results only.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::support::terminal::verbosity::{ProgressMode, Verbosity};
use crate::support::text::{plural, printable};

/// How often a line is written where there is no bar.
const PAUSE: Duration = Duration::from_secs(10);

/// Tells a person how far a run is.
#[derive(Debug)]
pub struct Progress {
    view: ProgressView,
    verbosity: Verbosity,
    total: Option<u64>,
    /// What is counted, in the plural.
    what: &'static str,
    pace: Option<ThroughputStart>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProgressCounts {
    /// Cases read, unreadable ones included.
    pub cases: u64,
    /// Verdicts made by this process, not reused from an earlier run.
    pub fresh: u64,
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

/// Where the first new verdict came: what was reused before it says nothing about the speed.
#[derive(Clone, Copy, Debug)]
struct ThroughputStart {
    start: Instant,
    cases: u64,
    fresh: u64,
}

impl Progress {
    /// Progress over a number of cases, if it is known.
    pub fn new(mode: ProgressMode, verbosity: Verbosity, total: Option<u64>) -> Self {
        Self::of(mode, verbosity, total, "cases")
    }

    /// Progress over a number of other things, named in the plural.
    pub fn of(
        mode: ProgressMode,
        verbosity: Verbosity,
        total: Option<u64>,
        what: &'static str,
    ) -> Self {
        let terminal = io::stderr().is_terminal();
        let view = match mode {
            _ if verbosity.quiet => ProgressView::Nothing,
            ProgressMode::None => ProgressView::Nothing,
            ProgressMode::Auto if !terminal => ProgressView::log(),
            ProgressMode::Log => ProgressView::log(),
            ProgressMode::Auto | ProgressMode::Bar => ProgressView::bar(total, what),
        };
        Self {
            view,
            verbosity,
            total,
            what,
            pace: None,
        }
    }

    /// Updates the counts, and shows them if it is time.
    pub fn show(&mut self, counts: ProgressCounts) {
        let ProgressCounts { cases, fresh, .. } = counts;
        // The clock starts with the first new verdict at hand, so its own time does not count.
        if self.pace.is_none() && fresh > 0 {
            self.pace = Some(ThroughputStart {
                start: Instant::now(),
                cases,
                fresh,
            });
        }
        let speed = self.pace.and_then(|pace| {
            let elapsed = pace.start.elapsed().as_secs_f64();
            let cases_left = self.total?.saturating_sub(cases);
            speed(elapsed, fresh - pace.fresh, cases - pace.cases, cases_left)
        });
        match &mut self.view {
            ProgressView::Bar(bar) => {
                bar.set_position(cases);
                bar.set_message(state(counts, speed));
            }
            ProgressView::Log { last } if last.elapsed() >= PAUSE => {
                *last = Instant::now();
                let of = self
                    .total
                    .map_or(String::new(), |total| format!(" of {total}"));
                say(&format!(
                    "{cases}{of} {}, {}",
                    self.what,
                    state(counts, speed)
                ));
            }
            ProgressView::Log { .. } | ProgressView::Nothing => {}
        }
    }

    /// Says something that matters to everybody but those who asked for quiet.
    pub fn note(&self, text: &str) {
        if !self.verbosity.quiet {
            self.line(text);
        }
    }

    /// Says why the program will end in failure.
    pub fn warn(&self, text: &str) {
        self.line(text);
    }

    /// Says something for those who asked for more.
    pub fn detail(&self, text: &str) {
        if self.verbosity.verbose {
            self.line(text);
        }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        if let ProgressView::Bar(bar) = &self.view {
            bar.finish_and_clear();
        }
    }

    fn line(&self, text: &str) {
        match &self.view {
            ProgressView::Bar(bar) => bar.suspend(|| say(text)),
            ProgressView::Log { .. } | ProgressView::Nothing => say(text),
        }
    }
}

impl ProgressView {
    fn log() -> Self {
        Self::Log {
            last: Instant::now(),
        }
    }

    fn bar(total: Option<u64>, what: &str) -> Self {
        let template = match total {
            Some(_) => format!("{{bar:32}} {{pos}}/{{len}} {what}, {{msg}}"),
            None => format!("{{spinner}} {{pos}} {what}, {{msg}}"),
        };
        let style = ProgressStyle::with_template(&template);
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
        // A template that did not parse would cost the looks only.
        let bar = match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        };
        bar.set_message("the first verdict is on its way");
        Self::Bar(bar)
    }
}

/// Verdicts per second, and the seconds left.
fn speed(elapsed: f64, verdicts: u64, cases: u64, cases_left: u64) -> Option<(f64, f64)> {
    if elapsed < 0.05 || verdicts == 0 || cases == 0 {
        return None;
    }
    Some((
        verdicts as f64 / elapsed,
        cases_left as f64 * elapsed / cases as f64,
    ))
}

fn state(counts: ProgressCounts, speed: Option<(f64, f64)>) -> String {
    let mut text = plural(counts.judged, "verdict");
    if counts.unscored > 0 {
        let _ = write!(text, ", {} unscored", counts.unscored);
    }
    if let Some((rate, left)) = speed {
        let _ = write!(text, ", {rate:.1}/s, {} left", duration(left));
    }
    text
}

/// Seconds as a person says them.
pub fn duration(seconds: f64) -> String {
    if seconds < 9.95 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole / 60 % 60),
    }
}

/// Says lines; what is quoted in them cannot move the cursor. A closed stderr is nobody's loss.
pub(crate) fn say(text: &str) {
    let lines: Vec<String> = text.lines().map(printable).collect();
    let _ = writeln!(io::stderr(), "{}", lines.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_the_cases_not_the_reused_ones() {
        let (rate, left) = speed(10.0, 40, 20, 60).unwrap();
        assert!((rate - 4.0).abs() < 1e-9);
        assert!((left - 30.0).abs() < 1e-9);
        assert_eq!(speed(0.0, 1, 1, 1), None);
    }

    #[test]
    fn durations_are_said_in_two_units() {
        assert_eq!(duration(0.04), "0.0 s");
        assert_eq!(duration(59.4), "59 s");
        assert_eq!(duration(61.0), "1 min 01 s");
        assert_eq!(duration(7_260.0), "2 h 01 min");
    }
}
