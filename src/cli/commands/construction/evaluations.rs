//! `acem3 data evaluations`: lets a teacher evaluate responses, checks its verdicts, and writes them as
//! training data.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use acem3_experts::prompt::{ChatTemplate, Form, Rubric};
use anyhow::{Context as _, Result, bail};

use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::sample_count::SampleCount;
use crate::cli::args::{
    CheckRuleArgs, CheckSource, EvaluationsArgs, FormArg, JudgeArgs, OutputFormat, ReferenceUse,
};
use crate::cli::commands::judge;
use crate::cli::commands::output::write_stdout;
use crate::judging::knowledge::AskedEvidence;
use crate::judging::run::journal::RECORDS;
use crate::judging::run::manifest::{MANIFEST, Manifest, RunStatus};
use crate::support::files::atomic_file::write_atomic;
use crate::support::files::folder::create_folder;
use crate::support::network::service_url::looks_like_url;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::format_count;
use crate::training::TrainConfig;
use crate::training::construction::evaluations::recipe::{Recipe, RecipeReference};
use crate::training::construction::evaluations::{
    CheckRules, ConversionRequest, ConversionSummary, EVALUATIONS, REJECTED, SUMMARY, check_rubric,
    convert_records,
};
use crate::training::preferences::PromptStyle;

/// Folder of the teacher's run, in the output folder.
const TEACHER: &str = "teacher";
/// The teacher's rubric, with the instructions of the recipe.
const TEACHER_RUBRIC: &str = "teacher_rubric.toml";

/// Runs the command.
pub(in crate::cli::commands) fn run(args: &EvaluationsArgs, verbosity: Verbosity) -> Result<Exit> {
    let recipe = args.recipe.as_deref().map(RecipeSettings::read).transpose()?;
    let is_run =
        args.source.path.join(RECORDS).is_file() && args.source.path.join(MANIFEST).is_file();
    if is_run && args.dry_run {
        bail!(
            "--dry-run: {} is a finished run, whose conversion needs no teacher\nhint: omit --dry-run",
            args.source.path.display()
        );
    }
    let rubric = match &recipe {
        Some(recipe) => recipe.student.clone(),
        None => match args.form.to_rubric()? {
            Some(rubric) => (*rubric).clone(),
            None => Rubric::built_in()?,
        },
    };
    let form = recipe.as_ref().map_or(args.form.form.form(), |recipe| recipe.recipe.form);
    let knowledge = args.teacher.knowledge.open()?;
    let prompts = student_prompts(args, rubric, verbosity)?.offering_knowledge(knowledge.is_some());
    let run = if is_run {
        note_unused_panel(args);
        args.source.path.clone()
    } else {
        match run_teacher(args, recipe.as_ref(), verbosity)? {
            TeacherRun::Finished(run) => run,
            TeacherRun::Ended(exit) => return Ok(exit),
        }
    };
    check_rubric(&run, prompts.rubric())?;
    let manifest = Manifest::read(&run)?;
    if manifest.status != RunStatus::Done {
        print_lines(&format!(
            "note: {} is not finished; the evaluations are those of its records so far",
            run.display()
        ));
    }
    let evidence =
        knowledge.map(|knowledge| AskedEvidence::of_run(knowledge, &run, &manifest.provenance));
    let evidence = evidence.transpose()?;
    let has_evidence = evidence.is_some();
    let rules = check_rules(&args.check, manifest.score_range.unwrap_or([0, 5]));
    let request = ConversionRequest {
        run,
        out: args.out.clone(),
        prompts,
        form,
        shows_reference: args.student.student_reference || form == Form::Correctness,
        rules,
        dicom_view: args.source.dicom.to_view(),
        evidence,
    };
    let summary = convert_records(&request, &Interrupt::listen()?)?;
    if let Some(kept) = &summary.kept {
        print_lines(&kept.note());
    }
    if summary.looked_up > 0 && !has_evidence {
        print_lines(&format!(
            "note: the teacher looked things up for {}, which do not contain its questions; with the \
             --knowledge of the run, they do",
            format_count(summary.looked_up, "evaluation")
        ));
    }
    write_stdout(&match args.format {
        OutputFormat::Json => serde_json::to_string_pretty(&summary)? + "\n",
        OutputFormat::Text => describe(&summary, args),
    })?;
    if summary.total() == 0 {
        bail!(
            "{}: no evaluation was accepted\nhint: {} says why each was rejected",
            args.out.display(),
            args.out.join(REJECTED).display()
        );
    }
    Ok(Exit::Done)
}

/// End of a teacher's run.
enum TeacherRun {
    /// The folder of its verdicts.
    Finished(PathBuf),
    /// There is nothing to convert: a dry run, or an interrupted one.
    Ended(Exit),
}

/// Lets the teacher judge the cases.
fn run_teacher(
    args: &EvaluationsArgs,
    recipe: Option<&RecipeSettings>,
    verbosity: Verbosity,
) -> Result<TeacherRun> {
    let run = args.out.join(TEACHER);
    let teacher = teacher_arguments(args, recipe, &run)?;
    let exit = judge::run(&teacher, verbosity);
    let exit = match args.recipe.as_deref() {
        Some(recipe) => exit.with_context(|| format!("--recipe {recipe}"))?,
        None => exit?,
    };
    Ok(match exit {
        Exit::Done if !args.dry_run => TeacherRun::Finished(run),
        exit => TeacherRun::Ended(exit),
    })
}

/// Says that a finished run needs no teacher.
fn note_unused_panel(args: &EvaluationsArgs) {
    if let Some(panel) = &args.teacher.panel {
        print_lines(&format!(
            "note: --panel {panel} has no effect, because {} is the folder of a run, whose verdicts are converted",
            args.source.path.display()
        ));
    }
}

