//! Frame and window selection for DICOM images.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::error::DecodeError;

/// Frame and window of DICOM images.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// The window.
    pub window: Window,
    /// Frame number from 1; the middle frame if `None`.
    pub frame: Option<u32>,
}

/// Range of values that is mapped to black to white.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Window {
    /// The file's VOI table, otherwise its first window, otherwise `Auto`.
    #[default]
    File,
    /// The range of the frame's values.
    Auto,
    /// This centre and width, in the units of the modality (Hounsfield units in CT).
    Of {
        /// The middle.
        center: f64,
        /// The width, at least 1.
        width: f64,
    },
    /// The window with this name in the file, case-insensitive.
    Named(String),
}

/// The frame and window that were used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shown {
    /// The frame, counted from one.
    pub frame: u32,
    /// Number of frames.
    pub frames: u32,
    /// The window; `None` for colour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<ShownWindow>,
}

/// A window that was used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShownWindow {
    /// Where it is from.
    pub source: WindowSource,
    /// Its middle; `None` for a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub center: Option<f64>,
    /// Its width; `None` for a table.
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
    /// Given by the user.
    Given,
}

impl FromStr for Window {
    type Err = String;

    /// Reads `CENTER,WIDTH`, `auto`, `file` or the name of a window.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some((center, width)) = text.split_once(',') {
            let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
            return match (number(center), number(width)) {
                (Some(center), Some(width)) if width >= 1.0 => Ok(Self::Of { center, width }),
                _ => {
                    Err("expected CENTER,WIDTH with a width of at least 1, as in -600,1500".into())
                }
            };
        }
        match text {
            "" => Err("expected CENTER,WIDTH, auto, file, or the name of a window".to_owned()),
            "auto" => Ok(Self::Auto),
            "file" => Ok(Self::File),
            number if number.parse::<f64>().is_ok() => {
                Err("expected CENTER,WIDTH, got one number".to_owned())
            }
            name => Ok(Self::Named(name.to_owned())),
        }
    }
}

impl fmt::Display for Window {
    /// Writes what [`FromStr`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => f.write_str("file"),
            Self::Auto => f.write_str("auto"),
            Self::Of { center, width } => write!(f, "{center},{width}"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

impl View {
    /// Returns the number of the selected frame, from 1.
    pub(super) fn frame_of(&self, frames: u32) -> Result<u32, DecodeError> {
        match self.frame {
            None => Ok(frames / 2 + 1),
            Some(frame) if (1..=frames).contains(&frame) => Ok(frame),
            Some(frame) => Err(DecodeError::View {
                what: format!("it has no frame {frame}, its frames are 1 to {frames}"),
                hint: "--frame holds for every image of a run: leave it out for the middle frames, or \
                       judge images with fewer frames in a run of their own",
            }),
        }
    }
}

/// Returns the error for a window on a colour image.
pub(super) fn unwindowed() -> DecodeError {
    DecodeError::View {
        what: "it is in colour, and only grey values have a window".to_owned(),
        hint: "--window holds for every image of a run: judge images in colour in a run of their own, \
               without it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_read_strictly() {
        assert_eq!(
            "-600,1500".parse(),
            Ok(Window::Of {
                center: -600.,
                width: 1500.
            })
        );
        assert_eq!(" auto ".parse(), Ok(Window::Auto));
        assert_eq!("Lung".parse(), Ok(Window::Named("Lung".into())));
        for same in ["-600.5,1500", "auto", "file", "Lung"] {
            assert_eq!(same.parse::<Window>().unwrap().to_string(), same);
        }
        for bad in ["", "1,", "1,0", "a,b", "NaN,2", "1,inf"] {
            assert!(bad.parse::<Window>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_middle_frame_is_taken() {
        let of = |frame, frames| {
            View {
                frame,
                ..View::default()
            }
            .frame_of(frames)
        };
        assert_eq!(
            (of(None, 1), of(None, 2), of(None, 5)),
            (Ok(1), Ok(2), Ok(3))
        );
        assert_eq!(of(Some(5), 5), Ok(5));
        assert!(of(Some(0), 5).is_err() && of(Some(6), 5).is_err());
    }
}
