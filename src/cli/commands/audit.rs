//! `acem3 audit`: whether a judge can be trusted.

use std::path::Path;

use acem3_vision::Limits;
use anyhow::{Context as _, Result, bail};

use super::agree::{bootstrap, labelled, read};
use super::{print, render_tables, unheeded};
use crate::analysis::agreement::LabelledUnits;
use crate::analysis::audit::{
    AuditCases, AuditPlan, AuditRequest, AuditResult, PassSettings, Probe, run_passes,
};
use crate::analysis::verdicts::{ScoreKind, Verdicts};
use crate::cli::args::{AuditArgs, TableFormat};
use crate::cli::commands::load_judge::load_judge;
use crate::data::cases;
use crate::data::cases::Case;
use crate::data::images::ImageReader;
use crate::judging::run::record_reader::find_records;
use crate::judging::run::tally::Tally;
use crate::support::files::atomic_file;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::{Progress, duration, say};
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::{plural, printable};

/// Runs the command.
pub(super) fn run(args: &AuditArgs, verbosity: Verbosity) -> Result<Exit> {
    let records = find_records(&args.source.path);
    let asked = asked(args, records.is_some())?;
    let mut audit = match records {
        Some(records) => of_records(args, &records, &asked, verbosity)?,
        None => of_cases(args, &asked, verbosity)?,
    };
    audit.source = args.source.path.display().to_string();
    audit.labels = args
        .labels
        .labels
        .as_ref()
        .map(|path| path.display().to_string());
    if let Some(out) = &args.out {
        let text = serde_json::to_string_pretty(&audit).context("cannot write the audit")? + "\n";
        atomic_file::write(out, text.as_bytes())
            .with_context(|| format!("--out {}", out.display()))?;
    }
    // What is printed is for reading; every changed pair is in the file.
    audit.trials.clear();
    print(&match args.format {
        TableFormat::Json => serde_json::to_string_pretty(&audit)? + "\n",
        TableFormat::Csv => audit.csv_table().csv()?,
        TableFormat::Text | TableFormat::Markdown => {
            render_tables(&audit.intro(), &audit.tables(), args.format)
        }
    })?;
    Ok(verdict(&audit))
}

/// What the flags ask for.
fn asked(args: &AuditArgs, records: bool) -> Result<AuditRequest> {
    let mut probes = args.probes.clone();
    if probes.is_empty() {
        probes = Probe::ALL.into();
    }
    probes.sort_unstable();
    probes.dedup();
    if records && !probes.iter().any(|probe| !probe.needs_judging()) {
        bail!(
            "--probes: {} are records, from which nothing can be judged again\n\
             hint: give the cases that were judged instead",
            args.source.path.display()
        );
    }
    let limits = args.limits.given();
    for limit in &limits {
        let measured = limit.kind.probes();
        if !measured.iter().any(|probe| probes.contains(probe)) {
            let names: Vec<&str> = measured.iter().map(|probe| probe.key()).collect();
            bail!(
                "{}: its probe is not among those asked for\nhint: add {} to --probes",
                limit.kind.flag(),
                names.join(" or ")
            );
        }
    }
    Ok(AuditRequest {
        probes,
        bootstrap: bootstrap(&args.sampling),
        limits,
    })
}

/// An audit of what a run has said.
fn of_records(
    args: &AuditArgs,
    records: &Path,
    asked: &AuditRequest,
    verbosity: Verbosity,
) -> Result<AuditResult> {
    let verdicts = read(records, ScoreKind::Chosen, &args.sampling)?;
    let units = labels(args, &verdicts, verbosity)?;
    if (args.seat.panel.is_some() || args.limit.is_some()) && !verbosity.quiet {
        say("--panel and --limit are not heeded: nothing is judged again from records");
    }
    Ok(AuditResult::from_verdicts(&verdicts, units.as_ref(), asked))
}

/// The labels, where there are any; an audit needs none.
fn labels(
    args: &AuditArgs,
    verdicts: &Verdicts,
    verbosity: Verbosity,
) -> Result<Option<LabelledUnits>> {
    if args.labels.labels.is_none() && verdicts.labels.is_empty() {
        return Ok(None);
    }
    labelled(verdicts, &args.labels, verbosity).map(Some)
}