/// A recipe with its rubrics.
struct RecipeSettings {
    recipe: Recipe,
    /// What the trained members read.
    student: Rubric,
    /// The text of the teacher's rubric file.
    teacher: String,
}

impl RecipeSettings {
    fn read(name: &str) -> Result<Self> {
        let recipe = Recipe::read(name)?;
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        let rubrics = recipe.rubrics(folder).with_context(|| format!("--recipe {name}"))?;
        Ok(Self { recipe, student: rubrics.student, teacher: rubrics.teacher })
    }
}

/// Returns the arguments of the teacher's run, and writes its rubric.
fn teacher_arguments(
    args: &EvaluationsArgs,
    recipe: Option<&RecipeSettings>,
    run: &Path,
) -> Result<JudgeArgs> {
    let (mut form, mut teacher) = (args.form.clone(), args.teacher.clone());
    if teacher.scores_only {
        bail!("--scores-only: evaluations for training need analyses\nhint: omit --scores-only");
    }
    if teacher.samples.is_set() {
        bail!(
            "--samples: the averaged score of several samples need not fit the analysis\n\
             hint: omit --samples"
        );
    }
    teacher.samples.samples = Some(SampleCount::ONE);
    if let Some(RecipeSettings { recipe, teacher: rubric, .. }) = recipe {
        form.form = FormArg::from(recipe.form);
        if recipe.reference == RecipeReference::Show {
            form.reference = Some(ReferenceUse::Show);
        }
        form.rubric = Some(if recipe.instructions.is_some() {
            write_rubric(args, rubric)?.display().to_string()
        } else {
            recipe.rubric.clone()
        });
        if recipe.instructions.is_some() && teacher.panel.is_none() {
            bail!(
                "--recipe {}: the embedded panel does not follow the instructions of a recipe\n\
                 hint: pass --panel with the URL of a server and --model, or a published checkpoint; or omit \
                 --recipe",
                recipe.key
            );
        }
        let is_url = teacher.panel.as_deref().is_some_and(looks_like_url);
        teacher.served.text_only |= recipe.text_only && is_url;
        if recipe.text_only && !is_url {
            print_lines(&format!(
                "note: in the recipe {} the teacher works from texts alone; a teacher on this machine that sees \
                 images works from both",
                recipe.key
            ));
        }
    }
    Ok(JudgeArgs {
        source: args.source.clone(),
        out: run.to_owned(),
        form,
        baseline: None,
        limit: args.limit,
        shard: None,
        max_unscored: 100.0,
        junit: None,
        no_resume: false,
        dry_run: args.dry_run,
        format: args.format,
        progress: args.progress,
        hides_summary: true,
        judge: teacher,
    })
}

/// Writes the teacher's rubric to the output folder; with `--dry-run` to a temporary file.
fn write_rubric(args: &EvaluationsArgs, rubric: &str) -> Result<PathBuf> {
    let folder = if args.dry_run {
        std::env::temp_dir().join(format!("acem3-{}", std::process::id()))
    } else {
        args.out.clone()
    };
    create_folder(&folder)?;
    let path = folder.join(TEACHER_RUBRIC);
    write_atomic(&path, rubric.as_bytes())?;
    Ok(path)
}

/// Returns how the trained members are prompted.
fn student_prompts(
    args: &EvaluationsArgs,
    rubric: Rubric,
    verbosity: Verbosity,
) -> Result<PromptStyle> {
    let student = &args.student;
    if let Some(path) = &student.config {
        let downloads = HubDownloads::new(args.teacher.hub, verbosity.quiet);
        let (config, _) = TrainConfig::load(path, downloads)?;
        return Ok(PromptStyle::of_training(&config, rubric));
    }
    let template = student.dialogue.as_deref().map(ChatTemplate::by_name).transpose();
    let template = template.context("--dialogue")?.unwrap_or_default();
    let style = PromptStyle::of_layout(student.layout.into(), student.detail.into(), rubric);
    Ok(style.with_chat_template(&template))
}

fn check_rules(args: &CheckRuleArgs, score_range: [u8; 2]) -> CheckRules {
    CheckRules {
        labels: args.check.contains(&CheckSource::Labels),
        reference: args.check.contains(&CheckSource::Reference),
        flips: args.reject_flips,
        max_difference: args.max_difference,
        score_range,
    }
}

/// Describes what was written.
fn describe(summary: &ConversionSummary, args: &EvaluationsArgs) -> String {
    let mut text = format!(
        "{} from {} of {}, evaluated by {}\n\n",
        format_count(summary.total(), "evaluation"),
        format_count(summary.accepted_orders, "presentation"),
        format_count(summary.records, "record"),
        summary.teacher
    );
    let mut line = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<22}{value}");
    };
    for (member, count) in &summary.evaluations {
        line(member, count.to_string());
    }
    line("images", summary.images.to_string());
    if summary.looked_up > 0 {
        line("looked up", format!("{}", summary.looked_up));
    }
    let unchecked = summary.unchecked_orders;
    let compares = args.check.check.iter().any(|source| *source != CheckSource::None);
    if unchecked > 0 && compares {
        let of = format_count(summary.accepted_orders, "presentation");
        line("not compared", format!("{unchecked} of {of}, for lack of labels and references"));
    }
    for (reason, count) in &summary.rejected {
        line("rejected", format!("{}: {reason}", format_count(*count, "presentation")));
    }
    let out = &args.out;
    let [evaluations, rejected, counts] =
        [EVALUATIONS, REJECTED, SUMMARY].map(|name| out.join(name).display().to_string());
    text + &format!("\nwritten to {evaluations}, {rejected} and {counts}\n")
}
