//! Sends the image of a case.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};

use super::png_images::RequestedImage;
use super::responses::{message, print_failure};
use super::site_state::SiteState;
use crate::data::cases::ImageSource;

/// The image of a case that somebody asked for.
pub(super) struct CaseImage {
    /// Source of the image, if the case has one.
    pub(super) source: Option<ImageSource>,
    /// DICOM window, if somebody chose one.
    pub(super) window: Option<[f64; 2]>,
    /// Name of the request in messages on the terminal.
    pub(super) request: String,
}

impl CaseImage {
    /// Sends the image, without anything else of its file.
    pub(super) async fn send(self, site: &SiteState) -> Response {
        let Some(source) = self.source else {
            return message(site, StatusCode::NOT_FOUND, "No image", "The case has no image.");
        };
        match site.images.png(RequestedImage { source, window: self.window }).await {
            Ok(png) => ([(CONTENT_TYPE, "image/png")], png).into_response(),
            Err(error) => {
                print_failure(&format!("{}: no image", self.request), &error);
                let text =
                    "The image cannot be shown. The administrator sees the reason on the terminal.";
                message(site, StatusCode::INTERNAL_SERVER_ERROR, "No image", text)
            }
        }
    }
}
