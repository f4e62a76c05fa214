//! Frame and window selection for DICOM images.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::error::DecodeError;

/// Frame and window of DICOM images.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DicomView {
    /// Grey-scale window.
    pub window: DicomWindow,
    /// Frame number from 1; the middle frame if `None`.
    pub frame: Option<u32>,
}

/// Grey-scale window: the range of values that maps to the range from black to white.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum DicomWindow {
    /// The file's VOI table; without a table its first window; without a window the range of
    /// `Auto`.
    #[default]
    File,
    /// The range of the frame's values.
    Auto,
    /// Center and width in the units of the modality (Hounsfield units in CT).
    CenterWidth {
        /// Center of the range.
        center: f64,
        /// Width of the range, at least 1.
        width: f64,
    },
    /// The window with this name in the file, case-insensitive.
    Named(String),
}

/// Frame and window that were applied.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppliedView {
    /// Frame number, from 1.
    pub frame: u32,
    /// Number of frames in the file.
    pub frames: u32,
    /// Window; missing for colour images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<AppliedWindow>,
}

/// Window that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppliedWindow {
    /// Origin of the window.
    pub source: WindowSource,
    /// Center of the window; missing for a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub center: Option<f64>,
    /// Width of the window; missing for a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<f64>,
}

/// Origin of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WindowSource {
    /// The file's first window, or the one selected by name.
    File,
    /// The file's VOI table.
    Table,
    /// The range of the frame's values.
    Auto,
    /// Set by the user.
    Given,
}

impl FromStr for DicomWindow {
    type Err = String;

    /// Parses `CENTER,WIDTH`, `auto`, `file` or the name of a window.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some((center, width)) = text.split_once(',') {
            let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
            return match (number(center), number(width)) {
                (Some(center), Some(width)) if width >= 1.0 => {
                    Ok(Self::CenterWidth { center, width })
                }
                _ => Err("expected CENTER,WIDTH with a width of at least 1, for example -600,1500"
                    .into()),
            };
        }
        match text {
            "" => Err("expected CENTER,WIDTH, auto, file, or the name of a window".to_owned()),
            "auto" => Ok(Self::Auto),
            "file" => Ok(Self::File),
            number if number.parse::<f64>().is_ok() => {
                Err("expected CENTER,WIDTH, found one number".to_owned())
            }
            name => Ok(Self::Named(name.to_owned())),
        }
    }
}

impl fmt::Display for DicomWindow {
    /// Writes the syntax that [`FromStr`] parses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => f.write_str("file"),
            Self::Auto => f.write_str("auto"),
            Self::CenterWidth { center, width } => write!(f, "{center},{width}"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

impl DicomView {
    /// Returns the text of the view that is hashed into the keys of records.
    ///
    /// Keys must stay valid across versions, so the text is independent of the names in this
    /// module.
    pub fn key_text(&self) -> String {
        let window = match &self.window {
            DicomWindow::File => "File".to_owned(),
            DicomWindow::Auto => "Auto".to_owned(),
            DicomWindow::CenterWidth { center, width } => {
                format!("Of {{ center: {center:?}, width: {width:?} }}")
            }
            DicomWindow::Named(name) => format!("Named({name:?})"),
        };
        format!("View {{ window: {window}, frame: {:?} }}", self.frame)
    }

    /// Returns the number of the selected frame, from 1.
    pub(super) fn frame_number(&self, frames: u32) -> Result<u32, DecodeError> {
        match self.frame {
            None => Ok(frames / 2 + 1),
            Some(frame) if (1..=frames).contains(&frame) => Ok(frame),
            Some(frame) => Err(DecodeError::InvalidView {
                problem: format!("no frame {frame}, expected 1 to {frames}"),
                hint: "--frame applies to every image of the run; omit it to judge the middle \
                       frames, or judge images with fewer frames in a separate run",
            }),
        }
    }
}

/// Returns the error for a requested window on a colour image.
pub(super) fn window_on_colour_error() -> DecodeError {
    DecodeError::InvalidView {
        problem: "a colour image has no window".to_owned(),
        hint: "--window applies to every image of the run; judge colour images in a separate run \
               without it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_text_is_parsed_strictly() {
        assert_eq!(
            "-600,1500".parse(),
            Ok(DicomWindow::CenterWidth { center: -600., width: 1500. })
        );
        assert_eq!(" auto ".parse(), Ok(DicomWindow::Auto));
        assert_eq!("Lung".parse(), Ok(DicomWindow::Named("Lung".into())));
        for text in ["-600.5,1500", "auto", "file", "Lung"] {
            assert_eq!(text.parse::<DicomWindow>().unwrap().to_string(), text);
        }
        for invalid in ["", "1,", "1,0", "a,b", "NaN,2", "1,inf"] {
            assert!(invalid.parse::<DicomWindow>().is_err(), "{invalid}");
        }
    }

    /// Fails if a change would invalidate the keys of existing records.
    #[test]
    fn key_text_is_stable() {
        let key_text = |window: DicomWindow, frame| DicomView { window, frame }.key_text();
        let lung = DicomWindow::CenterWidth { center: -600.0, width: 1500.0 };
        assert_eq!(
            key_text(lung, Some(2)),
            "View { window: Of { center: -600.0, width: 1500.0 }, frame: Some(2) }"
        );
        assert_eq!(key_text(DicomWindow::File, Some(1)), "View { window: File, frame: Some(1) }");
        assert_eq!(key_text(DicomWindow::Auto, None), "View { window: Auto, frame: None }");
        assert_eq!(
            key_text(DicomWindow::Named("a \"b\"".to_owned()), None),
            r#"View { window: Named("a \"b\""), frame: None }"#
        );
    }

    #[test]
    fn default_frame_is_the_middle_one() {
        let frame_number =
            |frame, frames| DicomView { frame, ..DicomView::default() }.frame_number(frames);
        assert_eq!([1, 2, 5].map(|frames| frame_number(None, frames)), [Ok(1), Ok(2), Ok(3)]);
        assert_eq!(frame_number(Some(5), 5), Ok(5));
        assert!(frame_number(Some(0), 5).is_err() && frame_number(Some(6), 5).is_err());
    }
}
