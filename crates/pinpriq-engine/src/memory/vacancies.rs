//! Keeps track of which pages have room, and which empty page keeps its memory.
//!
//! The contents of a page are up to its owner.

/// A page that can be full or empty.
pub(crate) trait Page: Default {
    /// Whether the page holds nothing.
    fn is_empty(&self) -> bool;

    /// Frees the memory of the page, which holds nothing.
    fn give_back_room(&mut self);

    /// Whether it is in the list of pages with room.
    fn is_listed(&mut self) -> &mut bool;
}

/// Pages, and which of them have room.
#[derive(Debug)]
pub(crate) struct Vacancies<P> {
    pub(crate) pages: Vec<P>,
    /// Pages with room. Some of them may be full by now. The last one is filled first.
    roomy: Vec<usize>,
    /// The page that was emptied last, which still has its memory. Values that stay only briefly
    /// use it.
    kept: Option<usize>,
}

impl<P> Default for Vacancies<P> {
    fn default() -> Self {
        Self { pages: Vec::new(), roomy: Vec::new(), kept: None }
    }
}

impl<P: Page> Vacancies<P> {
    /// Returns a page with room, as `has_room` defines it. Adds a new page if there is none.
    #[inline]
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

    /// Records that something was removed from a page. If the page is empty now, its memory is kept
    /// for the next value, and the memory of the page that was kept before is freed.
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
