//! `acem3 agree`: agreement between a judge and human labels.

use anyhow::Result;
use serde::Serialize;

use super::verdict_input::{read_labels, read_verdicts};
use crate::analysis::agreement::{
    Agreement, AgreementConfig, JudgeComparison, compare_judges, compute_agreement,
};
use crate::cli::args::{AgreeArgs, TableFormat};
use crate::cli::commands::output::{render_tables, write_stdout};
use crate::support::terminal::exit::Exit;
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;

/// The JSON output.
#[derive(Serialize)]
struct AgreementOutput<'a> {
    #[serde(flatten)]
    agreement: &'a Agreement,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<&'a JudgeComparison>,
}

/// Runs the command.
pub(crate) fn run(args: &AgreeArgs, verbosity: Verbosity) -> Result<Exit> {
    let mut verdicts = read_verdicts(&args.records, args.scores, &args.bootstrap)?;
    if args.round {
        verdicts.round_scores();
    }
    let units = read_labels(&verdicts, &args.labels, verbosity)?;
    let bootstrap = args.bootstrap.to_bootstrap();
    let config = AgreementConfig {
        bootstrap,
        targets: args.target.clone(),
        group_by: args.group_by.clone(),
    };
    let labels = args.labels.path.as_ref().map(|path| path.display().to_string());
    let result = compute_agreement(&verdicts, &units, labels, &config)?;
    let comparison = match (&args.against, result.sections.first()) {
        (Some(path), Some(section)) => {
            let mut other = read_verdicts(path, args.scores, &args.bootstrap)?;
            if other.judge == verdicts.judge && !verbosity.quiet {
                print_lines(&format!(
                    "--against {}: verdicts of the same judge ({}); differences are between runs \
                     of one judge",
                    path.display(),
                    verdicts.name
                ));
            }
            if args.round {
                other.round_scores();
            }
            let target = section.target;
            let labelled = units.targets.get(&target);
            labelled
                .map(|labelled| compare_judges([&verdicts, &other], labelled, target, bootstrap))
                .transpose()?
        }
        _ => None,
    };
    let text = match args.format {
        TableFormat::Json => {
            let output = AgreementOutput { agreement: &result, against: comparison.as_ref() };
            serde_json::to_string_pretty(&output)? + "\n"
        }
        TableFormat::Csv => result.csv_table().to_csv()?,
        TableFormat::Text | TableFormat::Markdown => {
            let mut tables = result.tables();
            tables.extend(comparison.as_ref().map(JudgeComparison::table));
            render_tables(&result.intro(), &tables, args.format)
        }
    };
    write_stdout(&text)?;
    Ok(Exit::Done)
}
