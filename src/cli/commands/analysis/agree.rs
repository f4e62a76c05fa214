//! `acem3 agree`: agreement between a judge and human labels.

use anyhow::Result;
use serde::Serialize;

use super::verdict_input::{read_labels, read_verdicts};
use crate::analysis::agreement::{
    Agreement, AgreementConfig, JudgeComparison, agreement, compare_judges,
};
use crate::cli::args::{AgreeArgs, TableFormat};
use crate::cli::commands::output::{print, render_tables};
use crate::support::terminal::exit::Exit;
use crate::support::terminal::progress::say;
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
    let bootstrap = args.bootstrap.bootstrap();
    let plan = AgreementConfig {
        bootstrap,
        targets: args.target.clone(),
        group_by: args.group_by.clone(),
    };
    let labels = args
        .labels
        .path
        .as_ref()
        .map(|path| path.display().to_string());
    let found = agreement(&verdicts, &units, labels, &plan)?;
    let against = match (&args.against, found.sections.first()) {
        (Some(path), Some(section)) => {
            let mut other = read_verdicts(path, args.scores, &args.bootstrap)?;
            if other.judge == verdicts.judge && !verbosity.quiet {
                say(&format!(
                    "--against {}: verdicts of the same judge ({}); differences are between runs of one judge",
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
            let output = AgreementOutput {
                agreement: &found,
                against: against.as_ref(),
            };
            serde_json::to_string_pretty(&output)? + "\n"
        }
        TableFormat::Csv => found.csv_table().csv()?,
        TableFormat::Text | TableFormat::Markdown => {
            let mut tables = found.tables();
            tables.extend(against.as_ref().map(JudgeComparison::table));
            render_tables(&found.intro(), &tables, args.format)
        }
    };
    print(&text)?;
    Ok(Exit::Done)
}
