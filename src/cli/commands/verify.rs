//! `acem3 verify`: checks the records of a run, and judges a sample of them again.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde::Serialize;

use super::load_judge::load_judge;
use super::output::write_stdout;
use crate::cli::args::{OutputFormat, VerifyArgs};
use crate::judging::provenance::judge_digest;
use crate::judging::run::journal::RECORDS;
use crate::judging::run::manifest::{RunStatus, describe_differences};
use crate::judging::run::run_state::RunState;
use crate::judging::verification::{
    CheckRequest, CheckedRun, JudgedAgain, KeyProblem, SampledImages, Tolerance, judge_again,
};
use crate::support::terminal::exit::Exit;
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::shell_word::quote_shell_word;
use crate::support::text::{escape_control_chars, format_count};

/// Tolerance for records of a judge that is not reproducible.
const FREE_TOLERANCE: f64 = 0.05;
/// Maximum number of values of a record in the text output.
const MAX_VALUES: usize = 5;

/// The result of a verification.
#[derive(Serialize)]
struct Verification<'a> {
    /// True if nothing differs and no record is damaged.
    equal: bool,
    /// True if records are damaged, missing or changed.
    #[serde(skip)]
    is_damaged: bool,
    /// Name of the judge.
    judge: &'a str,
    /// Number of records with an outcome of the judge.
    verdicts: u64,
    /// State of the records.
    run: &'a RunState,
    /// Number of records whose key does not belong to their content.
    wrong_keys: u64,
    /// The first of them.
    key_problems: &'a [KeyProblem],
    /// Seed of the sample.
    seed: u64,
    /// The largest difference of probabilities and expected scores that counts as equal.
    tolerance: f64,
    /// The records that were judged again; absent with `--sample 0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    sample: Option<&'a JudgedAgain>,
}

/// Runs the command.
pub(super) fn run(args: &VerifyArgs, verbosity: Verbosity) -> Result<Exit> {
    if let Some(path) = args.cases.as_ref().filter(|path| !path.exists()) {
        bail!(
            "--cases {}: no such file or folder\nhint: pass the cases of the run, or omit --cases",
            path.display()
        );
    }
    let folder = run_folder(&args.records);
    let request =
        CheckRequest { folder, sample: args.sample, seed: args.seed, view: args.dicom.to_view() };
    let checked = CheckedRun::read(&request)?;
    let sample = if args.sample == 0 || checked.sample.is_empty() {
        None
    } else {
        Some(judge_sample(args, folder, &checked, verbosity)?)
    };
    let state = &checked.state;
    // An unfinished run has records that are as they should be.
    let is_changed = state.status == Some(RunStatus::Done) && !state.problems.is_empty();
    let is_damaged = state.damaged > 0 || is_changed || checked.wrong_keys > 0;
    let is_different = sample
        .as_ref()
        .is_some_and(|sample| !(sample.differing.is_empty() && sample.skipped.is_empty()));
    let is_free = sample.as_ref().is_some_and(|sample| sample.not_reproducible > 0);
    let result = Verification {
        equal: !(is_damaged || is_different),
        is_damaged,
        judge: &checked.manifest.judge,
        verdicts: checked.verdicts,
        run: state,
        wrong_keys: checked.wrong_keys,
        key_problems: &checked.key_problems,
        seed: args.seed,
        tolerance: args.tolerance.unwrap_or(if is_free { FREE_TOLERANCE } else { 0.0 }),
        sample: sample.as_ref(),
    };
    let text = match args.format {
        OutputFormat::Json => serde_json::to_string_pretty(&result)? + "\n",
        OutputFormat::Text => escape_lines(&result.to_text()),
    };
    write_stdout(&text)?;
    Ok(if result.equal { Exit::Done } else { Exit::Failed })
}

