//! `acem3 audit`: bias and robustness of a judge.

use std::path::Path;

use acem3_vision::Limits;
use anyhow::{Context as _, Result, bail};

use super::verdict_input::{read_labels, read_verdicts};
use crate::analysis::agreement::LabelledUnits;
use crate::analysis::audit::{
    AuditCases, AuditPlan, AuditRequest, AuditResult, PassSettings, Probe, run_passes,
};
use crate::analysis::verdicts::{ScoreKind, Verdicts};
use crate::cli::args::{AuditArgs, TableFormat};
use crate::cli::commands::ignored_flags::ignored_flags;
use crate::cli::commands::load_judge::load_judge;
use crate::cli::commands::output::{print, render_tables};
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
pub(crate) fn run(args: &AuditArgs, verbosity: Verbosity) -> Result<Exit> {
    let records = find_records(&args.source.path);
    let request = request(args, records.is_some())?;
    let mut audit = match records {
        Some(records) => audit_records(args, &records, &request, verbosity)?,
        None => audit_cases(args, &request, verbosity)?,
    };
    audit.source = args.source.path.display().to_string();
    audit.labels = args
        .labels
        .path
        .as_ref()
        .map(|path| path.display().to_string());
    if let Some(out) = &args.out {
        let text = serde_json::to_string_pretty(&audit).context("cannot write the audit")? + "\n";
        atomic_file::write(out, text.as_bytes())
            .with_context(|| format!("--out {}", out.display()))?;
    }
    // Only the file has the perturbed pairs.
    audit.trials.clear();
    print(&match args.format {
        TableFormat::Json => serde_json::to_string_pretty(&audit)? + "\n",
        TableFormat::Csv => audit.csv_table().csv()?,
        TableFormat::Text | TableFormat::Markdown => {
            render_tables(&audit.intro(), &audit.tables(), args.format)
        }
    })?;
    Ok(exit_code(&audit))
}

/// Returns the request of the flags.
fn request(args: &AuditArgs, records: bool) -> Result<AuditRequest> {
    let mut probes = args.probes.clone();
    if probes.is_empty() {
        probes = Probe::ALL.into();
    }
    probes.sort_unstable();
    probes.dedup();
    if records && !probes.iter().any(|probe| !probe.needs_judging()) {
        bail!(
            "--probes: these probes judge again, which is not possible with the records {}\n\
             hint: pass the cases instead",
            args.source.path.display()
        );
    }
    let limits = args.thresholds.thresholds();
    for limit in &limits {
        let measured = limit.kind.probes();
        if !measured.iter().any(|probe| probes.contains(probe)) {
            let names: Vec<&str> = measured.iter().map(|probe| probe.key()).collect();
            bail!(
                "{}: its probe is not selected\nhint: add {} to --probes",
                limit.kind.flag(),
                names.join(" or ")
            );
        }
    }
    Ok(AuditRequest {
        probes,
        bootstrap: args.bootstrap.bootstrap(),
        thresholds: limits,
    })
}

/// Audits the verdicts of a run.
fn audit_records(
    args: &AuditArgs,
    records: &Path,
    request: &AuditRequest,
    verbosity: Verbosity,
) -> Result<AuditResult> {
    let verdicts = read_verdicts(records, ScoreKind::Chosen, &args.bootstrap)?;
    let units = labels(args, &verdicts, verbosity)?;
    if (args.judge.panel.is_some() || args.limit.is_some()) && !verbosity.quiet {
        say("--panel and --limit have no effect: records are not judged again");
    }
    Ok(AuditResult::from_verdicts(
        &verdicts,
        units.as_ref(),
        request,
    ))
}

/// Returns the labels if there are any; an audit does not need them.
fn labels(
    args: &AuditArgs,
    verdicts: &Verdicts,
    verbosity: Verbosity,
) -> Result<Option<LabelledUnits>> {
    if args.labels.path.is_none() && verdicts.labels.is_empty() {
        return Ok(None);
    }
    read_labels(verdicts, &args.labels, verbosity).map(Some)
}

