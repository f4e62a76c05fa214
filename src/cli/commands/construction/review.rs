//! `acem3 data review`: exports a sample of evaluations for rating by people, and reads it back.

use anyhow::{Context as _, Result, bail};

use crate::cli::args::{OutputFormat, ReviewApplyArgs, ReviewCommand, ReviewSampleArgs};
use crate::cli::commands::output::write_stdout;
use crate::support::files::file_form::{FileForm, has_json_line};
use crate::support::files::out_file::OutFile;
use crate::support::tables::{Table, TableStyle};
use crate::support::terminal::exit::Exit;
use crate::support::text::format_count;
use crate::training::construction::review::{
    Acceptance, AcceptedProportion, EvaluationRows, ReviewSheets, SampleRequest, write_sample,
};

/// The form of the file without rejected evaluations.
const ACCEPTED_FORM: FileForm = FileForm {
    name: "a file of reviewed evaluations",
    recognise: |file| has_json_line(file, &["prompt", "reviewed"]),
};

/// Runs the command.
pub(in crate::cli::commands) fn run(command: &ReviewCommand) -> Result<Exit> {
    match command {
        ReviewCommand::Sample(args) => sample(args),
        ReviewCommand::Apply(args) => apply(args),
    }
}

fn sample(args: &ReviewSampleArgs) -> Result<Exit> {
    let points: Vec<String> = args.points.iter().map(|name| name.trim().to_owned()).collect();
    if points.iter().any(String::is_empty) {
        bail!("--points: a name is empty\nhint: separate the names with commas");
    }
    let rows = EvaluationRows::read(&args.evaluations)?;
    let request =
        SampleRequest { count: args.count as usize, by: args.by.clone(), seed: args.seed, points };
    let strata = write_sample(&rows, &request, &args.out)?;
    let mut table = Table::new([args.by.as_str(), "sampled", "of"]);
    for (name, [sampled, all]) in &strata {
        let name = if name.is_empty() { "(none)" } else { name };
        table.push_row([name.to_owned(), sampled.to_string(), all.to_string()]);
    }
    let columns = request.points.join(", ");
    let total: usize = strata.values().map(|[sampled, _]| sampled).sum();
    write_stdout(&format!(
        "{} in {}\n\n{}\nfill the columns {columns} with yes or no; copy the file for each rater\n",
        format_count(total as u64, "evaluation"),
        args.out.display(),
        table.render(TableStyle::terminal())
    ))?;
    Ok(Exit::Done)
}

fn apply(args: &ReviewApplyArgs) -> Result<Exit> {
    let inputs: Vec<&std::path::Path> =
        args.tables.iter().chain([&args.evaluations]).map(std::path::PathBuf::as_path).collect();
    let out = OutFile::check(&args.out, ACCEPTED_FORM, &inputs)?;
    let rows = EvaluationRows::read(&args.evaluations)?;
    let sheets = ReviewSheets::read(&args.tables)?;
    let acceptance = Acceptance::new(&rows, &sheets, &args.by)
        .with_context(|| args.evaluations.display().to_string())?;
    out.write(acceptance.accepted_lines(&rows, &args.out)?.as_bytes())?;
    write_stdout(&match args.format {
        OutputFormat::Json => serde_json::to_string_pretty(&acceptance)? + "\n",
        OutputFormat::Text => describe(&acceptance, args, rows.rows.len()),
    })?;
    let is_low = |minimum: f64| acceptance.overall.percent() < minimum;
    Ok(if args.min_accepted.is_some_and(is_low) { Exit::Failed } else { Exit::Done })
}

/// Describes the result of a review.
fn describe(acceptance: &Acceptance, args: &ReviewApplyArgs, all: usize) -> String {
    let mut table = Table::new(["", "accepted", "rated", "95 % interval", "alpha"]);
    let mut push = |name: &str, proportion: &AcceptedProportion, alpha: Option<f64>| {
        let [low, high] = proportion.interval.map(|end| format!("{:.1}", 100.0 * end));
        table.push_row([
            name.to_owned(),
            format!("{:.1} %", proportion.percent()),
            proportion.rated.to_string(),
            format!("{low} to {high}"),
            alpha.map_or_else(String::new, |alpha| format!("{alpha:.2}")),
        ]);
    };
    for ((name, proportion), (_, alpha)) in acceptance.points.iter().zip(&acceptance.alpha) {
        push(name, proportion, *alpha);
    }
    for (name, proportion) in &acceptance.strata {
        let name = if name.is_empty() { "(none)" } else { name };
        push(&format!("{} {name}", args.by), proportion, None);
    }
    push("all points", &acceptance.overall, None);
    format!(
        "{} rated by {}\n\n{}\n{} of {all} left out; written to {}\n",
        format_count(acceptance.overall.rated as u64, "evaluation"),
        format_count(acceptance.raters as u64, "rater"),
        table.render(TableStyle::terminal()),
        acceptance.rejected.len(),
        args.out.display()
    )
}
