//! `acem3 encoders`: comparison of vision encoders with the same training budget.

use std::path::Path;

use anyhow::{Result, bail};

use super::result_files::{ResultFiles, ResultFormat};
use crate::cli::args::{EncodersArgs, OutputFormat};
use crate::cli::commands::output::write_stdout;
use crate::support::files::folder::create_folder;
use crate::support::tables::TableStyle;
use crate::support::tables::chart::SVG_CHART;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;
use crate::training::TrainingProgress;
use crate::training::encoders::panel_comparison::{ProjectorBudget, ProjectorTraining};
use crate::training::encoders::{
    Candidate, EncoderComparison, EncoderTestConfig, linear_probe, panel_comparison,
};

/// Runs the command.
pub(crate) fn run(args: &EncodersArgs, verbosity: Verbosity) -> Result<Exit> {
    if args.steps == 0 || args.batch_size == 0 || args.test_cases == 0 || args.train_cases == 0 {
        bail!("--steps, --batch-size, --train-cases and --test-cases must be at least 1");
    }
    let names: Vec<&str> = if args.encoders.is_empty() {
        vec!["embedded", "random:1", "random:2"]
    } else {
        args.encoders.iter().map(String::as_str).collect()
    };
    let open = |name| Candidate::open(name, &args.hub, verbosity.quiet);
    let encoders = names.into_iter().map(open);
    let encoders = encoders.collect::<Result<Vec<_>>>()?;
    let test_config = EncoderTestConfig {
        data: args.data.clone(),
        train_count: args.train_cases,
        test_count: args.test_cases,
        seed: args.seed,
    };
    let print_note = |text: &str| {
        if !verbosity.quiet {
            print_lines(text);
        }
    };
    create_folder(&args.out)?;
    let name = if args.probe_only { linear_probe::MEASURE } else { panel_comparison::MEASURE };
    let formats = vec![
        ResultFormat { extension: "json", form: EncoderComparison::JSON_FORM },
        ResultFormat { extension: "svg", form: SVG_CHART },
    ];
    let files = ResultFiles::check(&args.out, name, formats)?;
    let comparison = if args.probe_only {
        linear_probe::compare(&encoders, &test_config, &print_note)?
    } else {
        let progress = TrainingProgress::new(verbosity.quiet, Interrupt::default());
        let training = ProjectorTraining {
            budget: ProjectorBudget {
                steps: args.steps,
                batch: args.batch_size,
                learning_rate: args.learning_rate,
            },
            out: &args.out,
            progress: &progress,
        };
        check_output_folder(&args.out)?;
        panel_comparison::compare(&encoders, &test_config, &training, &print_note)?
    };
    files.write("json", &(serde_json::to_string_pretty(&comparison)? + "\n"))?;
    files.write("svg", &comparison.svg())?;
    let text = match args.format {
        OutputFormat::Text => comparison.text(TableStyle::terminal()),
        OutputFormat::Json => serde_json::to_string_pretty(&comparison)? + "\n",
    };
    write_stdout(&text)?;
    Ok(Exit::Done)
}

/// Returns an error if the folder has panels of an earlier comparison, which this one would reuse.
fn check_output_folder(out: &Path) -> Result<()> {
    let existing = out.join("encoder-1");
    if existing.exists() {
        bail!(
            "--out {}: the folder has panels of an earlier comparison\n\
             hint: choose another folder, or move this one away",
            out.display()
        );
    }
    Ok(())
}