/// Judges the sampled records again with the judge of the flags.
fn judge_sample(
    args: &VerifyArgs,
    folder: &Path,
    checked: &CheckedRun,
    verbosity: Verbosity,
) -> Result<JudgedAgain> {
    let (mut judge, _) = load_judge(&args.judge, &args.form, verbosity)?;
    let provenance = judge.provenance();
    if judge_digest(&provenance) != checked.manifest.judge_sha256 {
        let words = checked.manifest.judge_argv().iter().skip(1).map(|word| quote_shell_word(word));
        let command: Vec<String> = std::iter::once("acem3".to_owned()).chain(words).collect();
        bail!(
            "{}: verdicts of another judge{}\n\
             hint: pass the flags of the judge as for the run, for example --panel and --form; its \
             command was `{}`; or pass --sample 0 to check the records only",
            folder.display(),
            describe_differences(folder, &provenance),
            command.join(" ")
        );
    }
    let source = &checked.manifest.source;
    let recorded = || PathBuf::from(source.absolute.as_ref().unwrap_or(&source.path));
    let cases = args.cases.clone().unwrap_or_else(recorded);
    let images = SampledImages::new(&cases, args.dicom.to_view(), &checked.sample);
    let tolerance = Tolerance {
        reproducible: args.tolerance.unwrap_or(0.0),
        other: args.tolerance.unwrap_or(FREE_TOLERANCE),
    };
    let batch_size = args.judge.batch_size as usize;
    judge_again(judge.as_mut(), &checked.sample, images, tolerance, batch_size)
}

/// Returns the folder of a run from its path or the path of its records.
fn run_folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if path.file_name().is_some_and(|name| name == RECORDS) => {
            if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
        }
        _ => path,
    }
}

/// Says in how many of the records that differ the scores do.
fn describe_scores(sample: &JudgedAgain) -> String {
    let scores = sample.differing.iter().filter(|record| record.scores).count();
    if sample.differing.is_empty() {
        return String::new();
    }
    format!(
        " (other scores in {scores}, only other probabilities in {})",
        sample.differing.len() - scores
    )
}

/// Escapes control characters in each line.
fn escape_lines(text: &str) -> String {
    text.lines().map(|line| escape_control_chars(line) + "\n").collect()
}

impl Verification<'_> {
    /// Returns the result as text.
    fn to_text(&self) -> String {
        let mut text = String::new();
        for notice in self.run.notices() {
            let _ = writeln!(text, "{notice}");
        }
        for problem in self.key_problems {
            let case = problem.case.as_deref().unwrap_or("without id");
            let line = problem.line;
            let _ = writeln!(
                text,
                "line {line}, case {case}: the key does not belong to question, responses and image"
            );
        }
        let _ = writeln!(
            text,
            "records   {}, {} with an outcome of {}; {} damaged, {} with a wrong key",
            self.run.lines, self.verdicts, self.judge, self.run.damaged, self.wrong_keys
        );
        if let Some(sample) = self.sample {
            self.add_sample(sample, &mut text);
        } else {
            let _ = writeln!(text, "sample    no record was judged again");
        }
        let _ = writeln!(text, "result    {}", self.result());
        text
    }

    /// Returns the result in words.
    fn result(&self) -> &'static str {
        let differs = self.sample.is_some_and(|sample| !sample.differing.is_empty());
        match (self.equal, differs, self.is_damaged) {
            (true, ..) => "equal",
            (_, true, true) => "different, and records are damaged or missing",
            (_, true, false) => "different",
            (_, false, true) => "records are damaged or missing",
            (_, false, false) => "unknown: some records could not be judged again",
        }
    }

    /// Adds the records that were judged again.
    fn add_sample(&self, sample: &JudgedAgain, text: &mut String) {
        for record in &sample.differing {
            let case = record.case.as_deref().unwrap_or("without id");
            let models = record.models.join(", ");
            let _ = writeln!(text, "line {}, case {case} ({models}):", record.line);
            for value in record.values.iter().take(MAX_VALUES) {
                let (field, recorded, again) = (&value.field, &value.recorded, &value.again);
                let _ = writeln!(text, "  {field}: recorded {recorded}, judged again {again}");
            }
            let others = record.values.len().saturating_sub(MAX_VALUES);
            if others > 0 {
                let _ = writeln!(text, "  and {}", format_count(others as u64, "more value"));
            }
        }
        for record in &sample.skipped {
            let case = record.case.as_deref().unwrap_or("without id");
            let reason = record.reason.lines().next().unwrap_or_default();
            let _ = writeln!(text, "line {}, case {case}: not judged again: {reason}", record.line);
        }
        let _ = writeln!(
            text,
            "sample    {} judged again (seed {}), {} different{}, {} not possible; tolerance of \
             probabilities {}, largest difference {}",
            sample.judged,
            self.seed,
            sample.differing.len(),
            describe_scores(sample),
            sample.skipped.len(),
            self.tolerance,
            sample.largest
        );
        if sample.not_reproducible > 0 {
            let _ = writeln!(
                text,
                "          {} of a judge that is not reproducible: scores were compared exactly, \
                 probabilities with the tolerance, analyses not at all",
                sample.not_reproducible
            );
        }
    }
}
