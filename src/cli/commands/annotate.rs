//! `acem3 annotate`: the site on which doctors rate responses.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use acem3_vision::ImageLimits;
use anyhow::{Context as _, Error, Result, bail};

use crate::annotation::journal::{AdjudicationEntry, LineJournal, RatingState};
use crate::annotation::results::{ResultFile, StudyResults};
use crate::annotation::site::{
    AccessLinks, AllowedHosts, SiteState, StudyImages, StudyJournals, serve,
};
use crate::annotation::study::{StudyConfig, StudyPlan, tasks_of_cases, tasks_of_unresolved};
use crate::cli::args::AnnotateArgs;
use crate::cli::commands::ignored_flags::ignored_flags;
use crate::cli::commands::output::write_stdout;
use crate::data::cases::{self, Case, ImageSource};
use crate::data::images::ImageReader;
use crate::support::files::atomic_file;
use crate::support::files::folder::{FolderLock, create_folder};
use crate::support::terminal::exit::Exit;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::{escape_control_chars, format_count};
use crate::training::introspection::decisions::unresolved_pair::UnresolvedPair;

/// Runs the command.
pub(super) fn run(args: &AnnotateArgs, verbosity: Verbosity) -> Result<Exit> {
    let config = StudyConfig::read(&args.study)?;
    let folder = args.study.parent().unwrap_or(Path::new("."));
    let study = || format!("--study {}", args.study.display());
    let out = || format!("--out {}", args.out.display());
    let rubric = config.rubric(folder).with_context(study)?;
    check_decisions(args, &config).with_context(study)?;
    let cases = read_cases(args, verbosity)?;
    let unresolved = args.unresolved.as_deref().map(UnresolvedPair::read).transpose()?;
    let tasks = match &unresolved {
        Some(pairs) => tasks_of_unresolved(cases, pairs),
        None => tasks_of_cases(cases),
    };
    let plan = StudyPlan::new(config, rubric, tasks.map_err(Error::msg)?)
        .and_then(|plan| plan.with_judges(folder))
        .with_context(study)?
        .with_unresolved(unresolved.unwrap_or_default());
    create_folder(&args.out)?;
    let root = cases::base_folder(&args.source.path);
    let mut images =
        ImageReader::new(root, ImageLimits::default()).with_dicom_view(args.source.dicom.to_view());
    let lock = FolderLock::try_acquire(&args.out)?;
    if lock.is_none() && args.results {
        // The site is running. Complete lines of its journals are enough.
        plan.check(&args.out, &mut images)?;
        let state = RatingState::new(&plan, &LineJournal::read(&args.out)?).with_context(out)?;
        return write_results(args, &plan, &state, &LineJournal::read(&args.out)?);
    }
    let Some(_lock) = lock else {
        bail!(
            "--out {}: the site of this study is running\n\
             hint: stop it first, or choose another --out",
            args.out.display()
        );
    };
    let (ratings, entries) = LineJournal::open(&args.out)?;
    let (adjudications, decided) = LineJournal::open(&args.out)?;
    plan.claim(&args.out, &mut images, !entries.is_empty())?;
    let state = RatingState::new(&plan, &entries).with_context(out)?;
    if args.results {
        return write_results(args, &plan, &state, &decided);
    }
    let images = StudyImages::read(&plan, images)?;
    let journals = StudyJournals { ratings, state, adjudications, decided };
    serve_study(args, StudySite { plan, images, journals }, verbosity)
}

/// What the site serves.
struct StudySite {
    plan: StudyPlan,
    images: StudyImages,
    journals: StudyJournals,
}

/// Checks that the study is about decisions if and only if there are pairs to decide about.
fn check_decisions(args: &AnnotateArgs, config: &StudyConfig) -> Result<()> {
    match (args.unresolved.is_some(), config.decides_pairs()) {
        (true, false) => bail!(
            "stages: a study with --unresolved is about decisions\n\
             hint: write `stages = [\"decision\"]`, or remove --unresolved"
        ),
        (false, true) => bail!(
            "stages: \"decision\" needs pairs to decide about\n\
             hint: pass --unresolved with the unresolved.jsonl of a round of `acem3 train introspect`"
        ),
        _ => Ok(()),
    }
}

