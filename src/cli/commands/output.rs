//! Writes results to stdout.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};

use anyhow::Context as _;

use crate::cli::args::TableFormat;
use crate::support::tables::{TableSection, TableStyle, render_sections};
use crate::support::terminal::exit::{ClosedStdout, RunFailure};
use crate::support::text::escape_for_terminal;

/// Problem of a source without cases, with its hint.
pub(super) const NO_CASES: &str = "contains no cases\n\
    hint: pass a file or folder with at least one case; `acem3 data schema cases` prints its fields";

/// Writes a result to stdout. A terminal receives no control characters of the data, which could
/// change what it shows or run commands; files and pipes receive the data unchanged.
pub(super) fn write_stdout(text: &(impl AsRef<[u8]> + ?Sized)) -> anyhow::Result<()> {
    let mut out = io::stdout();
    let bytes = if out.is_terminal() {
        Cow::Owned(escape_for_terminal(&String::from_utf8_lossy(text.as_ref())).into_bytes())
    } else {
        Cow::Borrowed(text.as_ref())
    };
    match out.write_all(&bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(ClosedStdout.into()),
        result => result.context(RunFailure(
            "cannot write to stdout\n\
             hint: run the same command again; the files that it wrote are complete"
                .to_owned(),
        )),
    }
}

/// Returns an introduction and tables as Markdown, or as text that fits the terminal.
pub(super) fn render_tables(intro: &str, tables: &[TableSection], format: TableFormat) -> String {
    let style =
        if format == TableFormat::Markdown { TableStyle::Markdown } else { TableStyle::terminal() };
    render_sections(intro, tables, style)
}
