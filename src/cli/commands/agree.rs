//! `acem3 agree`: a judge beside people.

use std::path::Path;

use anyhow::{Result, bail};
use serde::Serialize;

use super::{print, tables};
use crate::analysis::agreement::{
    Agreement, AgreementConfig, JudgeComparison, LabelledUnits, TableSection, agreement, compare,
    join,
};
use crate::analysis::verdicts;
use crate::analysis::verdicts::{ScoreKind, Verdicts};
use crate::cli::args::{AgreeArgs, BootstrapArgs, LabelArgs, TableFormat};
use crate::data::labels;
use crate::data::labels::LabelOptions;
use crate::statistics::Bootstrap;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::progress::say;
use crate::support::terminal::table::Table;
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
    let kind = ScoreKind::expected_if(args.expected);
    let mut verdicts = read(&args.records, kind, &args.sampling)?;
    if args.round {
        verdicts.round();
    }
    let units = labelled(&verdicts, &args.labels, verbosity)?;
    let bootstrap = bootstrap(&args.sampling);
    let plan = AgreementConfig {
        bootstrap,
        on: args.on.clone(),
        by: args.by.clone(),
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
                other.round();
            }
            let target = section.target;
            let of = units.targets.get(&target);
            of.map(|of| compare((&verdicts, of), &other, target, bootstrap))
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
        TableFormat::Csv => long(&found).csv()?,
        TableFormat::Text | TableFormat::Markdown => {
            let mut parts: Vec<TableSection> = found.parts();
            parts.extend(against.as_ref().map(JudgeComparison::part));
            tables(&found.lead(), &parts, args.format)
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
        return join(verdicts, &verdicts.labels, &verdicts.path);
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
    let units = join(verdicts, &file.entries, path)?;
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

/// Every figure on a line of its own.
fn long(found: &Agreement) -> Table {
    let mut grid = Table::new([
        "target",
        "by",
        "group",
        "statistic",
        "value",
        "low",
        "high",
        "exact_low",
        "exact_high",
        "n",
        "labelled",
        "coverage",
        "worst",
        "best",
        "images",
        "undefined",
        "ceiling",
        "ceiling_low",
        "ceiling_high",
        "ceiling_n",
    ]);
    let target = found
        .sections
        .first()
        .map_or("", |section| section.target.key());
    let sections = found
        .sections
        .iter()
        .map(|s| (s.target.key(), "", "", &s.figures));
    let groups = found
        .groups
        .iter()
        .map(|g| (target, g.by.as_str(), g.value.as_str(), &g.figures));
    for (target, by, value, figures) in sections.chain(groups) {
        for figure in figures {
            let number = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
            let end = |ends: Option<[f64; 2]>, i: usize| number(ends.map(|ends| ends[i]));
            let estimate = &figure.estimate;
            let (interval, ceiling) = (estimate.interval.ok(), figure.ceiling.as_ref());
            let ceiling_interval = ceiling.and_then(|c| c.estimate.interval.ok());
            grid.row([
                target.to_owned(),
                by.to_owned(),
                value.to_owned(),
                figure.statistic.key(),
                number(estimate.value.ok()),
                end(interval, 0),
                end(interval, 1),
                end(figure.exact, 0),
                end(figure.exact, 1),
                estimate.n.to_string(),
                figure.coverage.labelled.to_string(),
                figure.coverage.share().to_string(),
                end(figure.bounds(), 0),
                end(figure.bounds(), 1),
                estimate.clusters.to_string(),
                figure.reason().unwrap_or_default(),
                number(ceiling.and_then(|c| c.estimate.value.ok())),
                end(ceiling_interval, 0),
                end(ceiling_interval, 1),
                ceiling.map_or(String::new(), |c| c.estimate.n.to_string()),
            ]);
        }
    }
    grid
}
