//! `acem3 train introspect`: rounds of training, judging and data improvement.

mod sources;

use self::sources::Sources;
use super::result_files::{ResultFiles, ResultFormat};
use crate::checkpoints::hub::HubDownloads;
use crate::cli::args::{IntrospectArgs, OutputFormat};
use crate::cli::commands::output::write_stdout;
use crate::data::images::outside_images::OutsideImages;
use crate::support::tables::TableStyle;
use crate::support::tables::chart::SVG_CHART;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;
use crate::training::introspection::{
    Adviser, Discussion, Introspection, IntrospectionEnd, Reviewer, Rounds,
};
use crate::training::{TrainConfig, TrainingProgress};

/// Runs the command.
pub(super) fn run(args: &IntrospectArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let downloads = HubDownloads::new(args.hub, verbosity.quiet);
    let (config, start) = TrainConfig::load(&args.config, downloads)?;
    let placement = args.device.open()?;
    let (knowledge, rubric) = (args.knowledge.open()?, config.judging.to_rubric()?);
    let sources =
        Sources { args, placement: &placement, verbosity, knowledge: knowledge.clone(), rubric };
    let mut discussion = sources.open()?;
    let formats = vec![
        ResultFormat { extension: "json", form: Rounds::JSON_FORM },
        ResultFormat { extension: "md", form: Rounds::MARKDOWN_FORM },
        ResultFormat { extension: "svg", form: SVG_CHART },
    ];
    let files = ResultFiles::check(&args.out, "rounds", formats)?;
    let interrupt = Interrupt::listen()?;
    let sends_images = sends_images(&discussion);
    let introspection = Introspection {
        config: &config,
        initial_model: start.as_ref(),
        continues: !args.restart,
        cases: &args.cases.to_spec(2),
        held_out: args.held_out.as_deref(),
        data: args.data.clone(),
        out: &args.out,
        rounds: args.rounds,
        decisions: args.discussion.decisions.as_deref(),
        waits_for_people: args.discussion.wait_for_people,
        outside_images: if sends_images && !args.discussion.allow_outside {
            OutsideImages::rejected()
        } else {
            OutsideImages::accepted()
        },
        batch_size: args.batch_size as usize,
        placement,
        knowledge,
        verbosity,
        progress: &TrainingProgress::new(verbosity.quiet, interrupt.clone()),
        interrupt: &interrupt,
    };
    let (rounds, exit) = match introspection.run(&mut discussion)? {
        IntrospectionEnd::Finished(rounds) => (rounds, Exit::Done),
        IntrospectionEnd::WaitsForPeople(rounds) => (rounds, Exit::Failed),
        IntrospectionEnd::Interrupted => {
            print_lines("interrupted; run the same command to resume");
            return Ok(Exit::Interrupted);
        }
    };
    let json = serde_json::to_string_pretty(&rounds)? + "\n";
    if exit == Exit::Done {
        files.write("json", &json)?;
        files.write("md", &rounds.text(TableStyle::Markdown))?;
        files.write("svg", &rounds.svg())?;
    } else {
        print_lines(
            "people have to decide before the next training\n\
             hint: fill in `decision` in a copy of unresolved.jsonl, and run the same command with --decisions COPY",
        );
    }
    write_stdout(&match args.format {
        OutputFormat::Text => rounds.text(TableStyle::terminal()),
        OutputFormat::Json => json,
    })?;
    Ok(exit)
}

/// Returns true if the discussion sends images to a server.
fn sends_images(discussion: &Discussion) -> bool {
    matches!(discussion.adviser, Adviser::Endpoint(_))
        || matches!(discussion.reviewer, Some(Reviewer::Endpoint(_)))
}
