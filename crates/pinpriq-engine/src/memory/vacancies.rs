//! Which pages of many have room, and which empty one keeps it.
//!
//! What a page holds, and how, is its owner's business.

/// A page that can be full and empty.
pub(crate) trait Page: Default {
    /// Whether nothing is in it.
    fn is_empty(&self) -> bool;

    /// Gives its memory back. It holds nothing.
    fn give_back_room(&mut self);

    /// Whether it stands among those with room.
    fn is_listed(&mut self) -> &mut bool;
}

/// Pages, and what is known of their room.
#[derive(Debug)]
pub(crate) struct Vacancies<P> {
    pub(crate) pages: Vec<P>,
    /// Pages with room, some of which may have none any more. The last is filled first.
    roomy: Vec<usize>,
    /// The page that was emptied last, and still has its memory: what just passes through needs
    /// one.
    kept: Option<usize>,
}

impl<P> Default for Vacancies<P> {
    fn default() -> Self {
        Self { pages: Vec::new(), roomy: Vec::new(), kept: None }
    }
}

impl<P: Page> Vacancies<P> {
    /// A page with room, as `has_room` sees it; a new one if there is none.
    pub(crate) fn roomy(&mut self, has_room: impl Fn(&P) -> bool) -> usize {
        while let Some(&at) = self.roomy.last() {
            let page = &mut self.pages[at];
            if has_room(page) {
                return at;
            }
            *page.is_listed() = false;
            self.roomy.pop();
        }
        let mut page = P::default();
        *page.is_listed() = true;
        self.pages.push(page);
        self.roomy.push(self.pages.len() - 1);
        self.pages.len() - 1
    }

    /// Notes that something was taken out of a page. If that was the last, its memory is kept for
    /// what comes next, and that of the page that was kept before is given back.
    pub(crate) fn freed(&mut self, at: usize) {
        let page = &mut self.pages[at];
        if !*page.is_listed() {
            *page.is_listed() = true;
            self.roomy.push(at);
        }
        if !self.pages[at].is_empty() {
            return;
        }
        let former = self.kept.replace(at).filter(|former| *former != at);
        if let Some(former) = former.filter(|former| self.pages[*former].is_empty()) {
            self.pages[former].give_back_room();
        }
    }
}
