//! Errors about the file of a model.

use crate::base::error::Error;
use crate::base::file_fault::FileFault;
use std::path::Path;

impl FileFault {
    pub(crate) fn content(section: &str, rule: &'static str) -> Self {
        let section = section.to_string();
        Self::Content { section, rule }
    }

    pub(crate) fn at(self, path: &Path) -> Error {
        let path = path.display().to_string();
        Error::Model { path, fault: self }
    }

    /// The error of bytes that come from no file.
    pub(crate) fn of_bytes(self) -> Error {
        let path = "saved model".to_string();
        Error::Model { path, fault: self }
    }
}
