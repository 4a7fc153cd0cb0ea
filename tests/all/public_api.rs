//! The public surface of the crate is that of `tests/fixtures/public_api.txt`: whoever changes it says so there.
//!
//! This is a scan of the source text. Items are listed under the file where they are written, also when that is a private
//! module: the `pub use` lines say where they are reached. Listed are `pub` items with their signatures, public fields,
//! variants, what traits and `impl` blocks hold, derives, and which traits are implemented. Left out is what cannot be named
//! from outside, such as the workers of E-steps. Items made by macros are not seen, such as `Float` for f32.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A word, a literal or a sign, and whether space came before it.
#[derive(Clone, Debug, PartialEq)]
struct Token {
    text: String,
    spaced: bool,
}

/// The tokens of a source text, without comments.
fn tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut found, mut i, mut spaced) = (Vec::new(), 0, false);
    while i < chars.len() {
        let start = i;
        match (at(i), at(i + 1)) {
            ('/', '/') => {
                while i < chars.len() && at(i) != '\n' {
                    i += 1;
                }
            }
            ('/', '*') => {
                let mut depth = 0;
                loop {
                    match (at(i), at(i + 1)) {
                        ('/', '*') => (depth, i) = (depth + 1, i + 2),
                        ('*', '/') => (depth, i) = (depth - 1, i + 2),
                        _ => i += 1,
                    }
                    if depth == 0 || i >= chars.len() {
                        break;
                    }
                }
            }
            ('r', '"' | '#') | ('b', 'r') if raw_string(&chars[i..]).is_some() => {
                i += raw_string(&chars[i..]).unwrap();
            }
            ('"', _) | ('b', '"') => {
                i += if at(i) == 'b' { 2 } else { 1 };
                while i < chars.len() && at(i) != '"' {
                    i += if at(i) == '\\' { 2 } else { 1 };
                }
                i += 1;
            }
            // A character, not a lifetime.
            ('\'', c) if c == '\\' || at(i + 2) == '\'' => {
                i += if c == '\\' { 3 } else { 2 };
                while i < chars.len() && at(i) != '\'' {
                    i += 1;
                }
                i += 1;
            }
            ('-' | '=', '>') | (':', ':') => i += 2,
            (c, _) if c.is_whitespace() => i += 1,
            (c, _) if word(c) || c == '\'' => {
                i += 1;
                while word(at(i)) {
                    i += 1;
                }
            }
            _ => i += 1,
        }
        let text: String = chars[start..i.min(chars.len())].iter().collect();
        if text.starts_with("//") || text.starts_with("/*") || text.trim().is_empty() {
            spaced = true;
        } else {
            found.push(Token { text, spaced });
            spaced = false;
        }
    }
    found
}

/// The length of the raw string that begins here, if one does.
fn raw_string(chars: &[char]) -> Option<usize> {
    let quote = chars.iter().position(|c| *c == '"')?;
    let prefix: String = chars[..quote].iter().collect();
    let hashes = prefix.strip_prefix('b').unwrap_or(&prefix);
    let hashes = hashes.strip_prefix('r')?;
    if hashes.chars().any(|c| c != '#') {
        return None;
    }
    let end: Vec<char> = format!("\"{hashes}").chars().collect();
    let body = &chars[quote + 1..];
    let length = body.windows(end.len()).position(|part| part == end)?;
    Some(quote + 1 + length + end.len())
}

/// On one line, the same however it was broken into lines.
fn one_line(tokens: &[Token]) -> String {
    let mut line = String::new();
    for (i, token) in tokens.iter().enumerate() {
        let last = line.chars().next_back().unwrap_or('(');
        let text = token.text.as_str();
        // `mut self` is no part of a signature, `&mut self` is.
        if text == "mut" && matches!(last, '(' | ',') {
            continue;
        }
        let closes = matches!(text, ")" | "]" | "}" | ">");
        if closes && last == ',' {
            line.pop();
        }
        let opened = matches!(last, '(' | '[' | '{' | '<');
        if i > 0 && token.spaced && !opened && !closes && text != "," {
            line.push(' ');
        }
        line.push_str(text);
    }
    line.trim_end_matches(',').to_string()
}

