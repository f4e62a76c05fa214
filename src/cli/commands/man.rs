//! `acem3 man`: man pages of all commands.

use std::path::Path;

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::cli::args::{Cli, ManArgs};
use crate::support::files::file_form::{FileForm, contains_text};
use crate::support::files::folder::{create_folder, list_names};
use crate::support::files::out_file::OutFile;
use crate::support::terminal::exit::Exit;

/// The form of a man page of this program.
const MAN_PAGE: FileForm =
    FileForm { name: "a man page of acem3", recognise: |file| contains_text(file, ".TH acem3") };

/// Writes `acem3.1`, and a page such as `acem3-judge.1` for each command.
pub(super) fn run(args: &ManArgs) -> anyhow::Result<Exit> {
    create_folder(&args.out)?;
    check_pages(&args.out)?;
    clap_mangen::generate_to(Cli::command(), &args.out)
        .with_context(|| format!("{}: cannot write the man pages", args.out.display()))?;
    Ok(Exit::Done)
}

/// Checks that existing files with the names of man pages are pages of this program.
fn check_pages(folder: &Path) -> anyhow::Result<()> {
    let is_page = |name: &String| name.starts_with("acem3") && name.ends_with(".1");
    for name in list_names(folder)?.iter().filter(|name| is_page(name)) {
        OutFile::check(&folder.join(name), MAN_PAGE, &[])?;
    }
    Ok(())
}
