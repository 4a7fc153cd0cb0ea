//! The public surface of the crate is that of `tests/fixtures/public_api.txt`: whoever changes it says so there.
//!
//! Items are listed under the file where they are written, also when that is a private module: the `pub use` lines say where
//! they are reached. Listed are `pub` items with their signatures, public fields, variants, what traits and `impl` blocks hold,
//! derives, and which traits are implemented. Left out is what cannot be named from outside, such as the workers of E-steps.
//! Items made by macros are not seen, such as `Float` for f32.

use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Field, Fields, FnArg, GenericArgument, ImplItem, Item, ItemImpl, Pat, PathArguments,
    Signature, TraitItem, Type, Visibility,
};

/// Tokens on one line, with the spaces that rustfmt leaves, mostly.
fn line(tokens: &impl ToTokens) -> String {
    let mut line = tokens.to_token_stream().to_string();
    let signs = [
        ("# [", "#["),
        ("? ", "?"),
        (" ;", ";"),
        (" ,", ","),
        (" :", ":"),
        (":: ", "::"),
        (" ::", "::"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (",)", ")"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        (",>", ">"),
        ("& ", "&"),
        (" [", " ["),
        ("[ ", "["),
        (" ]", "]"),
        (",]", "]"),
        ("' ", "'"),
        ("{ ", "{"),
        (" }", "}"),
        (",}", "}"),
        ("=(", "= ("),
    ];
    for (from, to) in signs {
        line = line.replace(from, to);
    }
    line.trim_end_matches(',').to_string()
}

/// The attributes that belong to the surface.
fn shown(attributes: &[Attribute]) -> String {
    let of_surface = |a: &&Attribute| {
        let hidden = a.path().is_ident("doc") && line(a).contains("(hidden)");
        let by_feature = a.path().is_ident("cfg_attr") && line(a).contains("derive(");
        let derived = a.path().is_ident("derive") || by_feature;
        hidden || derived || a.path().is_ident("non_exhaustive")
    };
    let shown = attributes.iter().filter(of_surface);
    shown.map(|a| line(a) + " ").collect()
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_test(attributes: &[Attribute]) -> bool {
    let test = |a: &Attribute| a.path().is_ident("cfg") && line(a).contains("test");
    attributes.iter().any(test)
}

/// Without `mut` before a parameter: it is no part of what a caller sees.
fn signature(signature: &Signature) -> String {
    let mut signature = signature.clone();
    for input in &mut signature.inputs {
        match input {
            FnArg::Receiver(own) if own.reference.is_none() => own.mutability = None,
            FnArg::Typed(typed) => {
                if let Pat::Ident(name) = &mut *typed.pat {
                    name.mutability = None;
                }
            }
            FnArg::Receiver(_) => {}
        }
    }
    line(&signature)
}

/// The last name of a path.
fn last_name(path: &syn::Path) -> String {
    path.segments
        .last()
        .map_or_else(String::new, |last| last.ident.to_string())
}

/// The last name of the path of a trait, and of the types that it takes.
fn names(path: &syn::Path) -> Vec<String> {
    let arguments = path.segments.last().map(|last| &last.arguments);
    let types = match arguments {
        Some(PathArguments::AngleBracketed(all)) => all.args.iter().collect(),
        _ => Vec::new(),
    };
    let of_type = |argument: &GenericArgument| match argument {
        GenericArgument::Type(Type::Path(path)) => Some(last_name(&path.path)),
        _ => None,
    };
    let types = types.into_iter().filter_map(of_type);
    [last_name(path)].into_iter().chain(types).collect()
}

struct Line {
    module: String,
    /// The subject of a line: an item, or the type of an `impl` block.
    about: String,
    /// The trait of an `impl` block and the types that it takes, or none.
    of_trait: Vec<String>,
    in_impl: bool,
    text: String,
}

/// The surface that the files declare.
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
            of_trait: Vec::new(),
            in_impl: false,
            text,
        });
    }

    /// An item with its attributes.
    fn item(&mut self, module: &str, name: &syn::Ident, attributes: &[Attribute], text: String) {
        let text = format!("{}{text}", shown(attributes));
        self.say(module, &name.to_string(), text);
    }

    fn items(&mut self, module: &str, items: &[Item]) {
        for item in items {
            match item {
                Item::Mod(inner) => {
                    let name = format!("{module}/{}", inner.ident);
                    let name = name.trim_start_matches("lib/");
                    if is_test(&inner.attrs) {
                        self.tests.insert(name.to_string());
                        continue;
                    }
                    if is_public(&inner.vis) {
                        self.modules.insert(name.to_string());
                        let text = format!("pub mod {}", inner.ident);
                        self.item(module, &inner.ident, &inner.attrs, text);
                    }
                    let within = inner.content.as_ref().map(|(_, items)| items);
                    self.items(name, within.map_or(&[], |items| items));
                }
                Item::Use(item) if is_public(&item.vis) => {
                    let text = format!("pub use {}", line(&item.tree));
                    let tokens = item.tree.to_token_stream().to_string();
                    let words = tokens.split(|c: char| !c.is_alphanumeric() && c != '_');
                    self.names.extend(words.map(str::to_string));
                    // Reached where the module is.
                    self.say(module, "", text);
                }
                Item::Struct(item) if !is_test(&item.attrs) => {
                    self.declared.insert(item.ident.to_string());
                    if is_public(&item.vis) {
                        let mut header = item.clone();
                        header.attrs.clear();
                        header.fields = Fields::Unit;
                        header.semi_token = Some(Default::default());
                        let header = line(&header);
                        let text = header.trim_end_matches(';').to_string();
                        self.item(module, &item.ident, &item.attrs, text);
                        self.fields(module, &item.ident, &item.fields);
                    }
                }
                Item::Enum(item) if !is_test(&item.attrs) => {
                    self.declared.insert(item.ident.to_string());
                    if is_public(&item.vis) {
                        let mut header = item.clone();
                        header.attrs.clear();
                        header.variants = Punctuated::new();
                        let header = line(&header);
                        let text = header.trim_end_matches(['{', '}']).trim().to_string();
                        self.item(module, &item.ident, &item.attrs, text);
                        for variant in &item.variants {
                            let mut kept = variant.clone();
                            kept.attrs.clear();
                            kept.fields.iter_mut().for_each(|f| f.attrs.clear());
                            let text = format!("{}{}", shown(&variant.attrs), line(&kept));
                            let text = format!("enum {}: {text}", item.ident);
                            self.say(module, &item.ident.to_string(), text);
                        }
                    }
                }
                Item::Trait(item) if !is_test(&item.attrs) => {
                    self.declared.insert(item.ident.to_string());
                    if is_public(&item.vis) {
                        let mut header = item.clone();
                        header.attrs.clear();
                        header.items.clear();
                        let header = line(&header);
                        let text = header.trim_end_matches(['{', '}']).trim().to_string();
                        self.item(module, &item.ident, &item.attrs, text);
                        for held in &item.items {
                            let text = format!("trait {}: {}", item.ident, of_trait(held));
                            self.say(module, &item.ident.to_string(), text);
                        }
                    }
                }
                Item::Fn(item) if is_public(&item.vis) && !is_test(&item.attrs) => {
                    let text = format!("pub {}", signature(&item.sig));
                    self.item(module, &item.sig.ident, &item.attrs, text);
                }
                Item::Type(item) if is_public(&item.vis) => {
                    let mut kept = item.clone();
                    kept.attrs.clear();
                    let text = line(&kept).trim_end_matches(';').to_string();
                    self.item(module, &item.ident, &item.attrs, text);
                }
                Item::Const(item) if is_public(&item.vis) => {
                    let text = format!("pub const {}: {}", item.ident, line(&item.ty));
                    self.item(module, &item.ident, &item.attrs, text);
                }
                Item::Impl(item) if !is_test(&item.attrs) => self.implementation(module, item),
                _ => {}
            }
        }
    }

    /// The public fields of a struct.
    fn fields(&mut self, module: &str, name: &syn::Ident, fields: &Fields) {
        for field in fields.iter().filter(|field| is_public(&field.vis)) {
            let Field { ident, ty, .. } = field;
            let of = ident
                .as_ref()
                .map_or_else(String::new, |name| format!("{name}: "));
            let text = format!("struct {name}: {of}{}", line(ty));
            self.say(module, &name.to_string(), text);
        }
    }

    fn implementation(&mut self, module: &str, item: &ItemImpl) {
        let mut header = item.clone();
        header.attrs.clear();
        header.items.clear();
        let header = line(&header)
            .trim_end_matches(['{', '}'])
            .trim()
            .to_string();
        let about = match &*item.self_ty {
            Type::Path(path) => last_name(&path.path),
            _ => String::new(),
        };
        let texts = match &item.trait_ {
            Some(_) => vec![header],
            None => item
                .items
                .iter()
                .filter_map(public_in_impl)
                .map(|text| format!("{header}: {text}"))
                .collect(),
        };
        let of_trait = item
            .trait_
            .as_ref()
            .map_or_else(Vec::new, |(_, path, _)| names(path));
        for text in texts {
            self.lines.push(Line {
                module: module.to_string(),
                about: about.clone(),
                of_trait: of_trait.clone(),
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
                true => known(&line.about) && line.of_trait.iter().all(|name| known(name)),
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

/// An item of a trait, as text.
fn of_trait(item: &TraitItem) -> String {
    let default = |has: bool| if has { " (has a default)" } else { "" };
    match item {
        TraitItem::Fn(f) => {
            let has = default(f.default.is_some());
            format!("{}{}{has}", shown(&f.attrs), signature(&f.sig))
        }
        TraitItem::Const(c) => {
            let has = default(c.default.is_some());
            format!("const {}: {}{has}", c.ident, line(&c.ty))
        }
        TraitItem::Type(t) => {
            let mut kept = t.clone();
            kept.attrs.clear();
            line(&kept).trim_end_matches(';').to_string()
        }
        other => line(other),
    }
}

/// A public item of an `impl` block, as text.
fn public_in_impl(item: &ImplItem) -> Option<String> {
    match item {
        ImplItem::Fn(f) if is_public(&f.vis) && !is_test(&f.attrs) => {
            Some(format!("{}pub {}", shown(&f.attrs), signature(&f.sig)))
        }
        ImplItem::Const(c) if is_public(&c.vis) => {
            Some(format!("pub const {}: {}", c.ident, line(&c.ty)))
        }
        _ => None,
    }
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
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src");
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    files.sort();
    let mut surface = Surface::new("lib");
    for file in &files {
        let module = file.strip_prefix(&source).unwrap().with_extension("");
        let module: Vec<_> = module.iter().map(|part| part.to_str().unwrap()).collect();
        let module = module.join("/");
        let module = module.strip_suffix("/mod").unwrap_or(&module);
        let text = std::fs::read_to_string(file).unwrap();
        surface.items(module, &syn::parse_file(&text).unwrap().items);
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
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/public_api.txt");
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
