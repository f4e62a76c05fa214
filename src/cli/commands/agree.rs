//! `acem3 agree`: a judge beside people.

use std::path::Path;

use anyhow::{Result, bail};
use serde::Serialize;

use super::{print, render_tables};
use crate::analysis::agreement::{
    Agreement, AgreementConfig, JudgeComparison, LabelledUnits, agreement, compare_judges,
    join_labels,
};
use crate::analysis::verdicts;
use crate::analysis::verdicts::{ScoreKind, Verdicts};
use crate::cli::args::{AgreeArgs, BootstrapArgs, LabelArgs, TableFormat};
use crate::data::labels;
use crate::data::labels::LabelOptions;
use crate::statistics::Bootstrap;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::progress::say;
use crate::support::terminal::verbosity::Verbosity;

/// What is written as JSON.
#[derive(Serialize)]
struct AgreementOutput<'a> {
    #[serde(flatten)]
    agreement: &'a Agreement,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<&'a JudgeComparison>,
}

/// Runs the command.
pub(super) fn run(args: &AgreeArgs, verbosity: Verbosity) -> Result<Exit> {
    let kind = ScoreKind::from_flag(args.expected);
    let mut verdicts = read(&args.records, kind, &args.sampling)?;
    if args.round {
        verdicts.round_scores();
    }
    let units = labelled(&verdicts, &args.labels, verbosity)?;
    let bootstrap = bootstrap(&args.sampling);
    let plan = AgreementConfig {
        bootstrap,
        targets: args.on.clone(),
        group_by: args.by.clone(),
    };
    let labels = args
        .labels
        .labels
        .as_ref()
        .map(|path| path.display().to_string());
    let found = agreement(&verdicts, &units, labels, &plan)?;
    let against = match (&args.against, found.sections.first()) {
        (Some(path), Some(section)) => {
            let mut other = read(path, kind, &args.sampling)?;
            if other.judge == verdicts.judge && !verbosity.quiet {
                say(&format!(
                    "--against {}: verdicts of the same judge ({}), so that a difference is one of its runs",
                    path.display(),
                    verdicts.name
                ));
            }
            if args.round {
                other.round_scores();
            }
            let target = section.target;
            let of = units.targets.get(&target);
            of.map(|of| compare_judges([&verdicts, &other], of, target, bootstrap))
                .transpose()?
        }
        _ => None,
    };
    let text = match args.format {
        TableFormat::Json => {
            let told = AgreementOutput {
                agreement: &found,
                against: against.as_ref(),
            };
            serde_json::to_string_pretty(&told)? + "\n"
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

/// The draws that the flags ask for.
pub(super) fn bootstrap(args: &BootstrapArgs) -> Bootstrap {
    Bootstrap {
        draws: args.draws as usize,
        seed: args.seed,
    }
}

/// The verdicts of a run, with the clusters asked for.
pub(super) fn read(path: &Path, kind: ScoreKind, args: &BootstrapArgs) -> Result<Verdicts> {
    let mut verdicts = verdicts::read(path, kind)?;
    if verdicts.torn {
        say(&format!(
            "{}: its last record is not whole and is left out: a run is writing it, or was ended as it did; \
             the same `acem3 judge` makes it anew",
            verdicts.path.display()
        ));
    }
    if let Some(field) = &args.cluster {
        verdicts.cluster_by(field)?;
    }
    Ok(verdicts)
}

/// Labels joined to verdicts: those of the file, else the records' own.
pub(super) fn labelled(
    verdicts: &Verdicts,
    args: &LabelArgs,
    verbosity: Verbosity,
) -> Result<LabelledUnits> {
    let note = |text: String| {
        if !verbosity.quiet {
            say(&text);
        }
    };
    let Some(path) = &args.labels else {
        if verdicts.labels.is_empty() {
            bail!(
                "{}: the records carry no labels\nhint: give a label file with --labels FILE; \
                 `acem3 agree --help` shows its forms",
                verdicts.path.display()
            );
        }
        return join_labels(verdicts, &verdicts.labels, &verdicts.path);
    };
    let options = LabelOptions {
        raters: args.raters.clone(),
        scale: args.scale.map(|scale| scale.0),
    };
    let file = labels::read(path, &options)?;
    if !file.unused.is_empty() {
        let names: Vec<&str> = file.unused.iter().map(String::as_str).collect();
        note(format!(
            "{}: columns not used: {}",
            path.display(),
            names.join(", ")
        ));
    }
    if let Some(beyond) = file.beyond() {
        note(format!("{}: {beyond}", path.display()));
    }
    let units = join_labels(verdicts, &file.entries, path)?;
    if let Some(first) = &units.first_unmatched {
        note(format!(
            "{}: {} of {} labels are about nothing in the records ({first})",
            path.display(),
            units.unmatched,
            units.unmatched + units.joined
        ));
    }
    Ok(units)
}
