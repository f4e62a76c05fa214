//! Decodes images in isolated processes.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;

use acem3_vision::{DecodedImage, DicomView, ImageHeader, ImageLimits, decode_with_view};
use anyhow::anyhow;
use serde::{Deserialize, Serialize};

use crate::data::images::image_file::read_image_file;
use crate::support::process::isolated::{self, IsolatedProcess, ProcessFailure};
use crate::support::process::message::{self, Message};

/// Name of the task of the isolated processes.
pub const IMAGE_TASK: &str = "images";

/// Idle processes. There are at most as many as threads that decode at the same time.
static IDLE: Mutex<Vec<IsolatedProcess>> = Mutex::new(Vec::new());

/// Header of a request. The body is the image file.
#[derive(Debug, Serialize, Deserialize)]
struct DecodeRequest {
    limits: ImageLimits,
    view: DicomView,
}

/// Header of an answer. The body is the pixels.
type DecodeAnswer = Result<ImageHeader, String>;

/// Decodes an image file, in an isolated process if isolation is enabled.
///
/// # Errors
/// The image cannot be decoded, or decoding it exceeds the limits of the process. The message does
/// not name the file.
pub fn decode_image(
    bytes: &[u8],
    limits: &ImageLimits,
    view: &DicomView,
) -> Result<DecodedImage, String> {
    if !isolated::is_enabled() {
        return decode_with_view(bytes, limits, view).map_err(|error| error.to_string());
    }
    let request = DecodeRequest { limits: *limits, view: view.clone() };
    let mut answer = ask_idle_process(&request, bytes);
    if answer == Err(ProcessFailure::Killed) {
        // The user may be ending all processes of the program, this one last.
        answer = ask_idle_process(&request, bytes);
    }
    let answer = answer.map_err(|failure| failure.to_string())?;
    let header = answer.parse_header::<DecodeAnswer>().map_err(|error| error.to_string())??;
    DecodedImage::new(header, answer.body).ok_or_else(|| "the decoded pixels are incomplete".into())
}

/// Reads and decodes an image file with the default limits.
///
/// # Errors
/// The file cannot be read or decoded. The message names the file.
pub fn load_image_file(path: &Path) -> anyhow::Result<DecodedImage> {
    let limits = ImageLimits::default();
    let bytes = read_image_file(path, &limits);
    let image = bytes.and_then(|bytes| decode_image(&bytes, &limits, &DicomView::default()));
    image.map_err(|problem| anyhow!("{}: {problem}", path.display()))
}

fn ask_idle_process(request: &DecodeRequest, bytes: &[u8]) -> Result<Message, ProcessFailure> {
    let idle = IDLE.lock().map_or(None, |mut idle| idle.pop());
    let mut process = match idle {
        Some(process) => process,
        None => IsolatedProcess::start(IMAGE_TASK)?,
    };
    let max_bytes = request.limits.pixels.saturating_mul(3);
    let answer = process.ask(request, bytes, max_bytes)?;
    if let Ok(mut idle) = IDLE.lock() {
        idle.push(process);
    }
    Ok(answer)
}

/// Answers a request in an isolated process.
///
/// # Errors
/// I/O errors, and a malformed request.
pub fn respond(request: Message, output: &mut dyn Write) -> io::Result<()> {
    let DecodeRequest { limits, view } = request.parse_header()?;
    let decoded = decode_with_view(&request.body, &limits, &view);
    drop(request);
    let (answer, pixels): (DecodeAnswer, _) = match decoded {
        Ok(image) => {
            let (header, pixels) = image.into_parts();
            (Ok(header), pixels)
        }
        Err(error) => (Err(error.to_string()), Vec::new()),
    };
    message::write(&mut { output }, &answer, &pixels)
}