/// Reads items one after the other.
struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
}

/// What comes before an item.
#[derive(Default)]
struct Before {
    /// The attributes that belong to the surface.
    shown: String,
    test: bool,
    public: bool,
}

impl<'a> Reader<'a> {
    fn new(tokens: &'a [Token]) -> Self {
        Self { tokens, at: 0 }
    }

    fn peek(&self) -> &'a str {
        self.tokens.get(self.at).map_or("", |t| &t.text)
    }

    fn done(&self) -> bool {
        self.at >= self.tokens.len()
    }

    /// Up to one of `ends` outside of brackets, which is left to come.
    fn until(&mut self, ends: &[&str]) -> &'a [Token] {
        let (start, mut depth, mut angles) = (self.at, 0, 0);
        while !self.done() {
            let text = self.peek();
            if depth == 0 && angles <= 0 && ends.contains(&text) {
                break;
            }
            match text {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                "<" => angles += 1,
                ">" => angles -= 1,
                _ => {}
            }
            self.at += 1;
        }
        &self.tokens[start..self.at]
    }

    /// What is between the bracket that comes and its partner. Angles do not count: there may be comparisons in it.
    fn group(&mut self) -> &'a [Token] {
        let (start, mut depth) = (self.at + 1, 0);
        while !self.done() {
            match self.peek() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                break;
            }
        }
        &self.tokens[start..self.at - 1]
    }

    /// Past the next semicolon. Angles do not count: a value may shift bits.
    fn end(&mut self) {
        while !self.done() && self.peek() != ";" {
            match self.peek() {
                "(" | "[" | "{" => {
                    self.group();
                }
                _ => self.at += 1,
            }
        }
        self.at += 1;
    }

    /// Attributes and visibility.
    fn before(&mut self) -> Before {
        let mut before = Before::default();
        while self.peek() == "#" {
            self.at += 1;
            if self.peek() == "!" {
                self.at += 1;
            }
            let attribute = one_line(self.group());
            before.test |= attribute.starts_with("cfg(") && attribute.contains("test");
            let shows = ["derive(", "non_exhaustive", "doc(hidden)"];
            if shows.iter().any(|start| attribute.starts_with(start)) {
                before.shown += &format!("#[{attribute}] ");
            }
        }
        if self.peek() == "pub" {
            self.at += 1;
            before.public = self.peek() != "(";
            if !before.public {
                self.group();
            }
        }
        before
    }
}

/// A line about something.
struct Line {
    module: String,
    /// What it is about: an item, or the type of an `impl` block.
    about: String,
    /// The trait of an `impl` block, or none.
    of_trait: String,
    in_impl: bool,
    text: String,
}

/// What the files say.
#[derive(Default)]
struct Surface {
    lines: Vec<Line>,
    /// Types and traits, public or not.
    declared: BTreeSet<String>,
    /// Modules that can be named from outside.
    modules: BTreeSet<String>,
    /// Names that can be used from outside.
    names: BTreeSet<String>,
    /// Modules for tests alone.
    tests: BTreeSet<String>,
}

impl Surface {
    fn new(root: &str) -> Self {
        let mut surface = Self::default();
        surface.modules.insert(root.to_string());
        surface
    }

    fn say(&mut self, module: &str, about: &str, text: String) {
        self.lines.push(Line {
            module: module.to_string(),
            about: about.to_string(),
            of_trait: String::new(),
            in_impl: false,
            text,
        });
    }

