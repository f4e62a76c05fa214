//! The file of `--out`: checked before a command starts to work, then written.
//!
//! A command replaces an existing file only if the file has the form that the command writes. It
//! never replaces its own input, and never anything but a regular file. It writes into pipes,
//! terminals and devices such as `/dev/null` without replacing them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::atomic_file::{check_writable, write_chunks_atomic};
use super::file_form::FileForm;
use super::file_identity::FileIdentity;

/// Paths of the standard output.
const STDOUT: [&str; 3] = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// A file that a command may write.
#[derive(Debug)]
pub struct OutFile {
    /// The flag of the path, for messages.
    flag: &'static str,
    path: PathBuf,
    form: FileForm,
    inputs: Vec<PathBuf>,
}

/// What a path stands for.
enum OutTarget {
    /// A regular file, or nothing yet.
    File,
    /// A pipe, a terminal or another character device.
    Stream,
    /// The standard output.
    Stdout,
}

impl OutFile {
    /// Checks that a command can write a file of this form to `path`: its folder exists, and the
    /// path is new, a stream, or a file of the same form that is not among the inputs. Inputs that
    /// do not exist are ignored.
    ///
    /// # Errors
    ///
    /// The path has another form, is an input, or cannot be written.
    pub fn check(path: &Path, form: FileForm, inputs: &[&Path]) -> Result<Self> {
        Self::check_flag("--out", path, form, inputs)
    }

    /// Checks the file of another flag than `--out`; see [`OutFile::check`].
    ///
    /// # Errors
    ///
    /// The path has another form, is an input, or cannot be written.
    pub fn check_flag(
        flag: &'static str,
        path: &Path,
        form: FileForm,
        inputs: &[&Path],
    ) -> Result<Self> {
        let out = Self {
            flag,
            path: path.to_owned(),
            form,
            inputs: inputs.iter().map(|input| (*input).to_owned()).collect(),
        };
        if let OutTarget::File = out.target()? {
            check_writable(path).with_context(|| {
                format!("{flag} {}: cannot write\nhint: choose a writable folder", path.display())
            })?;
        }
        Ok(out)
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or was replaced by a file of another form since the check.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        self.write_chunks(std::iter::once(Ok(bytes)))
    }

    /// Writes the chunks of an iterator.
    ///
    /// # Errors
    ///
    /// As [`OutFile::write`], or the first error of the iterator.
    pub fn write_chunks<C: AsRef<[u8]>>(
        &self,
        chunks: impl IntoIterator<Item = Result<C>>,
    ) -> Result<()> {
        let context = || format!("{} {}: cannot write", self.flag, self.path.display());
        let mut stream: Box<dyn io::Write> = match self.target()? {
            OutTarget::File => {
                return write_chunks_atomic(&self.path, chunks)
                    .with_context(|| format!("{} {}", self.flag, self.path.display()));
            }
            OutTarget::Stdout => Box::new(io::stdout()),
            OutTarget::Stream => {
                let mut options = OpenOptions::new();
                Box::new(options.append(true).open(&self.path).with_context(context)?)
            }
        };
        for chunk in chunks {
            stream.write_all(chunk?.as_ref()).with_context(context)?;
        }
        stream.flush().with_context(context)
    }

    /// Checks the path and returns what it stands for.
    fn target(&self) -> Result<OutTarget> {
        if STDOUT.iter().any(|stdout| self.path == Path::new(stdout)) {
            return Ok(OutTarget::Stdout);
        }
        let (flag, path) = (self.flag, self.path.display());
        let metadata = match fs::metadata(&self.path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.check_new_path()?;
                return Ok(OutTarget::File);
            }
            Err(error) => return Err(error).with_context(|| format!("{flag} {path}")),
        };
        let kind = metadata.file_type();
        if kind.is_dir() {
            bail!("{flag} {path}: is a folder, expected a file\nhint: add the name of a file");
        }
        if is_stream(kind) {
            return Ok(OutTarget::Stream);
        }
        if !kind.is_file() {
            bail!(
                "{flag} {path}: is a disk or a socket, expected a file\nhint: choose another file"
            );
        }
        self.check_not_an_input()?;
        if metadata.permissions().readonly() {
            bail!("{flag} {path}: is read-only\nhint: choose another file, or make it writable");
        }
        if metadata.len() > 0 && !self.has_own_form()? {
            bail!(
                "{flag} {path}: already exists and is not {}\n\
                 hint: choose another file, or delete this one first",
                self.form.name
            );
        }
        Ok(OutTarget::File)
    }

    /// Checks a path that does not exist: its folder does, and the path is no broken link.
    fn check_new_path(&self) -> Result<()> {
        let (flag, path) = (self.flag, self.path.display());
        if self.path.is_symlink() {
            bail!(
                "{flag} {path}: is a symbolic link to a file that does not exist\n\
                 hint: choose another file, or delete the link"
            );
        }
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            bail!(
                "{flag} {path}: no such folder {}\nhint: create the folder, or choose another file",
                folder.display()
            );
        }
        Ok(())
    }

    /// Checks that the path, or another name of the same file, is not an input.
    fn check_not_an_input(&self) -> Result<()> {
        let Some(own) = FileIdentity::of(&self.path) else {
            return Ok(());
        };
        let input = self.inputs.iter().find(|input| FileIdentity::of(input).as_ref() == Some(&own));
        if let Some(input) = input {
            bail!(
                "{} {}: is an input of this command ({})\nhint: choose another file",
                self.flag,
                self.path.display(),
                input.display()
            );
        }
        Ok(())
    }

    fn has_own_form(&self) -> Result<bool> {
        let context =
            || format!("{} {}: cannot read the existing file", self.flag, self.path.display());
        let mut file = File::open(&self.path).with_context(context)?;
        (self.form.recognise)(&mut file).with_context(context)
    }
}

/// Returns true for a pipe or a character device.
#[cfg(unix)]
fn is_stream(kind: fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    kind.is_fifo() || kind.is_char_device()
}

/// Returns true for a pipe or a character device.
#[cfg(not(unix))]
fn is_stream(_kind: fs::FileType) -> bool {
    false
}
