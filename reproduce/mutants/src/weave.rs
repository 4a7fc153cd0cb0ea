//! Writes the mutants into the sources.

use proc_macro2::{Ident, Span};
use quote::{ToTokens, quote};
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::visit_mut::{self, VisitMut};
use syn::{BinOp, Expr, parse_quote};

/// Weaves the files of a tree, and lists the mutants: a number, a place, what it was and what it is, by tabs.
///
/// `without` in the environment has numbers that are left out, because they do not compile.
pub(crate) fn files(tree: &Path, list: &Path, files: &[&str]) -> Result<(), Box<dyn Error>> {
    let without = std::env::var("without").unwrap_or_default();
    let without: Vec<u32> = without
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let (mut listed, mut next) = (String::new(), 1);
    for name in files {
        let path = tree.join(name);
        let mut file = syn::parse_file(&std::fs::read_to_string(&path)?)?;
        let mut weaver = Weaver {
            next,
            without: &without,
            found: Vec::new(),
        };
        weaver.visit_file_mut(&mut file);
        next = weaver.next;
        for (number, line, from, to) in weaver.found {
            writeln!(listed, "{number}\t{name}:{line}\t{from}\t{to}")?;
        }
        std::fs::write(&path, prettyplease::unparse(&file))?;
    }
    std::fs::write(list, listed)?;
    let root = tree.join("src/lib.rs");
    let text = std::fs::read_to_string(&root)?.replace("#![forbid(unsafe_code)]", "");
    std::fs::write(root, text + SWITCH)?;
    Ok(())
}

/// Which mutant is on: read once, before anything else runs, so that loops are compiled as if it were constant.
const SWITCH: &str = r#"
#[doc(hidden)]
#[allow(warnings)]
pub mod mutant {
    static mut CHOSEN: u32 = 0;

    #[used]
    #[unsafe(link_section = ".init_array")]
    static READ: extern "C" fn() = {
        extern "C" fn read() {
            if let Some(number) = std::env::var("MUTANT").ok().and_then(|number| number.parse().ok()) {
                unsafe { CHOSEN = number }
            }
        }
        read
    };

    #[inline(always)]
    pub fn is(number: u32) -> bool {
        unsafe { CHOSEN == number }
    }
}
"#;

struct Weaver<'a> {
    next: u32,
    without: &'a [u32],
    found: Vec<(u32, usize, String, String)>,
}

impl Weaver<'_> {
    /// A new mutant, unless it is left out.
    fn new_mutant(&mut self, at: Span, from: &impl ToTokens, to: &impl ToTokens) -> Option<u32> {
        let number = self.next;
        self.next += 1;
        if self.without.contains(&number) {
            return None;
        }
        self.found
            .push((number, at.start().line, text(from), text(to)));
        Some(number)
    }
}

/// Tokens on one line.
fn text(tokens: &impl ToTokens) -> String {
    let text = tokens.to_token_stream().to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether something in an expression binds names, so that it cannot stand in a branch.
fn binds(expression: &Expr) -> bool {
    struct Lets(bool);
    impl Visit<'_> for Lets {
        fn visit_expr_let(&mut self, _: &syn::ExprLet) {
            self.0 = true;
        }
        fn visit_expr_closure(&mut self, _: &syn::ExprClosure) {}
        fn visit_expr_block(&mut self, _: &syn::ExprBlock) {}
        fn visit_expr_if(&mut self, _: &syn::ExprIf) {}
        fn visit_expr_match(&mut self, _: &syn::ExprMatch) {}
    }
    let mut lets = Lets(false);
    lets.visit_expr(expression);
    lets.0
}

fn other(op: &BinOp) -> Option<BinOp> {
    Some(match op {
        BinOp::Add(_) => parse_quote!(-),
        BinOp::Sub(_) => parse_quote!(+),
        BinOp::Mul(_) => parse_quote!(/),
        BinOp::Div(_) => parse_quote!(*),
        BinOp::And(_) => parse_quote!(||),
        BinOp::Or(_) => parse_quote!(&&),
        BinOp::Eq(_) => parse_quote!(!=),
        BinOp::Ne(_) => parse_quote!(==),
        BinOp::Lt(_) => parse_quote!(<=),
        BinOp::Le(_) => parse_quote!(<),
        BinOp::Gt(_) => parse_quote!(>=),
        BinOp::Ge(_) => parse_quote!(>),
        BinOp::AddAssign(_) => parse_quote!(-=),
        BinOp::SubAssign(_) => parse_quote!(+=),
        BinOp::MulAssign(_) => parse_quote!(/=),
        BinOp::DivAssign(_) => parse_quote!(*=),
        _ => return None,
    })
}

