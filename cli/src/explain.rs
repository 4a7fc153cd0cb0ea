//! `coremix explain`

use crate::arguments::Explain;
use crate::failure::Result;
use crate::fit::SIZES;
use crate::messages::{item, say, short};
use crate::rows;
use coremix::families::{Family, ProductMixture};
use coremix::{BoxedMixture, Float, Mixture, Save};
use coremix_files::column_texts;
use serde_json::{Value, json};

/// A column that sets a cluster apart, and how far.
struct Contrast {
    column: usize,
    /// In nats, or in standard deviations.
    by: f64,
    mean: f64,
    /// The mean of all rows, or the share of the likeliest category.
    other: f64,
    is_category: bool,
}

pub(crate) fn run(explain: &Explain) -> Result<()> {
    let info = rows::model(&explain.model)?;
    let sizes = info.note(SIZES).and_then(shares);
    let Explained {
        clusters,
        in_nats,
        count_alike,
    } = match &*info.number {
        "f64" => of_model(&*<BoxedMixture<f64> as Save>::load(&explain.model)?, sizes),
        _ => of_model(&*<BoxedMixture<f32> as Save>::load(&explain.model)?, sizes),
    };
    let names = rows::column_names(&info).filter(|names| names.len() == info.columns);
    let name = |column: usize| match &names {
        Some(names) => names[column].clone(),
        None => format!("column {column}"),
    };
    let texts = column_texts(&info);
    let value = |contrast: &Contrast| {
        let texts = texts.get(&name(contrast.column));
        let text = texts.and_then(|texts| texts.get(contrast.mean as usize));
        text.filter(|_| contrast.is_category).cloned()
    };
    let top = explain.top.min(info.columns);
    if explain.json {
        let of_cluster = |(cluster, contrasts): (usize, &Vec<Contrast>)| {
            let in_json = contrasts[..top].iter().map(|contrast| {
                let mean = value(contrast).map_or(json!(contrast.mean), Value::from);
                let (by, other) = match (in_nats, contrast.is_category) {
                    (true, true) => ("divergence", "share"),
                    (true, false) => ("divergence", "overall"),
                    (false, _) => ("difference", "overall"),
                };
                json!({
                    "cluster": cluster, "column": name(contrast.column), by: contrast.by,
                    "mean": mean, other: contrast.other,
                })
            });
            in_json.collect::<Vec<_>>()
        };
        let in_json: Vec<Value> = clusters.iter().enumerate().flat_map(of_cluster).collect();
        return say(&json!(in_json).to_string());
    }
    for (cluster, contrasts) in clusters.iter().enumerate() {
        let in_words = contrasts[..top].iter().map(|contrast| {
            let column = name(contrast.column);
            let mean = value(contrast).unwrap_or_else(|| short(contrast.mean));
            let other = if contrast.is_category {
                format!("share {:.2}", contrast.other)
            } else {
                format!("overall {}", short(contrast.other))
            };
            let by = if in_nats {
                format!("{:.2} nats", contrast.by)
            } else {
                format!("{:+.1} deviations", contrast.by)
            };
            format!("{column} {mean} ({other}, {by})")
        });
        item(
            &format!("cluster {cluster}"),
            in_words.collect::<Vec<_>>().join(", "),
        )?;
    }
    if count_alike {
        item(
            "overall",
            "each cluster counts alike, for the model's file does not say their sizes",
        )?;
    }
    Ok(())
}

/// The columns that set the clusters of a model apart.
struct Explained {
    /// The columns of each cluster, the one that sets it apart most first.
    clusters: Vec<Vec<Contrast>>,
    in_nats: bool,
    /// The shares of the clusters in all rows are not known.
    count_alike: bool,
}

/// The shares of clusters of these sizes; `None` where they are no numbers.
fn shares(sizes: &str) -> Option<Vec<f64>> {
    let sizes = sizes.split(' ').map(str::parse::<f64>);
    let sizes = sizes.collect::<std::result::Result<Vec<_>, _>>().ok()?;
    let total: f64 = sizes.iter().sum();
    let sound = total > 0.0 && sizes.iter().all(|size| (0.0..=total).contains(size));
    sound.then(|| sizes.iter().map(|size| size / total).collect())
}

/// Explains a model whose clusters have these shares in all rows, if they are known: k-means has no proportions that say them.
fn of_model<F: Float>(model: &dyn Mixture<F>, sizes: Option<Vec<f64>>) -> Explained {
    let means = model.means().mapv(F::to_f64);
    let proportions = model.proportions();
    let k = proportions.len();
    let is_equal = k > 1 && proportions.iter().all(|share| *share == proportions[0]);
    let sizes = sizes.filter(|sizes| is_equal && sizes.len() == k);
    let count_alike = is_equal && sizes.is_none();
    let shares = sizes.map_or(proportions, Into::into);
    let variances = model.column_variances();
    let table = match Family::of(model) {
        Some(Family::Product(table)) => Some(table),
        _ => None,
    };
    let nats = table.map(ProductMixture::explain);
    let mut clusters: Vec<Vec<Contrast>> = means.outer_iter().map(|_| Vec::new()).collect();
    for (column, column_means) in means.columns().into_iter().enumerate() {
        let overall = column_means.dot(&shares);
        let inner = variances.column(column);
        let variance: f64 = column_means
            .iter()
            .zip(&inner)
            .zip(&shares)
            .map(|((mean, v), share)| share * (v + (mean - overall).powi(2)))
            .sum();
        let deviation = variance.sqrt();
        let probabilities = table.and_then(|table| table.probabilities(column).ok());
        for (cluster, (contrasts, mean)) in clusters.iter_mut().zip(column_means).enumerate() {
            let likeliest = probabilities.as_ref().map(|by_cluster| {
                let of_categories = by_cluster.row(cluster);
                of_categories.fold(0.0, |most: f64, share| most.max(*share))
            });
            let by = match &nats {
                Some(nats) => nats[[cluster, column]],
                // A column of one value sets nothing apart.
                None if deviation > 0.0 => (mean - overall) / deviation,
                None => 0.0,
            };
            contrasts.push(Contrast {
                column,
                by,
                mean: *mean,
                other: likeliest.unwrap_or(overall),
                is_category: likeliest.is_some(),
            });
        }
    }
    for contrasts in &mut clusters {
        contrasts.sort_by(|one, other| other.by.abs().total_cmp(&one.by.abs()));
    }
    Explained {
        clusters,
        in_nats: nats.is_some(),
        count_alike,
    }
}