    fn items(&mut self, module: &str, tokens: &[Token]) {
        let mut reader = Reader::new(tokens);
        while !reader.done() {
            let before = reader.before();
            let start = reader.at;
            let mut kind = reader.peek();
            // `const fn`, `unsafe impl`, `async fn`
            let next = tokens.get(start + 1).map_or("", |t| t.text.as_str());
            if matches!(next, "fn" | "impl" | "trait") {
                kind = next;
            }
            let name = tokens.get(start + 1).map_or("", |t| t.text.as_str());
            match kind {
                "" => break,
                "struct" | "enum" | "union" | "trait" | "mod" | "fn" | "impl" => {
                    let ends = match kind {
                        "struct" => &["{", ";", "("][..],
                        _ => &["{", ";"],
                    };
                    let header = one_line(reader.until(ends));
                    let body = match reader.peek() {
                        ";" => &[],
                        _ => reader.group(),
                    };
                    let fields = kind == "struct" && !body.is_empty();
                    let tuple = fields && tokens[reader.at - 1].text == ")";
                    if tuple {
                        reader.until(&[";"]);
                    }
                    if reader.peek() == ";" {
                        reader.at += 1;
                    }
                    if before.test {
                        if kind == "mod" {
                            self.tests.insert(format!("{module}/{name}"));
                        }
                        continue;
                    }
                    match kind {
                        "impl" => self.implementation(module, &header, body),
                        "mod" => {
                            let inner = format!("{module}/{name}");
                            let inner = inner.trim_start_matches("lib/");
                            if before.public {
                                self.modules.insert(inner.to_string());
                            }
                            self.items(inner, body);
                        }
                        "fn" => {}
                        _ => {
                            self.declared.insert(name.to_string());
                        }
                    }
                    if !before.public {
                        continue;
                    }
                    self.say(module, name, format!("{}pub {header}", before.shown));
                    match kind {
                        "struct" => self.members(module, name, "struct", body),
                        "enum" => self.members(module, name, "enum", body),
                        "trait" => {
                            for line in within(body, true) {
                                self.say(module, name, format!("trait {name}: {line}"));
                            }
                        }
                        _ => {}
                    }
                }
                "use" | "type" | "const" | "static" | "extern" => {
                    let ends = match kind {
                        "const" | "static" => &["=", ";"][..],
                        _ => &[";"],
                    };
                    let header = reader.until(ends);
                    let line = one_line(header);
                    reader.end();
                    if !before.public || before.test {
                        continue;
                    }
                    if kind == "use" {
                        self.names.extend(header.iter().map(|t| t.text.clone()));
                        // Reached where the module is.
                        self.say(module, "", format!("pub {line}"));
                    } else {
                        self.say(module, name, format!("{}pub {line}", before.shown));
                    }
                }
                // A macro, made or used.
                _ => {
                    reader.until(&["{", "(", "[", ";"]);
                    if reader.peek() != ";" {
                        reader.group();
                    }
                    if reader.peek() == ";" {
                        reader.at += 1;
                    }
                }
            }
        }
    }

    /// The public fields of a struct, or the variants of an enum.
    fn members(&mut self, module: &str, name: &str, kind: &str, body: &[Token]) {
        let mut reader = Reader::new(body);
        while !reader.done() {
            let before = reader.before();
            let mut member = Reader::new(reader.until(&[","]));
            // Attributes of the fields of a variant are left out.
            let mut kept = Vec::new();
            while !member.done() {
                if member.peek() == "#" {
                    member.before();
                } else {
                    kept.push(member.tokens[member.at].clone());
                    member.at += 1;
                }
            }
            reader.at += 1;
            if before.public || kind == "enum" {
                let text = format!("{kind} {name}: {}{}", before.shown, one_line(&kept));
                self.say(module, name, text);
            }
        }
    }

