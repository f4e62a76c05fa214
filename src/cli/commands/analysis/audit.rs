//! `acem3 audit`: bias and robustness of a judge.

use std::path::Path;

use acem3_experts::prompt::Form;
use acem3_vision::ImageLimits;
use anyhow::{Context as _, Result, bail};

use super::run_notices::RunNotices;
use super::verdict_input::{read_labels, read_verdicts};
use crate::analysis::agreement::LabelledUnits;
use crate::analysis::audit::{
    AuditCases, AuditPlan, AuditRequest, AuditResult, PassSettings, run_passes,
};
use crate::analysis::correctness::GradedRun;
use crate::analysis::verdicts::{ScoreKind, Verdicts};
use crate::cli::args::{AuditArgs, FormArgs, ProbeChoice, TableFormat};
use crate::cli::commands::ignored_flags::ignored_flags;
use crate::cli::commands::junit::{check_junit, with_junit, write_junit};
use crate::cli::commands::load_judge::load_judge;
use crate::cli::commands::output::write_stdout;
use crate::cli::commands::panel_warning::panel_warning;
use crate::data::cases;
use crate::data::cases::Case;
use crate::data::images::ImageReader;
use crate::data::images::outside_images::OutsideImages;
use crate::judging::run::record::find_records::find_records;
use crate::judging::run::summary::tally::Tally;
use crate::support::files::out_file::OutFile;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::{Progress, format_duration, print_lines};
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::{escape_control_chars, format_count};

/// Runs the command.
pub(crate) fn run(args: &AuditArgs, verbosity: Verbosity) -> Result<Exit> {
    let records = find_records(&args.source.path);
    let [out, junit] = check_out(args, records.as_deref())?;
    let source = args.source.path.display().to_string();
    with_junit(junit.as_ref(), "acem3 audit", source, |junit| {
        audit_source(args, verbosity, records.as_deref(), [out.as_ref(), junit])
    })
}

/// Audits the cases, or the records. `[out, junit]`: the files of `--out` and `--junit`.
fn audit_source(
    args: &AuditArgs,
    verbosity: Verbosity,
    records: Option<&Path>,
    [out, junit]: [Option<&OutFile>; 2],
) -> Result<Exit> {
    let request = build_request(args, records.is_some())?;
    let (mut audit, notices) = match records {
        Some(records) => audit_records(args, records, &request, verbosity)?,
        None => audit_cases(args, &request, verbosity)?,
    };
    audit.source = args.source.path.display().to_string();
    audit.labels = args.labels.path.as_ref().map(|path| path.display().to_string());
    if let Some(out) = out {
        let text = notices.to_json(&audit).context("cannot write the audit")?;
        out.write(text.as_bytes())?;
    }
    let properties = vec![("source", audit.source.clone()), ("judge", audit.judge.clone())];
    write_junit(junit, "acem3 audit", properties, &audit.thresholds)?;
    // Only the file has the perturbed pairs.
    audit.trials.clear();
    notices.print_unless_in(args.format);
    write_stdout(&match args.format {
        TableFormat::Json => notices.to_json(&audit)?,
        TableFormat::Csv => audit.csv_table().to_csv()?,
        TableFormat::Text | TableFormat::Markdown => {
            notices.render(&audit.intro(), &audit.tables(), args.format)
        }
    })?;
    Ok(check_thresholds(&audit))
}

/// Checks the files of `--out` and `--junit`, which must not be inputs.
fn check_out(args: &AuditArgs, records: Option<&Path>) -> Result<[Option<OutFile>; 2]> {
    let mut inputs = args.source.files();
    inputs.extend(records);
    inputs.extend(args.labels.path.as_deref());
    let out = args.out.as_ref().map(|path| OutFile::check(path, AuditResult::FORM, &inputs));
    Ok([out.transpose()?, check_junit(args.junit.as_ref(), &inputs)?])
}