/// An audit of a judge on cases.
fn of_cases(args: &AuditArgs, asked: &AuditRequest, verbosity: Verbosity) -> Result<AuditResult> {
    let (cases, lost) = collect(args, verbosity)?;
    let (mut judge, _) = load_judge(&args.seat, verbosity)?;
    let interrupt = Interrupt::listen()?;
    let path = &args.source.path;
    let images = ImageReader::new(cases::root(path), Limits::default());
    let mut images = images.viewed(args.source.view.view());
    let mut subject = AuditCases::new(path, cases, &mut images, judge.as_ref())?;
    subject.unreadable += lost;
    if let Some(field) = &args.sampling.cluster {
        subject.verdicts.cluster_by(field)?;
    }
    let units = labels(args, &subject.verdicts, verbosity)?;
    subject.join_labels(units.as_ref());
    let plan = subject.plan(asked);
    let all = plan.passes.len();
    let mut progress = Progress::of(args.progress, verbosity, Some(all as u64), "pairs");
    progress.note(&cost(&subject, &plan));
    let start = std::time::Instant::now();
    let mut told = |through: usize, scored: usize| {
        interrupt.check("no figures were kept, and the same command begins anew")?;
        let mut tally = Tally::default();
        tally.counts.cases = through as u64;
        tally.counts.judged = scored as u64;
        tally.fresh = through as u64;
        progress.show(tally.progress());
        Ok(())
    };
    let settings = PassSettings {
        pairs: &subject.pairs,
        plan: &plan,
        batch_size: args.seat.batch_size as usize,
    };
    let judged = run_passes(judge.as_mut(), settings, &mut images, &mut told);
    progress.end();
    let results = judged?;
    let taken = duration(start.elapsed().as_secs_f64());
    progress.note(&format!("{} in {taken}", plural(all as u64, "verdict")));
    subject.evaluate(&plan, &results, units.as_ref(), asked)
}

/// The cases, and how many could not be read.
fn collect(args: &AuditArgs, verbosity: Verbosity) -> Result<(Vec<Case>, usize)> {
    let path = &args.source.path;
    let mut source = cases::open(path, &args.source.options(2))?;
    let (mut found, mut lost, mut first) = (Vec::new(), 0, None);
    if !verbosity.quiet {
        for note in unheeded(&args.source, source.kind) {
            say(&note);
        }
    }
    let most = args
        .limit
        .map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    while found.len() < most {
        match source.next() {
            None => break,
            Some(Ok(case)) => found.push(case),
            Some(Err(problem)) => {
                if verbosity.verbose {
                    say(&printable(&problem.to_string()));
                }
                lost += usize::from(problem.is_case());
                first.get_or_insert(problem.message);
            }
        }
    }
    if found.is_empty() {
        let why = first.map_or_else(String::new, |why| format!(": {why}"));
        bail!(
            "{}: there is no case to audit a judge with{why}\n\
             hint: `acem3 data check {}` says what is wrong with each; records are audited by their \
             folder or their records.jsonl",
            path.display(),
            args.source.typed()
        );
    }
    Ok((found, lost))
}

/// What the audit costs.
fn cost(subject: &AuditCases, plan: &AuditPlan) -> String {
    let (all, pairs) = (plan.passes.len(), subject.pairs.len());
    format!(
        "{} to judge: {} as they are, and {} of them; --limit N takes the first N cases, --probes some \
         of the probes",
        plural(all as u64, "verdict"),
        plural(pairs as u64, "pair"),
        plural((all - pairs) as u64, "change")
    )
}

/// How the program ends, with what was not kept on stderr.
fn verdict(audit: &AuditResult) -> Exit {
    let failed: Vec<&str> = audit
        .limits
        .iter()
        .filter(|checked| checked.failed)
        .map(|checked| checked.words.as_str())
        .collect();
    if failed.is_empty() {
        return Exit::Done;
    }
    for words in failed {
        say(words);
    }
    say(
        "hint: the tables on stdout tell the figures; --out FILE keeps every changed pair with its verdicts",
    );
    Exit::Failed
}
