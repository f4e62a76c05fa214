//! `acem3 train eval`: accuracy of a panel on pairs whose better response is known.

use anyhow::Result;

use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::cli::args::{OutputFormat, TrainEvalArgs};
use crate::cli::commands::output::write_stdout;
use crate::judging::panel::{JudgeOptions, Panel, PanelJudge, PanelOptions};
use crate::support::tables::TableStyle;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::{Progress, ProgressCounts};
use crate::support::terminal::verbosity::{ProgressMode, Verbosity};
use crate::training::measurement;
use crate::training::measurement::{
    MeasuredCounts, MeasurementConfig, MeasurementObserver, MeasurementReport, SetResults,
};

/// Number of phantom cases without labelled cases.
const DEFAULT_PHANTOMS: u64 = 500;

/// Shows the progress, and in text format the table of each set when it is complete.
struct EvaluationOutput {
    format: OutputFormat,
    mode: ProgressMode,
    verbosity: Verbosity,
    progress: Progress,
}

impl MeasurementObserver for EvaluationOutput {
    fn start(&mut self, judge: &str, pairs: u64) -> Result<()> {
        self.progress = Progress::with_items(self.mode, self.verbosity, Some(pairs), "pairs");
        match self.format {
            OutputFormat::Text => {
                let intro = MeasurementReport::intro(judge, TableStyle::terminal());
                self.progress.suspend(|| write_stdout(&intro))
            }
            OutputFormat::Json => Ok(()),
        }
    }

    fn judged(&mut self, counts: MeasuredCounts) {
        self.progress.update(ProgressCounts {
            cases: counts.pairs(),
            new_verdicts: counts.pairs(),
            judged: counts.judged,
            unscored: counts.unscored,
        });
    }

    fn finished(&mut self, results: &SetResults) -> Result<()> {
        match self.format {
            OutputFormat::Text => {
                let table = results.text(TableStyle::terminal());
                self.progress.suspend(|| write_stdout(&table))
            }
            OutputFormat::Json => Ok(()),
        }
    }

    fn note(&mut self, text: &str) {
        self.progress.note(text);
    }
}

/// Runs the command.
pub(super) fn run(args: &TrainEvalArgs, verbosity: Verbosity) -> Result<Exit> {
    let interrupt = Interrupt::listen()?;
    let placement = args.device.open()?;
    let mut downloads = HubDownloads::new(args.hub, verbosity.quiet);
    let files = PanelFiles::locate(args.panel.as_deref(), &mut downloads)?;
    let options = PanelOptions { knowledge: args.knowledge.open()?, ..PanelOptions::default() };
    let panel = Panel::load(&files, options, &placement, downloads)?;
    let mut judge = PanelJudge::new(
        panel,
        JudgeOptions { samples: args.samples.samples, ..JudgeOptions::default() },
    )?;
    let config = MeasurementConfig {
        phantoms: args.phantoms.unwrap_or(if args.cases.is_some() { 0 } else { DEFAULT_PHANTOMS }),
        cases: args.cases.clone(),
        seed: args.seed,
        data: args.data.clone(),
        limit: args.limit.unwrap_or(usize::MAX),
        tests_image_sensitivity: !args.own_images,
    };
    let mut output = EvaluationOutput {
        format: args.format,
        mode: args.progress,
        verbosity,
        progress: Progress::with_items(ProgressMode::None, verbosity, None, "pairs"),
    };
    let report = measurement::measure(&mut judge, &config, &interrupt, &mut output)?;
    output.progress.finish();
    if args.format == OutputFormat::Json {
        write_stdout(&(serde_json::to_string_pretty(&report)? + "\n"))?;
    }
    if report.is_partial {
        output.progress.warn(
            "interrupted; the results are those of the pairs judged so far, and nothing was \
             saved: the same command starts again",
        );
        return Ok(Exit::Interrupted);
    }
    if report.is_empty() {
        output.progress.warn(
            "all pairs are unscored\n\
             hint: see the reason above; the prompt and both responses must fit into the panel's \
             context",
        );
        return Ok(Exit::Unscored);
    }
    Ok(Exit::Done)
}