/// Builds the request from the flags.
fn build_request(args: &AuditArgs, has_records: bool) -> Result<AuditRequest> {
    let probes = ProbeChoice::probes(&args.probes);
    if has_records && !probes.iter().any(|probe| !probe.needs_judging()) {
        bail!(
            "--probes: the selected probes need cases, found the records {}\n\
             hint: pass the cases instead",
            args.source.path.display()
        );
    }
    let thresholds = args.thresholds.to_thresholds();
    for threshold in &thresholds {
        let threshold_probes = threshold.kind.probes();
        if !threshold_probes.iter().any(|probe| probes.contains(probe)) {
            let names: Vec<&str> = threshold_probes.iter().map(|probe| probe.key()).collect();
            let names = names.join(" or ");
            bail!(
                "{}: needs the probe {names}, which is not selected\nhint: add {names} to --probes",
                threshold.kind.flag()
            );
        }
    }
    Ok(AuditRequest {
        probes,
        planted_kinds: ProbeChoice::planted_kinds(&args.probes),
        bootstrap: args.bootstrap.to_bootstrap(),
        thresholds,
    })
}

/// Audits the verdicts of a run.
fn audit_records(
    args: &AuditArgs,
    records: &Path,
    request: &AuditRequest,
    verbosity: Verbosity,
) -> Result<(AuditResult, RunNotices)> {
    if GradedRun::is_graded(records) {
        bail!(
            "{}: the verdicts say whether single responses are correct; the biases that an audit measures need \
             verdicts on pairs of responses\n\
             hint: `acem3 agree` measures the errors of the judge against labels, and `acem3 report` lists the \
             responses on which judge and exact match differ; to audit the judge, judge with --form pair or \
             --form single",
            records.display()
        );
    }
    let verdicts = read_verdicts(records, ScoreKind::Chosen, &args.bootstrap)?;
    let notices = RunNotices::new([verdicts.run.clone()], args.run)?;
    let units = read_optional_labels(args, &verdicts, verbosity)?;
    if !verbosity.quiet {
        for flag in ineffective_flags(args) {
            print_lines(&format!("{flag} has no effect: records are not judged again"));
        }
    }
    Ok((AuditResult::from_verdicts(&verdicts, units.as_ref(), request), notices))
}

/// Returns the flags that select a judge or cases to judge.
fn ineffective_flags(args: &AuditArgs) -> Vec<&'static str> {
    let mut flags = args.form.changed_flags();
    flags.extend(args.judge.panel.is_some().then_some("--panel"));
    flags.extend(args.limit.is_some().then_some("--limit"));
    flags
}

/// Reads the labels if there are any. An audit does not need them.
fn read_optional_labels(
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
) -> Result<(AuditResult, RunNotices)> {
    check_form(&args.form)?;
    // A rubric names the criteria that labels of cases may have.
    args.form.to_rubric()?;
    let (cases, unreadable) = read_cases(args, verbosity)?;
    let (mut judge, _) = load_judge(&args.judge, &args.form, verbosity)?;
    let warning = panel_warning(judge.as_ref(), &args.source, args.limit)?;
    let warning = warning.map(|text| format!("{}: warning: {text}", args.source.path.display()));
    let notices = RunNotices::default().with_notes(warning);
    let interrupt = Interrupt::listen()?;
    let path = &args.source.path;
    let images = ImageReader::new(cases::base_folder(path), ImageLimits::default());
    let outside = OutsideImages::counted();
    let images = images.with_dicom_view(args.source.dicom.to_view());
    let mut images = images.with_outside_images(outside.clone());
    let mut audit = AuditCases::new(path, cases, &mut images, judge.as_ref())?;
    audit.unreadable += unreadable;
    if let Some(field) = &args.bootstrap.cluster_by {
        audit.verdicts.cluster_by(field)?;
    }
    let units = read_optional_labels(args, &audit.verdicts, verbosity)?;
    audit.join_labels(units.as_ref());
    let plan = audit.plan(request);
    let total = plan.passes.len();
    let mut progress = Progress::with_items(args.progress, verbosity, Some(total as u64), "pairs");
    progress.note(&describe_cost(&audit, &plan));
    let start = std::time::Instant::now();
    let mut show_progress = |completed: usize, scored: usize| {
        interrupt.bail_if_requested("nothing was saved; run the same command to start again")?;
        let mut tally = Tally::default();
        tally.counts.cases = completed as u64;
        tally.counts.judged = scored as u64;
        tally.new_verdicts = completed as u64;
        progress.update(tally.progress());
        Ok(())
    };
    let settings = PassSettings {
        pairs: &audit.pairs,
        plan: &plan,
        batch_size: args.judge.batch_size as usize,
    };
    let pass_results = run_passes(judge.as_mut(), settings, &mut images, &mut show_progress);
    progress.finish();
    let results = pass_results?;
    if let Some(note) = outside.note() {
        progress.note(&note);
    }
    let elapsed = format_duration(start.elapsed().as_secs_f64());
    progress.note(&format!("{} in {elapsed}", format_count(total as u64, "verdict")));
    Ok((audit.evaluate(&plan, &results, units.as_ref(), request)?, notices))
}

