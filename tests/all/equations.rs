//! The numbers of equations that code and pages cite exist in `docs/equations.md`, each with its anchor.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The number that `text` begins with.
fn number(text: &str) -> Option<u32> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text[..end.unwrap_or(text.len())].parse().ok()
}

/// The numbers after each `mark` in a text.
fn after<'a>(mark: &'a str, text: &'a str) -> impl Iterator<Item = u32> + 'a {
    text.split(mark).skip(1).filter_map(number)
}

/// The numbers that a text cites: `equations#e7`, `(E7)`, `(E5, E46)`, and both ends of `(E11) to (E18)`.
fn cited(text: &str) -> BTreeSet<u32> {
    let mut found: BTreeSet<u32> = after("equations#e", text).collect();
    found.extend(after("equations.md#e", text));
    for bracket in text.split('(').skip(1) {
        let inside = bracket.split(')').next().unwrap_or_default();
        if inside.starts_with('E') {
            let parts = inside.split([',', ' ', ';']);
            found.extend(parts.filter_map(|part| part.strip_prefix('E').and_then(number)));
        }
    }
    found
}

/// Shows the text of each file of these kinds under `folder`.
fn walk(folder: &Path, kinds: &[&str], see: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                walk(&path, kinds, see);
            }
        } else if kinds.iter().any(|kind| name.ends_with(kind)) {
            see(&path, &fs::read_to_string(&path).expect("text"));
        }
    }
}

#[test]
fn cited_equations_exist() {
    let root = &Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("docs/equations.md")).expect("the page of equations");
    let headings: Vec<u32> = after("\n### (E", &page).collect();
    let known: BTreeSet<u32> = headings.iter().copied().collect();
    assert_eq!(known.len(), headings.len(), "a number has two headings");
    for number in &known {
        let both = format!("<a id=\"e{number}\"></a>\n\n### (E{number})");
        assert!(
            page.contains(&both),
            "(E{number}): the anchor above its heading"
        );
    }
    assert_eq!(after("<a id=\"e", &page).count(), known.len(), "anchors");

    let mut all = 0;
    let folders = [
        "src",
        "tests",
        "examples",
        "docs",
        "reproduce",
        "files",
        "cli",
        "cluster",
    ];
    for folder in folders.iter().chain(&["python", "linfa", "benches"]) {
        walk(
            &root.join(folder),
            &[".rs", ".md", ".py"],
            &mut |path, text| {
                let cited = cited(text);
                all += cited.len();
                let missing: Vec<_> = cited.difference(&known).collect();
                // (E44) is named where it says that it is gone.
                let gone =
                    path.ends_with("docs/equations.md") || path.ends_with("all/equations.rs");
                assert!(
                    missing.is_empty() || gone && missing == [&44],
                    "{}: no (E{missing:?})",
                    path.display()
                );
            },
        );
    }
    assert!(all > 200, "{all} citations");
}

#[test]
fn citations_are_found_in_every_form() {
    let text = "(E7), [E8](crate::equations#e8), (E5, E46; E9), (E11) to (E18), (equations.md#e3), (Eq. 4), E99";
    let expected = [3, 5, 7, 8, 9, 11, 18, 46];
    assert_eq!(cited(text), BTreeSet::from(expected));
}
