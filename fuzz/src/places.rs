//! A folder for the files of a process.

use std::path::PathBuf;
use std::sync::OnceLock;

/// The path of a file of this name, which no other process uses.
pub(crate) fn file(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let name = format!("coremix-fuzz-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder for files");
        folder
    });
    folder.join(name)
}
