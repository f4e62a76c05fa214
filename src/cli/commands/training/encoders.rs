//! `acem3 encoders`: comparison of vision encoders with the same training budget.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::cli::args::{EncodersArgs, OutputFormat};
use crate::cli::commands::output::write_stdout;
use crate::support::files::folder::create_folder;
use crate::support::tables::TableStyle;
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
    write_files(&comparison, &args.out)?;
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

fn write_files(comparison: &EncoderComparison, out: &Path) -> Result<()> {
    let name = comparison.measure;
    let files =
        [("json", serde_json::to_string_pretty(comparison)? + "\n"), ("svg", comparison.svg())];
    for (extension, text) in files {
        let path = out.join(format!("{name}.{extension}"));
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
