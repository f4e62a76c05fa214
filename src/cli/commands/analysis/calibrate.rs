//! `acem3 calibrate`: calibration of a judge's scores to the label scale.

use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value};

use super::verdict_input::{read_labels, read_verdicts};
use crate::analysis::calibration::{
    Calibration, FitConfig, fit, means, means_csv_table, means_table,
};
use crate::analysis::verdicts::Verdicts;
use crate::cli::args::{
    CalibrateApplyArgs, CalibrateArgs, CalibrateCommand, CalibrateFitArgs, TableFormat,
};
use crate::cli::commands::output::{print, render_tables};
use crate::support::files::regular_file;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::verbosity::Verbosity;

/// Runs the command.
pub(crate) fn run(args: &CalibrateArgs, verbosity: Verbosity) -> Result<Exit> {
    match &args.command {
        CalibrateCommand::Fit(args) => fit_maps(args, verbosity),
        CalibrateCommand::Apply(args) => apply(args),
    }
}

fn fit_maps(args: &CalibrateFitArgs, verbosity: Verbosity) -> Result<Exit> {
    let verdicts = read_verdicts(&args.records, args.scores, &args.bootstrap)?;
    let units = read_labels(&verdicts, &args.labels, verbosity)?;
    let fitting = FitConfig {
        scores: args.scores,
        method: args.method,
        folds: args.folds as usize,
        bootstrap: args.bootstrap.bootstrap(),
    };
    let labels = args.labels.path.as_ref();
    let labels = labels.map_or("labels of the records".to_owned(), |path| {
        path.display().to_string()
    });
    let found = fit(&verdicts, &units, labels, &fitting)?;
    if let Some(out) = &args.out {
        found.write(out)?;
    }
    let tables = found.tables();
    let text = match args.format {
        TableFormat::Json => serde_json::to_string_pretty(&found)? + "\n",
        TableFormat::Csv => tables
            .first()
            .map_or(Ok(String::new()), |section| section.table.csv())?,
        TableFormat::Text | TableFormat::Markdown => {
            let intro = args.out.as_ref().map_or_else(
                || "maps not saved; save them with --out FILE".to_owned(),
                |out| format!("maps of {} in {}", found.name, out.display()),
            );
            render_tables(&intro, &tables, args.format)
        }
    };
    print(&text)?;
    Ok(Exit::Done)
}

fn apply(args: &CalibrateApplyArgs) -> Result<Exit> {
    let map = Calibration::read(&args.calibration)?;
    let verdicts = read_verdicts(&args.records, map.scores, &args.bootstrap)?;
    map.check(&verdicts).with_context(|| {
        format!(
            "--calibration {}: not applicable to these records",
            args.calibration.display()
        )
    })?;
    if let Some(out) = &args.out {
        write(&map, &verdicts, out)?;
    }
    let found = means(&map, &verdicts, args.bootstrap.bootstrap());
    let text = match args.format {
        TableFormat::Json => serde_json::to_string_pretty(&found)? + "\n",
        TableFormat::Csv => means_csv_table(&found).csv()?,
        TableFormat::Text | TableFormat::Markdown => {
            let intro = format!("{} on the label scale of {}", map.name, map.labels);
            render_tables(&intro, &[means_table(&found)], args.format)
        }
    };
    print(&text)?;
    Ok(Exit::Done)
}

/// Writes a copy of the records with calibrated scores.
fn write(map: &Calibration, verdicts: &Verdicts, out: &Path) -> Result<()> {
    if out.canonicalize().ok() == verdicts.path.canonicalize().ok() {
        bail!(
            "--out {}: is the file of the records\nhint: choose another file",
            out.display()
        );
    }
    let records = BufReader::new(regular_file::open(&verdicts.path)?);
    let part = out.with_extension("part");
    let place = || format!("cannot write {}", out.display());
    let mut file = BufWriter::new(std::fs::File::create(&part).with_context(place)?);
    let mut pairs = verdicts.pairs.iter().peekable();
    for (number, line) in (1..).zip(records.lines()) {
        let line = line.with_context(|| format!("cannot read {}", verdicts.path.display()))?;
        let mut record: Map<String, Value> = match serde_json::from_str(&line) {
            Ok(record) => record,
            Err(_) if line.trim().is_empty() => continue,
            Err(error) => return Err(error).with_context(place),
        };
        if let Some(verdict) = pairs.next_if(|pair| pair.line == number) {
            record.insert(
                "calibrated".to_owned(),
                map.mapped(verdict).unwrap_or_default(),
            );
        }
        let text = serde_json::to_string(&record).with_context(place)?;
        writeln!(file, "{text}").with_context(place)?;
    }
    file.flush()
        .and_then(|()| std::fs::rename(&part, out))
        .with_context(place)
}