/// Audits a judge on cases.
fn audit_cases(
    args: &AuditArgs,
    request: &AuditRequest,
    verbosity: Verbosity,
) -> Result<AuditResult> {
    let (cases, unreadable) = collect(args, verbosity)?;
    let (mut judge, _) = load_judge(&args.judge, verbosity)?;
    let interrupt = Interrupt::listen()?;
    let path = &args.source.path;
    let images = ImageReader::new(cases::root(path), Limits::default());
    let mut images = images.viewed(args.source.dicom.view());
    let mut subject = AuditCases::new(path, cases, &mut images, judge.as_ref())?;
    subject.unreadable += unreadable;
    if let Some(field) = &args.bootstrap.cluster_by {
        subject.verdicts.cluster_by(field)?;
    }
    let units = labels(args, &subject.verdicts, verbosity)?;
    subject.join_labels(units.as_ref());
    let plan = subject.plan(request);
    let all = plan.passes.len();
    let mut progress = Progress::counting(args.progress, verbosity, Some(all as u64), "pairs");
    progress.note(&describe_cost(&subject, &plan));
    let start = std::time::Instant::now();
    let mut show_progress = |through: usize, scored: usize| {
        interrupt.check("nothing was saved; run the same command to start again")?;
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
        batch_size: args.judge.batch_size as usize,
    };
    let judged = run_passes(judge.as_mut(), settings, &mut images, &mut show_progress);
    progress.end();
    let results = judged?;
    let taken = duration(start.elapsed().as_secs_f64());
    progress.note(&format!("{} in {taken}", plural(all as u64, "verdict")));
    subject.evaluate(&plan, &results, units.as_ref(), request)
}

/// Returns the cases and the number of unreadable ones.
fn collect(args: &AuditArgs, verbosity: Verbosity) -> Result<(Vec<Case>, usize)> {
    let path = &args.source.path;
    let mut source = cases::open(path, &args.source.options(2))?;
    let (mut cases, mut unreadable, mut first) = (Vec::new(), 0, None);
    if !verbosity.quiet {
        for warning in ignored_flags(&args.source, source.kind) {
            say(&warning);
        }
    }
    let limit = args
        .limit
        .map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    while cases.len() < limit {
        match source.next() {
            None => break,
            Some(Ok(case)) => cases.push(case),
            Some(Err(problem)) => {
                if verbosity.verbose {
                    say(&printable(&problem.to_string()));
                }
                unreadable += usize::from(problem.is_case());
                first.get_or_insert(problem.message);
            }
        }
    }
    if cases.is_empty() {
        let reason = first.map_or_else(String::new, |reason| format!(": {reason}"));
        bail!(
            "{}: no usable case{reason}\n\
             hint: run `acem3 data check {}` to list the problems; to audit records, pass the folder of the run or its \
             records.jsonl",
            path.display(),
            args.source.to_shell_words()
        );
    }
    Ok((cases, unreadable))
}

/// Returns the number of verdicts that the audit needs.
fn describe_cost(subject: &AuditCases, plan: &AuditPlan) -> String {
    let (all, pairs) = (plan.passes.len(), subject.pairs.len());
    format!(
        "{} to judge: {} original, {} perturbed; reduce them with --limit N or --probes LIST",
        plural(all as u64, "verdict"),
        pairs,
        all - pairs
    )
}

/// Prints the failed thresholds on stderr and returns the exit code.
fn exit_code(audit: &AuditResult) -> Exit {
    let failed: Vec<&str> = audit
        .thresholds
        .iter()
        .filter(|checked| checked.failed)
        .map(|checked| checked.summary.as_str())
        .collect();
    if failed.is_empty() {
        return Exit::Done;
    }
    for words in failed {
        say(words);
    }
    say(
        "hint: see the statistics on stdout; pass --out FILE to save every perturbed pair with its verdicts",
    );
    Exit::Failed
}