fn other_method(name: &str) -> Option<&'static str> {
    Some(match name {
        "min" => "max",
        "max" => "min",
        "saturating_sub" => "wrapping_add",
        "ceil" => "floor",
        "floor" => "ceil",
        "is_some" => "is_none",
        "is_none" => "is_some",
        "any" => "all",
        "all" => "any",
        _ => return None,
    })
}

fn of_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|a| {
        let text = a.to_token_stream().to_string();
        text.contains("cfg (test)") || text.contains("# [test]")
    })
}

impl VisitMut for Weaver<'_> {
    // Constants, tests, patterns and types stay.
    fn visit_item_const_mut(&mut self, _: &mut syn::ItemConst) {}
    fn visit_item_static_mut(&mut self, _: &mut syn::ItemStatic) {}
    fn visit_impl_item_const_mut(&mut self, _: &mut syn::ImplItemConst) {}
    fn visit_trait_item_const_mut(&mut self, _: &mut syn::TraitItemConst) {}
    fn visit_pat_mut(&mut self, _: &mut syn::Pat) {}
    fn visit_type_mut(&mut self, _: &mut syn::Type) {}
    fn visit_path_mut(&mut self, _: &mut syn::Path) {}
    fn visit_expr_const_mut(&mut self, _: &mut syn::ExprConst) {}

    fn visit_item_mod_mut(&mut self, item: &mut syn::ItemMod) {
        if !of_tests(&item.attrs) {
            visit_mut::visit_item_mod_mut(self, item);
        }
    }

    fn visit_item_fn_mut(&mut self, item: &mut syn::ItemFn) {
        if item.sig.constness.is_none() && !of_tests(&item.attrs) {
            visit_mut::visit_item_fn_mut(self, item);
        }
    }

    fn visit_impl_item_fn_mut(&mut self, item: &mut syn::ImplItemFn) {
        if item.sig.constness.is_none() && !of_tests(&item.attrs) {
            visit_mut::visit_impl_item_fn_mut(self, item);
        }
    }

    /// What is compiled for the widest vectors is an expression; other macros stay.
    fn visit_macro_mut(&mut self, item: &mut syn::Macro) {
        if item.path.is_ident("vectorised")
            && let Ok(mut body) = item.parse_body::<Expr>()
        {
            self.visit_expr_mut(&mut body);
            item.tokens = body.to_token_stream();
        }
    }

    /// The length of `[0; n + 1]` is a constant.
    fn visit_expr_repeat_mut(&mut self, expression: &mut syn::ExprRepeat) {
        self.visit_expr_mut(&mut expression.expr);
    }

    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        let plain = expression.clone();
        visit_mut::visit_expr_mut(self, expression);
        match (&plain, &mut *expression) {
            (Expr::Binary(old), Expr::Binary(new)) if !binds(&plain) => {
                let Some(op) = other(&old.op) else { return };
                let Some(number) = self.new_mutant(old.op.span(), &plain, &op) else {
                    return;
                };
                let (left, right) = (&old.left, &old.right);
                let woven =
                    quote!((if crate::mutant::is(#number) { #left #op #right } else { #new }));
                *expression = syn::parse2(woven).expect("an expression");
            }
            (Expr::MethodCall(old), Expr::MethodCall(new)) => {
                let Some(name) = other_method(&old.method.to_string()) else {
                    return;
                };
                let to = Ident::new(name, old.method.span());
                let Some(number) = self.new_mutant(old.method.span(), &plain, &to) else {
                    return;
                };
                let mut call = old.clone();
                call.method = to;
                let woven = quote!((if crate::mutant::is(#number) { #call } else { #new }));
                *expression = syn::parse2(woven).expect("an expression");
            }
            _ => {}
        }
    }
}