/// Checks the form: perturbed responses are judged next to others.
fn check_form(args: &FormArgs) -> Result<()> {
    let form = args.form.form();
    let hint = match form {
        Form::Pair => return Ok(()),
        Form::Single | Form::List => {
            "omit --form, or audit the verdicts of a run in this form: acem3 audit OUT"
        }
        Form::Correctness => "omit --form; acem3 agree compares verdicts of this form with labels",
    };
    bail!("--form {}: an audit of cases judges pairs\nhint: {hint}", form.name());
}

/// Checks that a judge that sees the reference has one to see.
fn check_references(args: &AuditArgs, cases: &[Case]) -> Result<()> {
    let has_reference =
        |case: &Case| case.reference.as_deref().is_some_and(|text| !text.trim().is_empty());
    if !args.form.shows_reference() || cases.iter().any(has_reference) {
        return Ok(());
    }
    bail!(
        "{}: --reference show: no case has a reference answer\n\
         hint: add the known answer as `reference`, or use --reference hide",
        args.source.path.display()
    );
}

/// Reads the cases. Also returns the number of unreadable cases.
fn read_cases(args: &AuditArgs, verbosity: Verbosity) -> Result<(Vec<Case>, usize)> {
    let path = &args.source.path;
    let mut source = cases::open(path, &args.form.source_options(&args.source))?;
    let (mut cases, mut unreadable, mut first) = (Vec::new(), 0, None);
    if !verbosity.quiet {
        for warning in ignored_flags(&args.source, source.kind) {
            print_lines(&warning);
        }
        source.take_field_notes().iter().for_each(|note| print_lines(note));
    }
    let limit = args.limit.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    while cases.len() < limit {
        match source.next() {
            None => break,
            Some(Ok(case)) => cases.push(case),
            Some(Err(problem)) => {
                if verbosity.verbose {
                    print_lines(&escape_control_chars(&problem.to_string()));
                }
                unreadable += usize::from(problem.affects_whole_case());
                first.get_or_insert(problem.message);
            }
        }
    }
    if cases.is_empty() {
        let reason = first.map_or_else(String::new, |reason| format!(": {reason}"));
        bail!(
            "{}: no usable case{reason}\n\
             hint: run `acem3 data check {}` to list the problems; to audit records, pass the \
             folder of the run or its records.jsonl",
            path.display(),
            args.source.to_shell_words()
        );
    }
    check_references(args, &cases)?;
    Ok((cases, unreadable))
}

/// Describes the number of pairs that the audit judges.
fn describe_cost(audit: &AuditCases, plan: &AuditPlan) -> String {
    let (total, pairs) = (plan.passes.len(), audit.pairs.len());
    format!(
        "{} to judge: {} original, {} perturbed; reduce them with --limit N or --probes LIST",
        format_count(total as u64, "pair"),
        pairs,
        total - pairs
    )
}

/// Prints the failed thresholds on stderr and returns the exit code.
fn check_thresholds(audit: &AuditResult) -> Exit {
    let failed: Vec<&str> = audit
        .thresholds
        .iter()
        .filter(|checked| checked.failed)
        .map(|checked| checked.summary.as_str())
        .collect();
    if failed.is_empty() {
        return Exit::Done;
    }
    for summary in failed {
        print_lines(summary);
    }
    print_lines(
        "hint: see the statistics on stdout; pass --out FILE to save every perturbed pair with its \
         verdicts",
    );
    Exit::Failed
}
