//! `acem3 train`: training, evaluation and ablations of panels.

use anyhow::bail;
use clap::ValueEnum as _;

use super::result_files::{ResultFiles, ResultFormat};
use super::{evaluate, introspect};
use crate::checkpoints::hub::HubDownloads;
use crate::cli::args::{OutputFormat, TrainAblateArgs, TrainArgs, TrainCommand, TrainRunArgs};
use crate::cli::commands::output::write_stdout;
use crate::support::device::open_device;
use crate::support::tables::TableStyle;
use crate::support::tables::chart::SVG_CHART;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;
use crate::training::comparisons::ablation::{Ablation, AblationConfig, AblationTable};
use crate::training::measurement::MeasurementConfig;
use crate::training::{TrainConfig, TrainPaths, TrainingProgress, train};

/// Number of phantom cases of an ablation without labelled cases.
const DEFAULT_PHANTOMS: u64 = 200;

/// Runs the command.
pub(crate) fn run(args: &TrainArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    match &args.command {
        TrainCommand::Run(args) => train_panel(args, verbosity),
        TrainCommand::Eval(args) => evaluate::run(args, verbosity),
        TrainCommand::Ablate(args) => run_ablation(args, verbosity),
        TrainCommand::Introspect(args) => introspect::run(args, verbosity),
    }
}

fn train_panel(args: &TrainRunArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let downloads = HubDownloads::new(args.hub, verbosity.quiet);
    let (config, start) = TrainConfig::load(&args.config, downloads)?;
    if args.data.is_none() && config.uses_data_sets() && !verbosity.quiet {
        print_lines(
            "`data_shares` and `real` of the stages have no effect without --data: training uses \
             phantoms only",
        );
    }
    let interrupt = Interrupt::listen()?;
    let is_complete = train(
        &config,
        start.as_ref(),
        &TrainPaths {
            out: args.out.clone(),
            data: args.data.clone(),
            device: open_device(&args.device)?,
        },
        &TrainingProgress::new(verbosity.quiet, interrupt),
    )?;
    if !is_complete {
        print_lines("interrupted; run the same command to resume");
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::Done)
}

fn run_ablation(args: &TrainAblateArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let downloads = HubDownloads::new(args.hub, verbosity.quiet);
    let (config, start) = TrainConfig::load(&args.config, downloads)?;
    let interrupt = Interrupt::listen()?;
    let progress = TrainingProgress::new(verbosity.quiet, interrupt.clone());
    let ablation_config = AblationConfig {
        seeds: args.seeds,
        measurement: MeasurementConfig {
            phantoms: args.phantoms.unwrap_or(if args.cases.is_some() {
                0
            } else {
                DEFAULT_PHANTOMS
            }),
            cases: args.cases.clone(),
            seed: args.seed,
            data: args.data.clone(),
            limit: args.limit.unwrap_or(usize::MAX),
            tests_image_sensitivity: false,
        },
        data: args.data.clone(),
        knowledge: args.knowledge.open()?,
        introspection: args.introspection.clone(),
        device: open_device(&args.device)?,
    };
    let MeasurementConfig { phantoms, cases, .. } = &ablation_config.measurement;
    if *phantoms == 0 && ablation_config.data.is_none() && cases.is_none() {
        bail!(
            "--phantoms 0: no cases to evaluate on\n\
             hint: pass --phantoms N, --cases PATH or --data DIR"
        );
    }
    let name = args.study.to_possible_value();
    let name = name.map_or_else(String::new, |value| value.get_name().to_owned());
    let formats = vec![
        ResultFormat { extension: "json", form: AblationTable::JSON_FORM },
        ResultFormat { extension: "md", form: AblationTable::MARKDOWN_FORM },
        ResultFormat { extension: "svg", form: SVG_CHART },
    ];
    let files = ResultFiles::check(&args.out, &name, formats)?;
    let ablation = Ablation {
        study: args.study,
        base: &config,
        initial_model: start.as_ref(),
        config: &ablation_config,
        out: &args.out,
        progress: &progress,
        interrupt: &interrupt,
    };
    let Some(table) = ablation.run()? else {
        print_lines("interrupted; run the same command to resume");
        return Ok(Exit::Interrupted);
    };
    let json = serde_json::to_string_pretty(&table)? + "\n";
    files.write("json", &json)?;
    files.write("md", &table.text(TableStyle::Markdown))?;
    files.write("svg", &table.svg())?;
    write_stdout(&match args.format {
        OutputFormat::Text => table.text(TableStyle::terminal()),
        OutputFormat::Json => json,
    })?;
    Ok(Exit::Done)
}
