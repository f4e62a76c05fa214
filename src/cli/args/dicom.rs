//! The flags that say how DICOM images are looked at.

use acem3_vision::{View, Window};
use clap::Args;

/// How DICOM images are looked at.
#[derive(Args, Clone, Debug)]
pub struct DicomArgs {
    /// The grey values of DICOM images: CENTER,WIDTH in the units of the file, auto (all of the
    /// frame), file (the file's own), or the name of a window of the file; what is named holds for
    /// all images of a run, and objects without it are unscored
    #[arg(
        long,
        value_name = "WINDOW",
        default_value = "file",
        env = "ACEM3_WINDOW"
    )]
    #[arg(allow_hyphen_values = true)]
    pub window: Window,
    /// The frame of DICOM images that have several, from 1 [default: the middle one]
    #[arg(long, value_name = "N", env = "ACEM3_FRAME")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub frame: Option<u32>,
}

impl DicomArgs {
    /// The view they ask for.
    pub fn view(&self) -> View {
        View {
            window: self.window.clone(),
            frame: self.frame,
        }
    }
}
