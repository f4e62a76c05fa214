//! `acem3 encoders`: comparison of vision encoders with the same training budget.

use anyhow::{Result, bail};

use super::result_files::{ResultFiles, ResultFormat};
use crate::checkpoints::hub::HubDownloads;
use crate::cli::args::{EncodersArgs, TableFormat};
use crate::cli::commands::output::write_stdout;
use crate::support::device::DtypeChoice;
use crate::support::files::file_form::{FileForm, starts_with};
use crate::support::files::folder::create_folder;
use crate::support::tables::TableStyle;
use crate::support::tables::chart::SVG_CHART;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;
use crate::training::comparisons::encoders::panels::{
    EncoderExperiment, EncoderPlan, ExperimentOutput, JudgedComparison, MEASURE, MemberTraining,
};
use crate::training::comparisons::encoders::probe::{EncoderComparison, linear_probe};
use crate::training::comparisons::encoders::{Candidate, EncoderTestConfig};
use crate::training::{Precision, TrainingProgress};

/// The form of the Markdown file.
const MARKDOWN: FileForm = FileForm {
    name: "the tables of an encoder comparison of acem3",
    recognise: |file| starts_with(file, "encoders on "),
};
/// The form of the CSV file.
const CSV: FileForm = FileForm {
    name: "the values of an encoder comparison of acem3",
    recognise: |file| starts_with(file, "encoder,compared_with,statistic,group,"),
};

/// Returns an error if an argument is out of range or has no effect.
fn check_arguments(args: &EncodersArgs, names: &[&str]) -> Result<()> {
    if args.steps == 0 || args.batch_size == 0 || args.test_cases == 0 || args.train_cases == 0 {
        bail!(
            "--steps, --batch-size, --train-cases and --test-cases must be at least 1\n\
             hint: omit a flag to use its default"
        );
    }
    for (flag, rate) in [
        ("--learning-rate", args.learning_rate),
        ("--member-learning-rate", args.member_learning_rate),
    ] {
        if !(rate.is_finite() && rate > 0.0) {
            bail!(
                "{flag} is {rate}, expected a positive number\nhint: omit the flag to use its default"
            );
        }
    }
    if let Some(name) =
        names.iter().enumerate().find_map(|(i, n)| names[..i].contains(n).then_some(n))
    {
        bail!("the encoder {name} is named twice\nhint: name each encoder once");
    }
    if args.member_steps.is_some() && args.layers.is_none() && args.lora.is_none() {
        bail!(
            "--member-steps: has no effect, because no part of the members is trained\n\
             hint: pass --layers or --lora, or omit the flag"
        );
    }
    Ok(())
}

/// Runs the command.
pub(crate) fn run(args: &EncodersArgs, verbosity: Verbosity) -> Result<Exit> {
    let names: Vec<&str> = if args.encoders.is_empty() {
        vec!["embedded", "random:1", "random:2"]
    } else {
        args.encoders.iter().map(String::as_str).collect()
    };
    check_arguments(args, &names)?;
    let print_note = |text: &str| {
        if !verbosity.quiet {
            print_lines(text);
        }
    };
    if args.probe_only {
        for flag in flags_of_training(args) {
            print_note(&format!("{flag} has no effect with --probe-only"));
        }
    }
    let open = |name| Candidate::open(name, &args.hub, verbosity.quiet);
    let encoders = names.into_iter().map(open).collect::<Result<Vec<_>>>()?;
    create_folder(&args.out)?;
    let text = if args.probe_only {
        probe(args, &encoders, &print_note)?
    } else {
        compare_panels(args, &encoders, verbosity, &print_note)?
    };
    write_stdout(&text)?;
    Ok(Exit::Done)
}

/// Returns the flags of training that are set.
fn flags_of_training(args: &EncodersArgs) -> Vec<&'static str> {
    let flags = [
        (args.panel.is_some(), "--panel"),
        (args.layers.is_some(), "--layers"),
        (args.lora.is_some(), "--lora"),
        (args.member_steps.is_some(), "--member-steps"),
        (args.projector.is_some(), "--projector"),
        (args.context.is_some(), "--context"),
        (args.class_token, "--class-token"),
        (args.seeds > 1, "--seeds"),
    ];
    flags.into_iter().filter_map(|(is_set, flag)| is_set.then_some(flag)).collect()
}

