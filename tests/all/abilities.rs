//! The guide's table of abilities: each algorithm has an ability, or an error says what does.

use crate::common::{Stored, blobs};
use coremix::coreset::OnePass;
use coremix::data::{Blocks, Sparse};
use coremix::families::Column;
use coremix::prelude::*;
use coremix::{Algorithm, BoxedMixture, Checkpoint, Metric};
use ndarray::{Array2, ArrayView2, s};
use std::path::Path;

const N: usize = 300;
const K: usize = 3;

/// Abilities of a fit, as the guide names them.
const ABILITIES: [&str; 14] = [
    "weights",
    "missing values",
    "sparse rows",
    "rows of a file",
    "blocks, once",
    "cosine",
    "cosine, a concentration each",
    "full covariances",
    "factors",
    "prior",
    "standardise",
    "counts, categories",
    "coreset",
    "checkpoint, start from a model",
];

/// Rows of three numbers, a count and a category.
fn rows() -> Array2<f64> {
    let mut x = blobs::<f64>(N, 5, K, 1);
    for mut row in x.outer_iter_mut() {
        row[3] = row[3].abs().round();
        row[4] = f64::from(row[0] > 0.0);
    }
    x
}

fn sparse(x: ArrayView2<'_, f64>) -> Sparse<'static, f64> {
    let mut starts = vec![0];
    let mut columns = Vec::new();
    let mut values = Vec::new();
    for row in x.outer_iter() {
        for (j, value) in row.indexed_iter().filter(|(_, x)| x.abs() > 1.0) {
            columns.push(j as u32);
            values.push(*value);
        }
        starts.push(columns.len());
    }
    Sparse::new(x.ncols(), starts, columns, values).unwrap()
}

/// A model answers for its rows, one at a time and together, saved and loaded.
fn answers(what: &str, model: &BoxedMixture<f64>, data: &dyn Data<f64>, x: ArrayView2<'_, f64>) {
    let labels = model.predict(data).unwrap();
    let densities = model.log_densities(data).unwrap();
    assert!(
        densities.iter().all(|density| density.is_finite()),
        "{what}"
    );
    let shares = model.responsibilities(data).unwrap();
    for (label, shares) in labels.iter().zip(shares.outer_iter()) {
        let of_label = shares[*label as usize];
        assert!(
            shares.iter().all(|share| *share <= of_label + 1e-9),
            "{what}"
        );
        assert!((shares.sum() - 1.0).abs() < 1e-9, "{what}");
    }
    let back = BoxedMixture::from_bytes(&model.to_bytes(&[]).unwrap()).unwrap();
    assert_eq!(back.predict(data).unwrap(), labels, "{what}");
    let mut predictor = model.predictor().with_missing();
    for (row, label) in x.outer_iter().zip(&labels) {
        let (own, _) = predictor.predict(row.as_slice().unwrap()).unwrap();
        assert_eq!(own, *label, "{what}");
    }
}

/// A fit with an ability, whose model answers for the rows.
fn fitted(name: &'static str, ability: &str) -> Result<()> {
    let what = format!("{name}, {ability}");
    let x = rows();
    let numbers = x.slice(s![.., ..3]).to_owned();
    let algorithm = name.parse::<Algorithm>()?.clusters(K).seed(2);
    let fit = |algorithm: Algorithm, data: &dyn Data<f64>, x: &Array2<f64>| {
        let model = algorithm.boxed()?.fit(data)?.model;
        answers(&what, &model, data, x.view());
        Ok(model)
    };
    let dense = Dense::new(&numbers)?;
    let of_numbers = |algorithm| fit(algorithm, &dense, &numbers);
    match ability {
        "weights" => {
            let weights = (0..N).map(|n| [0.5, 3.0, 0.0, 1e-3][n % 4]);
            let data = Dense::owned(numbers.clone(), Some(weights.collect()))?;
            fit(algorithm, &data, &numbers)?;
        }
        "missing values" => {
            let mut x = numbers.clone();
            for n in (0..N).step_by(3) {
                x[[n, n % 2]] = f64::NAN;
            }
            fit(algorithm, &Dense::with_missing(&x)?, &x)?;
        }
        "sparse rows" => {
            let x = numbers.mapv(|x| if x.abs() > 1.0 { x } else { 0.0 });
            fit(algorithm, &sparse(numbers.view()), &x)?;
        }
        "rows of a file" => {
            let data = Blocks::new(Stored(numbers.clone()))?;
            let of_file = fit(algorithm.clone(), &data, &numbers)?;
            assert_eq!(of_file.means(), of_numbers(algorithm)?.means(), "{what}");
        }
        "blocks, once" => {
            let mut coreset = OnePass::new(3, 150, 1)?;
            for block in numbers.axis_chunks_iter(ndarray::Axis(0), 70) {
                coreset.push(block)?;
            }
            let (rows, weights) = coreset.finish()?;
            let model = algorithm
                .boxed()?
                .fit(&Dense::owned(rows, Some(weights.to_vec()))?)?;
            answers(&what, &model.model, &dense, numbers.view());
        }
        "cosine" => {
            of_numbers(algorithm.metric(Metric::Cosine))?;
        }
        "cosine, a concentration each" => {
            let each = algorithm.metric(Metric::Cosine);
            of_numbers(each.covariance(Covariance::Spherical))?;
        }
        "full covariances" => {
            of_numbers(algorithm.covariance(Covariance::Full))?;
        }
        "factors" => {
            of_numbers(algorithm.covariance(Covariance::Factors(1)))?;
        }
        "prior" => {
            of_numbers(algorithm.prior(Prior::weak().proportions(0.5)))?;
        }
        "standardise" => {
            let units = &numbers * &ndarray::array![1.0, 1e3, 1e-3];
            fit(algorithm.standardise(true), &Dense::new(&units)?, &units)?;
        }
        "counts, categories" => {
            let kinds = [
                vec![Column::Number; 3],
                vec![Column::Count, Column::Category(2)],
            ];
            fit(algorithm.columns(kinds.concat()), &Dense::new(&x)?, &x)?;
        }
        "coreset" => {
            of_numbers(algorithm.coreset(150))?;
        }
        "checkpoint, start from a model" => {
            let path = format!("coremix-abilities-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(path);
            let again = |path: &Path| {
                let checkpoint = Checkpoint::to(path).resume_if_there();
                of_numbers(algorithm.clone().checkpoint(&checkpoint))
            };
            let first = again(&path)?;
            let second = again(&path);
            std::fs::remove_file(&path).ok();
            assert_eq!(first.means(), second?.means(), "{what}");
            of_numbers(algorithm.clone().start_from(&first))?;
        }
        _ => unreachable!("{ability}"),
    }
    Ok(())
}

/// Whether an error says what has the ability, or what to leave out.
fn says_what_does(error: &str) -> bool {
    let words = [
        "is a setting of",
        "take ",
        "leave",
        "left out",
        "needs ",
        "keep ",
        "instead",
    ];
    words.iter().any(|word| error.contains(word))
}

#[test]
fn the_table_of_the_guide_is_true() {
    let mut lines = vec![format!(
        "| |{}|",
        Algorithm::NAMES.map(|name| format!("`{name}`")).join("|")
    )];
    lines.push(format!("|---|{}", ":-:|".repeat(Algorithm::NAMES.len())));
    let mut silent = Vec::new();
    for ability in ABILITIES {
        let cell = |name| match fitted(name, ability) {
            Ok(()) => "•",
            Err(error) => {
                let error = error.to_string();
                if !says_what_does(&error) {
                    silent.push(format!("{name}, {ability}: {error}"));
                }
                ""
            }
        };
        let cells = Algorithm::NAMES.map(cell);
        lines.push(format!("| {ability} |{}|", cells.join("|")));
    }
    assert!(
        silent.is_empty(),
        "errors that do not say what helps:\n{}",
        silent.join("\n")
    );
    let table = lines.join("\n") + "\n";
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide/src/names.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let start = text.find("| |`k-means`|").expect("the table of abilities");
    let end = start + text[start..].find("\n\n").expect("a blank line") + 1;
    if std::env::var_os("RENEW").is_some() {
        std::fs::write(&page, [&text[..start], &table, &text[end..]].concat()).unwrap();
    } else {
        assert_eq!(&text[start..end], table, "RENEW=1 writes the table anew");
    }
}
