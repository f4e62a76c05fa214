//! Display settings of DICOM images.

use acem3_vision::{DicomView, DicomWindow};
use clap::Args;

use super::value_parsers::parse_at_least_one;

/// Heading of both arguments. A heading of the struct would also apply to the arguments that
/// follow it in a command.
const DICOM_HEADING: &str = "DICOM images";

/// Arguments that select the frame and window of DICOM images.
#[derive(Args, Clone, Debug)]
pub struct DicomArgs {
    /// Map grey values with this window: CENTER,WIDTH in the units of the file, `auto` (full range
    /// of the frame), `file` (the window of the file) or the name of a window in the file; images
    /// that lack the named window are unscored
    #[arg(long, value_name = "WINDOW", default_value = "file", env = "ACEM3_WINDOW")]
    #[arg(help_heading = DICOM_HEADING, allow_hyphen_values = true)]
    pub window: DicomWindow,
    /// Use frame N of images with several frames, counted from 1 [default: the middle one]
    #[arg(long, value_name = "N", env = "ACEM3_FRAME")]
    #[arg(help_heading = DICOM_HEADING, value_parser = parse_at_least_one::<u32>)]
    pub frame: Option<u32>,
}

impl DicomArgs {
    /// Returns the view with this window and frame.
    pub fn to_view(&self) -> DicomView {
        DicomView { window: self.window.clone(), frame: self.frame }
    }
}