/// Runs linear probes, writes their files and returns their tables.
fn probe(args: &EncodersArgs, encoders: &[Candidate], print_note: &dyn Fn(&str)) -> Result<String> {
    let formats = vec![
        ResultFormat { extension: "json", form: EncoderComparison::JSON_FORM },
        ResultFormat { extension: "svg", form: SVG_CHART },
    ];
    let files = ResultFiles::check(&args.out, linear_probe::MEASURE, formats)?;
    let config = EncoderTestConfig {
        data: args.data.clone(),
        train_count: args.train_cases,
        test_count: args.test_cases,
        seed: args.seed,
    };
    let comparison = linear_probe::compare(encoders, &config, print_note)?;
    let json = serde_json::to_string_pretty(&comparison)? + "\n";
    files.write("json", &json)?;
    files.write("svg", &comparison.svg())?;
    Ok(match args.format {
        TableFormat::Text => comparison.text(TableStyle::terminal()),
        TableFormat::Markdown => comparison.text(TableStyle::Markdown),
        TableFormat::Csv => comparison.csv_table().to_csv()?,
        TableFormat::Json => json,
    })
}

/// Trains and judges panels, writes the result files and returns the tables.
fn compare_panels(
    args: &EncodersArgs,
    encoders: &[Candidate],
    verbosity: Verbosity,
    print_note: &dyn Fn(&str),
) -> Result<String> {
    let formats = vec![
        ResultFormat { extension: "json", form: JudgedComparison::JSON_FORM },
        ResultFormat { extension: "csv", form: CSV },
        ResultFormat { extension: "md", form: MARKDOWN },
        ResultFormat { extension: "svg", form: SVG_CHART },
    ];
    let files = ResultFiles::check(&args.out, MEASURE, formats)?;
    let interrupt = Interrupt::listen()?;
    let progress = TrainingProgress::new(verbosity.quiet, interrupt.clone());
    let experiment = EncoderExperiment {
        encoders,
        panel: args.panel.as_deref(),
        plan: plan(args)?,
        data: args.data.clone(),
        test_count: args.test_cases,
        seed: args.seed,
        seeds: args.seeds,
    };
    let output = ExperimentOutput {
        out: &args.out,
        placement: &args.device.open()?,
        progress: &progress,
        interrupt: &interrupt,
        log: print_note,
    };
    let downloads = HubDownloads::new(args.hub, verbosity.quiet);
    let comparison = experiment.run(downloads, &output)?;
    let json = serde_json::to_string_pretty(&comparison)? + "\n";
    let csv = comparison.csv_table().to_csv()?;
    let markdown = comparison.text(TableStyle::Markdown);
    files.write("json", &json)?;
    files.write("csv", &csv)?;
    files.write("md", &markdown)?;
    files.write("svg", &comparison.svg())?;
    Ok(match args.format {
        TableFormat::Text => comparison.text(TableStyle::terminal()),
        TableFormat::Markdown => markdown,
        TableFormat::Csv => csv,
        TableFormat::Json => json,
    })
}

/// Returns the training that every encoder gets.
fn plan(args: &EncodersArgs) -> Result<EncoderPlan> {
    let dtype = match args.device.dtype {
        DtypeChoice::F32 => Precision::F32,
        DtypeChoice::Bf16 => Precision::Bf16,
        _ => bail!(
            "--dtype: training computes in f32 or bf16\n\
             hint: use --dtype bf16 to save memory, and `acem3 judge` with the written panels for other types"
        ),
    };
    let members = match (args.layers, args.lora) {
        (Some(n), _) => MemberTraining::UpperLayers(n),
        (None, Some(rank)) => MemberTraining::Adapters(rank),
        (None, None) => MemberTraining::Frozen,
    };
    Ok(EncoderPlan {
        steps: args.steps,
        batch: args.batch_size,
        learning_rate: args.learning_rate,
        members,
        member_steps: args.member_steps.unwrap_or(args.steps),
        member_learning_rate: args.member_learning_rate,
        projector: args.projector,
        context: args.context,
        uses_class_token: args.class_token,
        dtype,
    })
}
