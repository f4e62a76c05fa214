//! The report as an HTML page.

pub(crate) mod browser;
pub(crate) mod embedded_images;
pub(crate) mod html;
