//! The image on a page of a case.

use super::site_state::SiteState;
use crate::annotation::pages::case_page::RATING_FORM;
use crate::annotation::pages::image_view::ImageView;
use crate::annotation::study::Task;

/// A page with an image.
pub(super) struct ImagePage {
    /// Address of the image.
    pub(super) image: String,
    /// Address of the page.
    pub(super) page: String,
    /// True if the form of the page can still be filled in.
    pub(super) is_open: bool,
}

impl ImagePage {
    /// Returns how the image of a task is shown with a window that somebody chose, if the task has an
    /// image.
    pub(super) fn view(
        self,
        site: &SiteState,
        task: &Task,
        window: Option<[f64; 2]>,
    ) -> Option<ImageView> {
        task.case.image.as_ref()?;
        let file = site.image_window(task);
        let is_other = |window: &[f64; 2]| file.is_some_and(|file| file.values != Some(*window));
        Some(ImageView {
            image: self.image,
            page: self.page,
            file,
            chosen: window.filter(is_other),
            form: self.is_open.then_some(RATING_FORM),
        })
    }
}
