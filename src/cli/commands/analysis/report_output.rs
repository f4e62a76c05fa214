//! Format, output file and images of a report, for all forms of judging.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::verdict_input::records_file;
use crate::analysis::report::file_forms::{
    CSV_REPORT, HTML_REPORT, JSON_REPORT, MARKDOWN_REPORT, PARQUET_REPORT,
};
use crate::analysis::report::{CaseBrowser, EmbeddedImages, ImageFolder, Thumbs};
use crate::cli::args::{ReportArgs, ReportFormat};
use crate::cli::commands::output::write_stdout;
use crate::data::images::outside_images::OUTSIDE_REASON;
use crate::judging::run::manifest::Manifest;
use crate::support::files::out_file::OutFile;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::number::format_bytes;
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::format_count;

/// Hint for images inside the files that were judged.
const EMBEDDED_HINT: &str = "hint: if the images are inside the files that were judged, convert \
    these files with `acem3 data import` first, then judge the cases that it writes";

/// Maximum number of judges; each has a letter.
const MAX_JUDGES: usize = 26;

/// Checks the number of judges of a report.
pub(super) fn check_judges(judges: usize) -> Result<()> {
    if judges > MAX_JUDGES {
        bail!("{judges} runs, the limit is {MAX_JUDGES}\nhint: pass fewer runs");
    }
    Ok(())
}

/// Where a report goes.
pub(super) struct ReportOutput {
    /// The format.
    pub(super) format: ReportFormat,
    /// The file; `None` for stdout.
    out: Option<OutFile>,
    verbosity: Verbosity,
}

impl ReportOutput {
    /// Checks the format and the output file, which must not be an input.
    pub(super) fn new(args: &ReportArgs, verbosity: Verbosity) -> Result<Self> {
        let format = report_format(args)?;
        Ok(Self { format, out: check_out(args, format)?, verbosity })
    }

    /// Returns true if the report does not start with the notices, so that they go to stderr.
    pub(super) fn needs_notices(&self) -> bool {
        self.out.is_some() || self.format != ReportFormat::Markdown
    }

    /// Writes the report.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<Exit> {
        let Some(out) = &self.out else {
            write_stdout(bytes)?;
            return Ok(Exit::Done);
        };
        out.write(bytes)?;
        if !self.verbosity.quiet {
            print_lines(&format!("{}: {}", out.path().display(), format_bytes(bytes.len())));
        }
        Ok(Exit::Done)
    }

    /// Reads the images of the cases and adds them to the entries. `records`: records file of the first
    /// judge.
    pub(super) fn embed_images(
        &self,
        args: &ReportArgs,
        browser: &mut CaseBrowser,
        records: Option<&Path>,
    ) -> EmbeddedImages {
        let manifest = records.and_then(|records| Manifest::read(records.parent()?).ok());
        let source = || Some(manifest.as_ref()?.source.find_images());
        let path = args.images.clone().or_else(source).unwrap_or_default();
        let folder = ImageFolder { path, allow_outside: args.allow_outside };
        let images = EmbeddedImages::new(&browser.images, &folder, args.thumbnails);
        for (entry, index) in browser.entries.iter_mut().zip(&images.indices) {
            entry.embedded_image = *index;
        }
        if !self.verbosity.quiet {
            print_image_notes(&images, args, manifest.as_ref());
        }
        images
    }
}

/// Checks the output file, which must not be an input.
fn check_out(args: &ReportArgs, format: ReportFormat) -> Result<Option<OutFile>> {
    let Some(path) = &args.out else {
        return Ok(None);
    };
    let form = match format {
        ReportFormat::Html => HTML_REPORT,
        ReportFormat::Markdown => MARKDOWN_REPORT,
        ReportFormat::Json => JSON_REPORT,
        ReportFormat::Csv => CSV_REPORT,
        ReportFormat::Parquet => PARQUET_REPORT,
    };
    let records = args.records.iter().chain(&args.baseline);
    let records: Vec<PathBuf> = records.map(|path| records_file(path)).collect();
    let files = [&args.audit, &args.calibration, &args.labels.path, &args.images];
    let inputs: Vec<&Path> =
        records.iter().chain(files.into_iter().flatten()).map(PathBuf::as_path).collect();
    OutFile::check(path, form, &inputs).map(Some)
}

/// Returns the format from the flag or the file extension.
fn report_format(args: &ReportArgs) -> Result<ReportFormat> {
    let extension = args.out.as_ref().and_then(|path| path.extension());
    let extension = extension.map(|e| e.to_string_lossy().into_owned());
    let format = match (args.format, &extension) {
        (Some(format), _) => format,
        (None, Some(extension)) => ReportFormat::from_extension(extension).with_context(|| {
            format!(
                "--out: unknown report format .{extension}, expected .html, .md, .json, .csv or \
                 .parquet\n\
                 hint: change the extension or pass --format"
            )
        })?,
        (None, None) => ReportFormat::Html,
    };
    let needs_file = matches!(format, ReportFormat::Html | ReportFormat::Parquet);
    if args.out.is_none() && needs_file && std::io::stdout().is_terminal() {
        bail!(
            "this format cannot be printed on a terminal\n\
             hint: pass a file, for example --out report.html"
        );
    }
    Ok(format)
}

/// Prints the number of images in the page, the reasons for missing ones, and where they were when
/// the run was made.
fn print_image_notes(images: &EmbeddedImages, args: &ReportArgs, manifest: Option<&Manifest>) {
    if args.thumbnails == Thumbs::None {
        return;
    }
    print_lines(&format!(
        "{} in the page, {}",
        format_count(images.uris.len() as u64, "image"),
        format_bytes(images.total_bytes())
    ));
    for (reason, n) in &images.missing {
        print_lines(&format!("{} not shown: {reason}", format_count(*n as u64, "image")));
    }
    if images.missing.iter().any(|(reason, _)| reason == OUTSIDE_REASON) {
        print_lines("hint: pass --allow-outside if the readers of the report may see them");
    }
    if let Some(name) = &images.first_not_found {
        if manifest.is_some_and(|manifest| manifest.source.may_embed_images()) {
            print_lines(EMBEDDED_HINT);
            // The name of an embedded image is the id of its case.
            if Path::new(name).extension().is_none() {
                return;
            }
        }
        let source = manifest.and_then(|manifest| manifest.source.images.as_ref());
        let origin =
            source.map_or_else(String::new, |path| format!("; the run read it from {path}"));
        print_lines(&format!(
            "hint: pass the folder of the cases with --images DIR, so that {name} is in DIR{origin}; or \
             leave out the images with --thumbnails none"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_judge_needs_a_letter() {
        assert!(check_judges(MAX_JUDGES).is_ok());
        let error = check_judges(MAX_JUDGES + 1).unwrap_err().to_string();
        assert!(error.starts_with("27 runs, the limit is 26"), "{error}");
    }
}
