//! `acem3 judge`: a folder of images, questions and answers in, verdicts out.

mod exit;
mod warnings;

use std::fs;
use std::time::Instant;

use acem3_vision::Limits;
use anyhow::bail;

use crate::cli::args::JudgeArgs;
use crate::data::cases;
use crate::data::cases::CaseSource;
use crate::support::terminal::verbosity::Verbosity;

use crate::cli::commands::load_judge::load_judge;
use crate::data::images::ImageReader;
use crate::judging::judge::Judge;
use crate::judging::run::journal::Journal;
use crate::judging::run::manifest::{Manifest, SourceInfo};
use crate::judging::run::output::{abandon, holds_records};
use crate::judging::run::summary::Summary;
use crate::judging::run::superseded::SUPERSEDED_FILE;
use crate::judging::run::tally::Tally;
use crate::judging::run::{Run, RunConfig};
use crate::support::files::folder::{make, unused};
use crate::support::terminal::exit::Exit;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::{Progress, duration};
use crate::support::text::plural;

/// Runs the command.
pub(super) fn run(args: &JudgeArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let source = cases::open(&args.source.path, &args.source.options(2))?;
    let there = args.out.exists();
    Manifest::check_is_manifest(&args.out)?;
    make_folder(args)?;
    let loaded = load_judge(&args.seat, verbosity);
    if loaded.is_err() && !there {
        // An empty folder would look like a run; one that holds anything stays.
        let _ = fs::remove_dir(&args.out);
    }
    let (judge, hub) = loaded?;
    let journal = Journal::open(&args.out, &judge.provenance())?;
    let mut manifest = Manifest::start(
        SourceInfo::new(&args.source.path, source.kind),
        judge.as_ref(),
    );
    manifest.hub = hub;
    let total = source
        .total
        .map(|n| args.limit.map_or(n, |limit| n.min(limit)));
    let progress = Progress::new(args.progress, verbosity, total);
    if journal.dropped_bytes() > 0 {
        progress.note("the last record was torn by an earlier end of the program; it is made anew");
    }
    let sitting = JudgeRun {
        args,
        source,
        judge,
        journal,
        manifest,
        progress,
        start: Instant::now(),
    };
    sitting.hold(there)
}

/// A run from its first case to its last word.
struct JudgeRun<'a> {
    args: &'a JudgeArgs,
    source: CaseSource,
    judge: Box<dyn Judge>,
    journal: Journal,
    manifest: Manifest,
    progress: Progress,
    start: Instant,
}

impl JudgeRun<'_> {
    /// Judges all cases and ends the run. `there` says whether its folder was there before it.
    fn hold(mut self, there: bool) -> anyhow::Result<Exit> {
        let args = self.args;
        crate::cli::commands::judge::warnings::before(&self.progress, &self.source, args);
        self.manifest.write(&args.out)?;
        let (outcome, tally) = self.judge_all()?;
        let seconds = self.start.elapsed().as_secs_f64();
        self.manifest.finish(&outcome, &tally, seconds);
        let written = self.manifest.write(&args.out);
        if outcome.is_err() && !holds_records(&args.out) {
            // What failed before its first record is no run to resume, and would look like one.
            drop(self.journal);
            abandon(&args.out, !there);
            return outcome.map(|_| Exit::Done);
        }
        let through = outcome?;
        written?;
        if !through {
            self.progress.note(&format!(
                "interrupted after {}; the same command resumes",
                plural(tally.counts.records, "record")
            ));
            return Ok(Exit::Interrupted);
        }
        self.tell(&tally, seconds);
        let records = self.journal.path();
        crate::cli::commands::judge::exit::print(
            args,
            &Summary::of(&tally, self.judge.name(), records),
        )?;
        Ok(crate::cli::commands::judge::exit::exit(
            args,
            &tally.counts,
            &self.progress,
        ))
    }

    /// Whether the run went through all cases, or why it could not; and what it counted.
    fn judge_all(&mut self) -> anyhow::Result<(anyhow::Result<bool>, Tally)> {
        let args = self.args;
        let interrupt = Interrupt::listen()?;
        let plan = RunConfig {
            batch_size: args.seat.batch_size as usize,
            baseline: args.baseline.clone(),
            limit: args.limit,
            root: cases::root(&args.source.path),
        };
        let images = ImageReader::new(plan.root.clone(), Limits::default());
        let images = images.viewed(args.source.view.view());
        let mut run = Run::new(
            self.judge.as_mut(),
            &mut self.journal,
            images,
            &mut self.progress,
            plan,
        );
        let outcome = run.run(&mut self.source, &interrupt);
        let tally = run.tally().clone();
        self.progress.end();
        let outcome = match outcome {
            Ok(true) => {
                crate::cli::commands::judge::warnings::after(&self.progress, &self.source, args);
                crate::cli::commands::judge::exit::check_any(args, &tally).map(|()| true)
            }
            other => other,
        };
        Ok((outcome, tally))
    }

    fn tell(&self, tally: &Tally, seconds: f64) {
        let fresh = plural(tally.fresh, "new verdict");
        self.progress
            .note(&format!("{fresh} in {}", duration(seconds)));
        if self.journal.superseded() > 0 {
            let aside = plural(self.journal.superseded() as u64, "earlier verdict");
            self.progress.note(&format!(
                "{aside} that the input does not ask for: see {SUPERSEDED_FILE}"
            ));
        }
    }
}

/// Makes the folder of the run, or finds that it may be resumed.
fn make_folder(args: &JudgeArgs) -> anyhow::Result<()> {
    let out = &args.out;
    if args.fresh && holds_records(out) {
        bail!(
            "--fresh: {} already holds verdicts, and none are deleted\n\
             hint: name another folder, as in --out {}, or resume this one without --fresh",
            out.display(),
            unused(out).display()
        );
    }
    make(out)
}
