//! The images of a study, all of which can be shown, with the windows of the DICOM images.

use std::collections::BTreeMap;

use acem3_vision::{AppliedWindow, ImageLimits};
use anyhow::{Result, bail};

use crate::annotation::pages::image_view::FileWindow;
use crate::annotation::study::{StudyPlan, Task};
use crate::data::images::{EncodedImage, ImageReader};
use crate::support::text::{escape_control_chars, format_count};

/// The windows that the files of DICOM images state, by the id of the case.
pub(super) type FileWindows = BTreeMap<String, FileWindow>;

/// The images of a study.
pub struct StudyImages {
    /// The reader.
    pub(super) reader: ImageReader,
    /// The windows of the DICOM images.
    pub(super) windows: FileWindows,
}

impl StudyImages {
    /// Decodes every image once, so that no rater meets an image that cannot be shown.
    ///
    /// # Errors
    /// If images cannot be read. The message names the first one.
    pub fn read(plan: &StudyPlan, mut reader: ImageReader) -> Result<Self> {
        let (mut windows, mut problems) = (BTreeMap::new(), Vec::new());
        let mut known = None;
        for Task { case, .. } in &plan.tasks {
            let Some(source) = case.image.as_ref().filter(|_| known != Some(&case.id)) else {
                continue;
            };
            known = Some(&case.id);
            let limits = *reader.limits();
            let loaded = reader.read(source).and_then(|image| file_window(&image, &limits));
            match loaded {
                Ok(window) => windows.extend(window.map(|window| (case.id.clone(), window))),
                Err(problem) => problems.push(format!("case {}: {problem}", case.id)),
            }
        }
        if let Some(first) = problems.first() {
            bail!(
                "{} cannot be shown, first: {}\nhint: correct the files, or remove the cases",
                format_count(problems.len() as u64, "image"),
                escape_control_chars(first.lines().next().unwrap_or_default())
            );
        }
        Ok(Self { reader, windows })
    }
}

/// Decodes an image, and returns the window that its file states; `None` unless it is grey DICOM.
fn file_window(image: &EncodedImage, limits: &ImageLimits) -> Result<Option<FileWindow>, String> {
    let decoded = &image.load(limits)?.decoded;
    let window = decoded.applied_view().and_then(|view| view.window);
    Ok(window.map(|AppliedWindow { center, width, .. }| FileWindow {
        values: center.zip(width).map(<[f64; 2]>::from),
        is_ct: decoded.is_ct(),
    }))
}
