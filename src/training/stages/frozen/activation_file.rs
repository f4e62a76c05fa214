//! File of frozen-layer activations: rows of numbers that are written once and read by index.
//!
//! The file contains the rows in order, little-endian. An index file next to it records the number
//! of rows that are synced to disk and whether the file is complete. A resumed writer overwrites
//! rows after the synced ones.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use candle::{Device, Tensor};
use half::{bf16, f16};
use memmap2::Mmap;
use serde::{Deserialize, Serialize};

use crate::support::files::atomic_file;
use crate::training::config::activation_dtype::ActivationDtype;

/// Content of the index file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ActivationIndex {
    /// Element type.
    dtype: ActivationDtype,
    /// Values per row.
    width: usize,
    /// Number of synced rows.
    rows: usize,
    /// True if no rows are missing.
    #[serde(rename = "whole")]
    is_complete: bool,
}

impl ActivationIndex {
    /// Reads the index of a file of rows; `None` if there is no index.
    fn read(rows_path: &Path) -> Result<Option<Self>> {
        let path = index_path(rows_path);
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let index = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        Ok(Some(index))
    }

    /// Returns the size of all rows in bytes.
    fn size(&self) -> usize {
        self.rows * self.row_size()
    }

    /// Returns the size of one row in bytes.
    fn row_size(&self) -> usize {
        self.width * self.dtype.dtype().size_in_bytes()
    }
}

/// Returns the path of the index file of a file of rows.
pub(crate) fn index_path(rows_path: &Path) -> PathBuf {
    rows_path.with_extension("rows.json")
}

/// Writes rows to disk.
pub(crate) struct ActivationWriter {
    path: PathBuf,
    file: BufWriter<File>,
    index: ActivationIndex,
}

impl ActivationWriter {
    /// Creates a file, or resumes one of an interrupted run with the same type and width.
    pub(crate) fn create_or_resume(
        path: &Path,
        dtype: ActivationDtype,
        width: usize,
    ) -> Result<Self> {
        let empty = ActivationIndex { dtype, width, rows: 0, is_complete: false };
        let is_same_format = |index: &ActivationIndex| index.dtype == dtype && index.width == width;
        let index = ActivationIndex::read(path)?.filter(is_same_format);
        let index = index.unwrap_or(empty);
        let open = || -> std::io::Result<(File, ActivationIndex)> {
            let mut options = OpenOptions::new();
            let mut file = options.create(true).write(true).truncate(false).open(path)?;
            let has_all_rows = file.metadata()?.len() >= index.size() as u64;
            let index = if has_all_rows { index } else { empty };
            file.set_len(index.size() as u64)?;
            file.seek(SeekFrom::End(0))?;
            Ok((file, index))
        };
        let (file, index) = open().with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), index })
    }

    /// Returns the number of rows.
    pub(crate) fn row_count(&self) -> usize {
        self.index.rows
    }

    /// Appends rows.
    ///
    /// # Shapes
    /// `(n, width)`.
    ///
    /// # Errors
    /// If a value is not finite as `f16`.
    pub(crate) fn append(&mut self, rows: &Tensor) -> Result<()> {
        let (n, width) = rows.dims2()?;
        if width != self.index.width {
            bail!("rows of {width} values, expected {}", self.index.width);
        }
        let values = rows.to_dtype(self.index.dtype.dtype())?.flatten_all()?;
        let bytes: Vec<u8> = match self.index.dtype {
            ActivationDtype::F32 => {
                values.to_vec1::<f32>()?.into_iter().flat_map(f32::to_le_bytes).collect()
            }
            ActivationDtype::Bf16 => {
                let values = values.to_vec1::<bf16>()?.into_iter();
                values.flat_map(bf16::to_le_bytes).collect()
            }
            ActivationDtype::F16 => {
                let values = values.to_vec1::<f16>()?;
                if !values.iter().all(|value| value.is_finite()) {
                    bail!(
                        "a hidden state is NaN or exceeds the range of f16\n\
                         hint: set store = \"bf16\" in the stage's table, which has the range of f32"
                    );
                }
                values.into_iter().flat_map(f16::to_le_bytes).collect()
            }
        };
        let result = self.file.write_all(&bytes);
        result.with_context(|| format!("cannot write {}", self.path.display()))?;
        self.index.rows += n;
        Ok(())
    }

    /// Syncs the rows to disk and records them in the index.
    pub(crate) fn sync(&mut self) -> Result<()> {
        let result = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        result.with_context(|| format!("cannot write {}", self.path.display()))?;
        let index = serde_json::to_vec(&self.index)?;
        atomic_file::write_atomic(&index_path(&self.path), &index)
    }

    /// Marks the file as complete and opens it for reading.
    pub(crate) fn finish(mut self) -> Result<ActivationFile> {
        self.index.is_complete = true;
        self.sync()?;
        ActivationFile::open(&self.path)?
            .with_context(|| format!("{}: the index is incomplete", self.path.display()))
    }
}

/// A complete file of rows.
pub(crate) struct ActivationFile {
    map: Mmap,
    index: ActivationIndex,
}