/// Serves the site until the user interrupts it.
fn serve_study(
    args: &AnnotateArgs,
    StudySite { plan, images, journals }: StudySite,
    verbosity: Verbosity,
) -> Result<Exit> {
    let names: Vec<&str> = plan.config.raters.iter().map(|rater| rater.name.as_str()).collect();
    let access = AccessLinks::open(&args.out, &names)?;
    let interrupt = Interrupt::listen_with_note("stopping the site")?;
    if args.listen.ip().is_unspecified() && args.site_name.is_empty() {
        bail!(
            "--listen {}: the site has no name under which raters can visit it\n\
             hint: pass --site-name with the name or address of this machine",
            args.listen
        );
    }
    if !args.listen.ip().is_loopback() {
        print_lines(&format!(
            "warning: other machines can reach {}, and what they send is not encrypted\n\
             hint: listen on 127.0.0.1 behind a reverse proxy with TLS, and name the proxy with --site-name",
            args.listen
        ));
    }
    serve(args.listen, &interrupt, |address| {
        write_stdout(&describe_links(args, &plan, &access, address))?;
        let hosts = AllowedHosts::new(address, &args.site_name);
        Ok(SiteState::new(plan, access, hosts, journals, images))
    })?;
    if !verbosity.quiet {
        print_lines(&format!("the ratings are in {}", args.out.display()));
    }
    Ok(Exit::Done)
}

/// Returns the links of all visitors.
fn describe_links(
    args: &AnnotateArgs,
    plan: &StudyPlan,
    access: &AccessLinks,
    address: SocketAddr,
) -> String {
    let site = match args.site_name.first() {
        // A name on this machine stands for a reverse proxy with TLS.
        Some(name) if args.listen.ip().is_loopback() => format!("https://{name}"),
        Some(name) => format!("http://{name}:{}", address.port()),
        None => format!("http://{address}"),
    };
    let width = plan.config.raters.iter().map(|rater| rater.name.chars().count()).max();
    let width = width.unwrap_or_default().max("administrator".len());
    let mut lines = vec![format!(
        "{}: {}, {}",
        plan.config.name,
        format_count(
            plan.tasks.len() as u64,
            if plan.config.decides_pairs() { "pair" } else { "case" }
        ),
        format_count(plan.config.raters.len() as u64, "rater")
    )];
    lines.push(format!("{:width$}  {site}{}", "administrator", access.administrator_path()));
    lines.extend(access.rater_paths().map(|(name, path)| format!("{name:width$}  {site}{path}")));
    lines.push(
        "Send each rater one link. Press Ctrl-C to stop. The same command continues.".to_owned(),
    );
    lines.join("\n") + "\n"
}

/// Writes the files of results.
fn write_results(
    args: &AnnotateArgs,
    plan: &StudyPlan,
    ratings: &RatingState,
    decided: &[AdjudicationEntry],
) -> Result<Exit> {
    let image_folder = &cases::base_folder(&args.source.path);
    let results = StudyResults { plan, ratings, decided, image_folder };
    let mut lines = String::new();
    for file in ResultFile::of_study(plan) {
        let path = args.out.join(file.name());
        atomic_file::write_atomic(&path, file.content(&results)?.as_bytes())?;
        writeln!(lines, "{}  {}", path.display(), file.description())?;
    }
    // After all files are written: the reader of the list may be gone.
    write_stdout(&lines)?;
    Ok(Exit::Done)
}

/// Reads the cases.
///
/// # Errors
/// If a case cannot be read or its image does not exist: a study must not lack cases in silence.
fn read_cases(args: &AnnotateArgs, verbosity: Verbosity) -> Result<Vec<Case>> {
    let path = &args.source.path;
    let mut source = cases::open(path, &args.source.to_options(1))?;
    if !verbosity.quiet {
        for warning in ignored_flags(&args.source, source.kind) {
            print_lines(&warning);
        }
        source.take_field_notes().iter().for_each(|note| print_lines(note));
    }
    let (mut cases, mut problems) = (Vec::new(), Vec::new());
    for case in source.by_ref() {
        match case {
            Ok(case) => {
                if let Some(ImageSource::File(image)) = &case.image
                    && !image.exists()
                {
                    problems.push(format!("case {}: {}: no such file", case.id, image.display()));
                }
                cases.push(case);
            }
            Err(problem) => problems.push(problem.to_string()),
        }
    }
    if let Some(first) = problems.first() {
        bail!(
            "{}: {} with a problem, first: {}\n\
             hint: run `acem3 data check {}` to list all, and correct or remove the cases",
            path.display(),
            format_count(problems.len() as u64, "line"),
            escape_control_chars(first.lines().next().unwrap_or_default()),
            args.source.to_shell_words()
        );
    }
    Ok(cases)
}
