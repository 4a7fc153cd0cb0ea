//! scratch
use coremix::prelude::*;
use coremix::algorithms;
use coremix::Element;
use ndarray::Array2;
use ndarray_npy::{read_npy, ReadableElement};
use std::time::Instant;
fn go<T: Element + ReadableElement>(set: &str, k: usize, np: usize, g: usize, r: usize, m: usize, seeds: u64, reference: f64, which: &str) {
    let x: Array2<T> = read_npy(format!("../shared/data/{set}.npy")).unwrap();
    for var in [false, true] {
        if which == "vc" && var || which == "var" && !var { continue; }
        let (mut secs, mut errs) = (vec![], vec![]);
        let mut line = String::new();
        for seed in 1..=seeds {
            let t0 = Instant::now();
            let data = Dense::new(x.view()).unwrap();
            let check = t0.elapsed();
            let e = Neighborhood::new(g, g).random(r);
            let fit = if var {
                algorithms::var_gmm_s(k, g, g).seeder(AfkMc2::new(m)).e_step(e).seed(seed).build().unwrap().fit(&data).unwrap()
            } else {
                algorithms::vc_gmm(k, np, g, g).seeder(AfkMc2::new(m)).e_step(e).seed(seed).build().unwrap().fit(&data).unwrap()
            };
            let all = t0.elapsed();
            secs.push(all.as_secs_f64());
            let t = &fit.report.timings;
            let it = fit.report.iterations;
            line = format!("check {:.1} coreset {:.1} seed {:.1} search {:.1} upd {:.1} rest {:.1} | it {} evals/pt/it {:.1} ns/pt/it {:.0}", check.as_secs_f64()*1e3, t.coreset.as_secs_f64()*1e3, t.seeding.as_secs_f64()*1e3, t.search.as_secs_f64()*1e3, t.update.as_secs_f64()*1e3,
              (all - check - t.coreset - t.seeding - t.search - t.update).as_secs_f64()*1e3, it, fit.report.evaluations.search as f64 / (it+1) as f64 / fit.labels.len() as f64, t.search.as_secs_f64()*1e9/(it+1) as f64/fit.labels.len() as f64);
            if reference > 0.0 { errs.push(100.0*(fit.model.quantization_error(&data).unwrap()/reference-1.0)); }
        }
        secs.sort_by(f64::total_cmp);
        let n = errs.len() as f64; let mean = errs.iter().sum::<f64>()/n; let sd = (errs.iter().map(|e| (e-mean).powi(2)).sum::<f64>()/(n-1.0)/n).sqrt();
        println!("{set} g{g}+{r} m{m} {} med {:.4} s  err {:+.2} ({:.2}) | {line}", if var {"var"} else {"vc "}, secs[secs.len()/2], mean, sd);
    }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (seeds, set, which) = (a[1].parse::<u64>().unwrap(), a[2].as_str(), a.get(3).map_or("", |s| s.as_str()));
    let er = a.get(4).is_none();
    let z = |x: f64| if er { x } else { 0.0 };
    if set == "kdd" || set == "all" { go::<f32>("kdd04bio", 500, 8192, 5, 0, 2, seeds, z(1.116946e11), which); }
    if set == "kdd20" || set == "all" { go::<f32>("kdd04bio", 500, 8192, 5, 0, 20, seeds, z(1.116946e11), which); }
    if set == "song" || set == "all" { go::<f32>("song", 1000, 16384, 5, 0, 2, seeds, z(2.495159e11), which); }
    if set == "mnist" || set == "all" { go::<u8>("mnist_u8", 500, 8192, 5, 0, 2, seeds, z(1.020308e11), which); }
    if set == "cod5" || set == "all" { go::<f32>("cod_rna", 500, 32768, 5, 0, 20, seeds, z(1.157249e6), which); }
    if set == "cod3" || set == "all" { go::<f32>("cod_rna", 500, 32768, 3, 1, 20, seeds, z(1.157249e6), which); }
}
