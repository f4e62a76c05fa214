//! `acem3 calibrate`: calibration of a judge's scores to the label scale.

use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value};

use super::verdict_input::{read_labels, read_verdicts};
use crate::analysis::calibration::{
    Calibration, FitConfig, calibrated_means, fit_calibration, means_csv_table, means_table,
};
use crate::analysis::verdicts::Verdicts;
use crate::cli::args::{
    CalibrateApplyArgs, CalibrateArgs, CalibrateCommand, CalibrateFitArgs, TableFormat,
};
use crate::cli::commands::output::{render_tables, write_stdout};
use crate::support::files::regular_file;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::verbosity::Verbosity;

/// Runs the command.
pub(crate) fn run(args: &CalibrateArgs, verbosity: Verbosity) -> Result<Exit> {
    match &args.command {
        CalibrateCommand::Fit(args) => fit_maps(args, verbosity),
        CalibrateCommand::Apply(args) => apply_maps(args),
    }
}

fn fit_maps(args: &CalibrateFitArgs, verbosity: Verbosity) -> Result<Exit> {
    let verdicts = read_verdicts(&args.records, args.scores, &args.bootstrap)?;
    let units = read_labels(&verdicts, &args.labels, verbosity)?;
    let config = FitConfig {
        score_kind: args.scores,
        method: args.method,
        folds: args.folds as usize,
        bootstrap: args.bootstrap.to_bootstrap(),
    };
    let labels = args.labels.path.as_ref();
    let labels =
        labels.map_or("labels of the records".to_owned(), |path| path.display().to_string());
    let calibration = fit_calibration(&verdicts, &units, labels, &config)?;
    if let Some(out) = &args.out {
        calibration.write(out)?;
    }
    let tables = calibration.tables();
    let text = match args.format {
        TableFormat::Json => serde_json::to_string_pretty(&calibration)? + "\n",
        TableFormat::Csv => {
            tables.first().map_or(Ok(String::new()), |section| section.table.to_csv())?
        }
        TableFormat::Text | TableFormat::Markdown => {
            let intro = args.out.as_ref().map_or_else(
                || "calibration maps not saved; save them with --out FILE".to_owned(),
                |out| {
                    format!("calibration maps of {} written to {}", calibration.name, out.display())
                },
            );
            render_tables(&intro, &tables, args.format)
        }
    };
    write_stdout(&text)?;
    Ok(Exit::Done)
}

fn apply_maps(args: &CalibrateApplyArgs) -> Result<Exit> {
    let map = Calibration::read(&args.calibration)?;
    let verdicts = read_verdicts(&args.records, map.scores, &args.bootstrap)?;
    map.check_judge(&verdicts).with_context(|| {
        format!("--calibration {}: not applicable to these records", args.calibration.display())
    })?;
    if let Some(out) = &args.out {
        write_calibrated(&map, &verdicts, out)?;
    }
    let calibration = calibrated_means(&map, &verdicts, args.bootstrap.to_bootstrap());
    let text = match args.format {
        TableFormat::Json => serde_json::to_string_pretty(&calibration)? + "\n",
        TableFormat::Csv => means_csv_table(&calibration).to_csv()?,
        TableFormat::Text | TableFormat::Markdown => {
            let intro = format!("{} calibrated to {}", map.name, map.labels);
            render_tables(&intro, &[means_table(&calibration)], args.format)
        }
    };
    write_stdout(&text)?;
    Ok(Exit::Done)
}

/// Writes a copy of the records with calibrated scores.
fn write_calibrated(map: &Calibration, verdicts: &Verdicts, out: &Path) -> Result<()> {
    if out.canonicalize().ok() == verdicts.path.canonicalize().ok() {
        bail!("--out {}: is the file of the records\nhint: choose another file", out.display());
    }
    let records = BufReader::new(regular_file::open(&verdicts.path)?);
    let temporary = out.with_extension("part");
    let context = || format!("cannot write {}", out.display());
    let mut file = BufWriter::new(std::fs::File::create(&temporary).with_context(context)?);
    let mut pairs = verdicts.pairs.iter().peekable();
    for (number, line) in (1..).zip(records.lines()) {
        let line = line.with_context(|| format!("cannot read {}", verdicts.path.display()))?;
        let mut record: Map<String, Value> = match serde_json::from_str(&line) {
            Ok(record) => record,
            Err(_) if line.trim().is_empty() => continue,
            Err(error) => return Err(error).with_context(context),
        };
        if let Some(verdict) = pairs.next_if(|pair| pair.line == number) {
            record.insert("calibrated".to_owned(), map.map_record(verdict).unwrap_or_default());
        }
        let text = serde_json::to_string(&record).with_context(context)?;
        writeln!(file, "{text}").with_context(context)?;
    }
    file.flush().and_then(|()| std::fs::rename(&temporary, out)).with_context(context)
}