    fn implementation(&mut self, module: &str, header: &str, body: &[Token]) {
        let block = header.strip_prefix("impl").unwrap_or(header);
        let block = match block.starts_with('<') {
            true => after_parameters(block),
            false => block.trim_start(),
        };
        let (of_trait, of_type) = block.split_once(" for ").unwrap_or(("", block));
        let word = |text: &str| -> String {
            let path = text.split('<').next().unwrap_or("");
            let last = path.rsplit("::").next().unwrap_or("");
            let letter = |c: &char| c.is_alphanumeric() || *c == '_';
            last.chars().take_while(letter).collect()
        };
        let texts = match of_trait {
            "" => {
                let lines = within(body, false).into_iter();
                lines.map(|line| format!("{header}: {line}")).collect()
            }
            _ => vec![header.to_string()],
        };
        for text in texts {
            self.lines.push(Line {
                module: module.to_string(),
                about: word(of_type),
                of_trait: word(of_trait),
                in_impl: true,
                text,
            });
        }
    }

    /// By module, sorted.
    fn text(mut self) -> BTreeMap<String, BTreeSet<String>> {
        for line in &self.lines {
            if !line.in_impl && self.modules.contains(&line.module) {
                self.names.insert(line.about.clone());
            }
        }
        // Types and traits of other crates can be named, too.
        let known = |name: &str| self.names.contains(name) || !self.declared.contains(name);
        let mut modules: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for line in self.lines {
            let reached = match line.in_impl {
                true => known(&line.about) && known(&line.of_trait),
                false if line.about.is_empty() => self.modules.contains(&line.module),
                false => self.names.contains(&line.about),
            };
            if reached && !self.tests.contains(&line.module) {
                modules.entry(line.module).or_default().insert(line.text);
            }
        }
        modules
    }
}

/// What a trait holds, or what is public in an `impl` block.
fn within(body: &[Token], is_trait: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let mut reader = Reader::new(body);
    while !reader.done() {
        let before = reader.before();
        let is_const = reader.peek() == "const" && body[reader.at + 1].text != "fn";
        let ends: &[&str] = if is_const { &["=", ";"] } else { &["{", ";"] };
        let line = one_line(reader.until(ends));
        let has_default = reader.peek() != ";" && is_trait;
        if reader.peek() == "{" {
            reader.group();
        } else {
            reader.end();
        }
        if (is_trait || before.public) && !before.test {
            let public = if is_trait { "" } else { "pub " };
            let default = if has_default { " (has a default)" } else { "" };
            lines.push(format!("{}{public}{line}{default}", before.shown));
        }
    }
    lines
}

/// `<A, B: C<D>> rest` without the first bracket.
fn after_parameters(text: &str) -> &str {
    let mut depth = 0;
    for (i, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if !text[..i].ends_with('-') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return text[i + 1..].trim_start();
        }
    }
    text
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}

fn found() -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    files.sort();
    let mut surface = Surface::new("lib");
    for file in &files {
        let module = file.strip_prefix(&source).unwrap().with_extension("");
        let module: Vec<_> = module.iter().map(|part| part.to_str().unwrap()).collect();
        let module = module.join("/");
        let module = module.strip_suffix("/mod").unwrap_or(&module);
        surface.items(module, &tokens(&std::fs::read_to_string(file).unwrap()));
    }
    let mut text =
        String::from("# Renewed by: RENEW=1 cargo test --release --test all public_api::\n");
    for (module, lines) in surface.text() {
        writeln!(text, "\n[{module}]").unwrap();
        lines
            .iter()
            .for_each(|line| writeln!(text, "{line}").unwrap());
    }
    text
}

/// Every line with its module.
fn with_modules(text: &str) -> BTreeSet<(String, String)> {
    let mut module = String::new();
    let mut lines = BTreeSet::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            Some(name) if !line.contains(' ') => module = name.to_string(),
            _ => {
                lines.insert((module.clone(), line.to_string()));
            }
        }
    }
    lines
}

