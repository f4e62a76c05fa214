//! Display settings of DICOM images.

use acem3_vision::{View, Window};
use clap::Args;

/// Arguments that select the frame and window of DICOM images.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "DICOM images")]
pub struct DicomArgs {
    /// Map grey values with this window: CENTER,WIDTH in the units of the file, `auto` (full range of the frame),
    /// `file` (the window of the file) or the name of a window in the file; images without a named window are
    /// unscored
    #[arg(
        long,
        value_name = "WINDOW",
        default_value = "file",
        env = "ACEM3_WINDOW"
    )]
    #[arg(allow_hyphen_values = true)]
    pub window: Window,
    /// Show frame N of images with several frames, counted from 1 [default: the middle one]
    #[arg(long, value_name = "N", env = "ACEM3_FRAME")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub frame: Option<u32>,
}

impl DicomArgs {
    /// Returns the view with this window and frame.
    pub fn view(&self) -> View {
        View {
            window: self.window.clone(),
            frame: self.frame,
        }
    }
}
