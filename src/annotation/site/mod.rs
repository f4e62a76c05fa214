//! The web server of a study.

mod access;
mod adjudication_routes;
mod admin_routes;
mod agreement_cache;
mod allowed_hosts;
mod evaluation_routes;
mod guard;
mod image_page;
mod image_response;
mod png_images;
mod rater_routes;
mod requested_task;
mod responses;
mod router;
mod sent_form;
mod server;
mod session;
mod site_state;
mod study_images;
mod submitted_form;

pub use access::{AccessLinks, Visitor};
pub use allowed_hosts::AllowedHosts;
pub use server::serve;
pub use site_state::{SiteState, StudyJournals};
pub use study_images::StudyImages;