#[test]
fn the_public_surface_is_the_one_on_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/public_api.txt");
    let found = found();
    if std::env::var_os("RENEW").is_some() {
        std::fs::write(&path, found).unwrap();
        return;
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    let (known, found) = (with_modules(&known), with_modules(&found));
    let mut difference = String::new();
    for (sign, module, line) in known
        .difference(&found)
        .map(|(module, line)| ('-', module, line))
        .chain(
            found
                .difference(&known)
                .map(|(module, line)| ('+', module, line)),
        )
    {
        writeln!(difference, "{sign} {module}: {line}").unwrap();
    }
    assert!(
        difference.is_empty(),
        "the public surface changed:\n{difference}\
         If that is wanted, say it in CHANGELOG.md and renew the list:\n\
         RENEW=1 cargo test --release --test all public_api::"
    );
}

/// The scan itself, on one of everything.
#[test]
fn the_scan_sees_what_is_public_and_nothing_else() {
    let source = r##"
        //! pub fn in_a_comment();
        pub use other::{A, B};
        const SHIFTED: usize = 1 << 24;
        const TEXT: &str = "pub fn in_a_string() {";
        const RAW: &str = r#"pub fn in "a" raw string"#;
        /// Words. /* pub struct No; */
        #[derive(Clone, Debug)]
        #[must_use]
        pub struct Open<'a, F = f64> { pub x: &'a [F], y: char }
        pub struct Wrapped(pub Vec<u8>, char);
        struct Closed { pub z: f64 }
        #[non_exhaustive]
        pub enum Choice {
            #[default]
            One,
            Two { #[from] a: u8, b: fn(u8) -> u8, },
        }
        impl<'a, F> Open<'a, F> where F: Copy {
            pub fn long(
                mut self,
                by: char,
            ) -> Option<F> { if by == '"' && 1 < 2 { None } else { None } }
            pub(crate) fn inner(&self) {}
            fn own() {}
        }
        impl Closed { pub fn unseen() {} }
        impl<F> From<F> for Open<'static, F> { fn from(f: F) -> Self { todo!() } }
        impl Hidden for Choice {}
        pub(crate) trait Hidden {}
        pub trait Seen: Sized {
            const N: usize = 3;
            type T: Copy;
            fn must(&self) -> Self::T;
            #[doc(hidden)]
            fn may(&self) {}
        }
        some_macro! { pub fn made() {} }
        pub const fn quick() -> u8 { 1 }
        pub type Short = Vec<Option<u8>>;
        pub mod inner { pub fn deep() {} }
        #[cfg(test)]
        mod tests { pub fn not_there() {} }
        mod private { pub struct Unnamed; pub struct A; impl Unnamed { pub fn f() {} } }
    "##;
    let mut surface = Surface::new("here");
    surface.items("here", &tokens(source));
    let text = surface.text();
    let here: Vec<&str> = text["here"].iter().map(String::as_str).collect();
    let expected = [
        "#[derive(Clone, Debug)] pub struct Open<'a, F = f64>",
        "#[non_exhaustive] pub enum Choice",
        "enum Choice: One",
        "enum Choice: Two {a: u8, b: fn(u8) -> u8}",
        "impl<'a, F> Open<'a, F> where F: Copy: pub fn long(self, by: char) -> Option<F>",
        "impl<F> From<F> for Open<'static, F>",
        "pub const fn quick() -> u8",
        "pub mod inner",
        "pub struct Wrapped",
        "pub trait Seen: Sized",
        "pub type Short = Vec<Option<u8>>",
        "pub use other::{A, B}",
        "struct Open: x: &'a [F]",
        "struct Wrapped: Vec<u8>",
        "trait Seen: #[doc(hidden)] fn may(&self) (has a default)",
        "trait Seen: const N: usize (has a default)",
        "trait Seen: fn must(&self) -> Self::T",
        "trait Seen: type T: Copy",
    ];
    assert_eq!(here, expected);
    assert_eq!(text["here/inner"].len(), 1);
    let private: Vec<&String> = text["here/private"].iter().collect();
    assert_eq!(private, ["pub struct A"]);
}
