//! Pages without those that have no values: some writers leave such pages behind, and the parquet reader takes one for the
//! end of its column.

use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::Result;

/// The pages of a reader that have values, and its dictionaries.
pub(super) struct Filled<P>(pub(super) P);

impl<P: PageReader> Filled<P> {
    fn skip_empty(&mut self) -> Result<()> {
        while let Some(next) = self.0.peek_next_page()? {
            if next.is_dict || (next.num_levels != Some(0) && next.num_rows != Some(0)) {
                break;
            }
            self.0.skip_next_page()?;
        }
        Ok(())
    }
}

impl<P: PageReader> Iterator for Filled<P> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<P: PageReader> PageReader for Filled<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.skip_empty()?;
        self.0.get_next_page()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.skip_empty()?;
        self.0.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.skip_empty()?;
        self.0.skip_next_page()
    }

    fn supports_deferred_dictionary(&self) -> bool {
        self.0.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> Result<Option<Page>> {
        self.0.take_deferred_dictionary()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.skip_empty()?;
        self.0.at_record_boundary()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use parquet::basic::Encoding;

    use super::*;

    /// Pages with so many values each.
    struct Pages(VecDeque<(Vec<u8>, u32)>);

    impl PageReader for Pages {
        fn get_next_page(&mut self) -> Result<Option<Page>> {
            Ok(self.0.pop_front().map(|(bytes, num_values)| Page::DataPage {
                buf: bytes.into(),
                num_values,
                encoding: Encoding::PLAIN,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            }))
        }

        fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
            let next = self.0.front();
            Ok(next.map(|(_, n)| PageMetadata {
                num_rows: None,
                num_levels: Some(*n as usize),
                is_dict: false,
            }))
        }

        fn skip_next_page(&mut self) -> Result<()> {
            self.0.pop_front();
            Ok(())
        }
    }

    impl Iterator for Pages {
        type Item = Result<Page>;

        fn next(&mut self) -> Option<Self::Item> {
            self.get_next_page().transpose()
        }
    }

    #[test]
    fn pages_without_values_are_passed_over() {
        let page = |n: u32| (vec![0], n);
        for (sizes, seen) in [(vec![3, 0, 2], vec![3, 2]), (vec![0, 0, 1, 0], vec![1]), (vec![0], vec![])] {
            let mut pages = Filled(Pages(sizes.into_iter().map(page).collect()));
            let mut found = Vec::new();
            while pages.peek_next_page().unwrap().is_some() {
                let Some(Page::DataPage { num_values, .. }) = pages.get_next_page().unwrap() else { break };
                found.push(num_values);
            }
            assert_eq!(found, seen);
            assert!(pages.at_record_boundary().unwrap());
        }
    }
}