impl ActivationFile {
    /// Opens a file of rows; `None` if it is not complete.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>> {
        let Some(index) = ActivationIndex::read(path)?.filter(|index| index.is_complete) else {
            return Ok(None);
        };
        let describe = || format!("cannot read {}", path.display());
        let file = File::open(path).with_context(describe)?;
        #[expect(
            unsafe_code,
            reason = "this process has locked the folder, and the file is complete, so nothing changes it"
        )]
        let map = unsafe { Mmap::map(&file) }.with_context(describe)?;
        let expected = index.size();
        if map.len() != expected {
            bail!(
                "{}: found {} bytes, expected {expected}\nhint: delete it and {}, and run again",
                path.display(),
                map.len(),
                index_path(path).display()
            );
        }
        Ok(Some(Self { map, index }))
    }

    /// Reads the rows at some indices as `f32`.
    ///
    /// # Shapes
    /// `n` indices to `(n, width)`.
    pub(crate) fn read_rows(&self, rows: impl ExactSizeIterator<Item = usize>) -> Result<Tensor> {
        let width = self.index.width;
        let size = self.index.row_size();
        let shape = (rows.len(), width);
        let mut values: Vec<f32> = Vec::with_capacity(rows.len() * width);
        for row in rows {
            let bytes = self.map.get(row * size..(row + 1) * size);
            let bytes = bytes
                .with_context(|| format!("row {row} of {}: index out of range", self.index.rows))?;
            match self.index.dtype {
                ActivationDtype::F32 => {
                    let words = bytes.as_chunks::<4>().0.iter();
                    values.extend(words.map(|word| f32::from_le_bytes(*word)));
                }
                ActivationDtype::Bf16 => {
                    let words = bytes.as_chunks::<2>().0.iter();
                    values.extend(words.map(|word| bf16::from_le_bytes(*word).to_f32()));
                }
                ActivationDtype::F16 => {
                    let words = bytes.as_chunks::<2>().0.iter();
                    values.extend(words.map(|word| f16::from_le_bytes(*word).to_f32()));
                }
            }
        }
        Ok(Tensor::from_vec(values, shape, &Device::Cpu)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_by_index_in_every_type() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let rows = Tensor::arange(0f32, 12.0, &Device::Cpu)?.reshape((4, 3))?;
        for dtype in [ActivationDtype::F16, ActivationDtype::Bf16, ActivationDtype::F32] {
            let path = dir.path().join("cache.rows");
            let mut writer = ActivationWriter::create_or_resume(&path, dtype, 3)?;
            writer.append(&rows.narrow(0, 0, 1)?)?;
            writer.append(&rows.narrow(0, 1, 3)?)?;
            let file = writer.finish()?;
            assert_eq!(file.index.rows, 4);
            let values = file.read_rows([3, 0].into_iter())?.to_vec2::<f32>()?;
            assert_eq!(values, [[9.0, 10.0, 11.0], [0.0, 1.0, 2.0]]);
            assert!(file.read_rows([4].into_iter()).is_err());
        }
        Ok(())
    }

    #[test]
    fn interrupted_writer_resumes_after_synced_rows() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("cache.rows");
        let rows = Tensor::arange(0f32, 8.0, &Device::Cpu)?.reshape((4, 2))?;
        let mut writer = ActivationWriter::create_or_resume(&path, ActivationDtype::F16, 2)?;
        writer.append(&rows.narrow(0, 0, 2)?)?;
        writer.sync()?;
        // Written but not synced.
        writer.append(&(rows.narrow(0, 0, 1)? + 100.0)?)?;
        writer.file.flush()?;
        drop(writer);
        assert!(ActivationFile::open(&path)?.is_none());
        let mut writer = ActivationWriter::create_or_resume(&path, ActivationDtype::F16, 2)?;
        assert_eq!(writer.row_count(), 2);
        writer.append(&rows.narrow(0, 2, 2)?)?;
        let file = writer.finish()?.read_rows(0..4)?;
        assert_eq!(file.to_vec2::<f32>()?, rows.to_vec2::<f32>()?);
        // Rows of another type are not resumed.
        assert_eq!(
            ActivationWriter::create_or_resume(&path, ActivationDtype::F32, 2)?.row_count(),
            0
        );
        Ok(())
    }

    #[test]
    fn truncated_file_and_overflow_are_errors() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("cache.rows");
        let large = Tensor::new(&[[1e6f32]], &Device::Cpu)?;
        let error =
            ActivationWriter::create_or_resume(&path, ActivationDtype::F16, 1)?.append(&large);
        assert!(error.unwrap_err().to_string().contains("bf16"));
        let mut writer = ActivationWriter::create_or_resume(&path, ActivationDtype::Bf16, 1)?;
        assert!(ActivationFile::open(&path)?.is_none(), "the file is not complete");
        writer.append(&large)?;
        drop(writer.finish()?);
        std::fs::write(&path, [0])?;
        let error = ActivationFile::open(&path).err().map(|e| e.to_string());
        assert!(error.is_some_and(|e| e.contains("cache.rows") && e.contains("hint:")));
        Ok(())
    }
}
