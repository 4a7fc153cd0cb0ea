//! `coremix explain`

use crate::arguments::Explain;
use crate::failure::Result;
use crate::messages::{item, say, short};
use crate::rows;
use coremix::families::{Family, ProductMixture};
use coremix::{BoxedMixture, Float, Mixture, Save};
use coremix_files::column_texts;
use serde_json::{Value, json};

/// A column that sets a cluster apart, and how far.
struct Apart {
    column: usize,
    /// In nats, or in standard deviations.
    by: f64,
    mean: f64,
    /// The mean of the whole mixture, or the share of the likeliest category.
    other: f64,
    is_category: bool,
}

pub(crate) fn run(explain: &Explain) -> Result<()> {
    let info = rows::model(&explain.model)?;
    let (clusters, in_nats) = match &*info.number {
        "f64" => of_model(&*<BoxedMixture<f64> as Save>::load(&explain.model)?),
        _ => of_model(&*<BoxedMixture<f32> as Save>::load(&explain.model)?),
    };
    let names = rows::column_names(&info).filter(|names| names.len() == info.columns);
    let name = |column: usize| match &names {
        Some(names) => names[column].clone(),
        None => format!("column {column}"),
    };
    let texts = column_texts(&info);
    let value = |apart: &Apart| {
        let texts = texts.get(&name(apart.column));
        let text = texts.and_then(|texts| texts.get(apart.mean as usize));
        text.filter(|_| apart.is_category).cloned()
    };
    let top = explain.top.min(info.columns);
    if explain.json {
        let of = |(cluster, all): (usize, &Vec<Apart>)| {
            let all = all[..top].iter().map(|apart| {
                let mean = value(apart).map_or(json!(apart.mean), Value::from);
                let (by, other) = match (in_nats, apart.is_category) {
                    (true, true) => ("divergence", "share"),
                    (true, false) => ("divergence", "overall"),
                    (false, _) => ("difference", "overall"),
                };
                json!({
                    "cluster": cluster, "column": name(apart.column), by: apart.by,
                    "mean": mean, other: apart.other,
                })
            });
            all.collect::<Vec<_>>()
        };
        let all: Vec<Value> = clusters.iter().enumerate().flat_map(of).collect();
        return say(&json!(all).to_string());
    }
    for (cluster, all) in clusters.iter().enumerate() {
        let all = all[..top].iter().map(|apart| {
            let column = name(apart.column);
            let own = value(apart).unwrap_or_else(|| short(apart.mean));
            let other = if apart.is_category {
                format!("share {:.2}", apart.other)
            } else {
                format!("overall {}", short(apart.other))
            };
            let by = if in_nats {
                format!("{:.2} nats", apart.by)
            } else {
                format!("{:+.1} deviations", apart.by)
            };
            format!("{column} {own} ({other}, {by})")
        });
        item(
            &format!("cluster {cluster}"),
            all.collect::<Vec<_>>().join(", "),
        )?;
    }
    Ok(())
}

/// The columns of each cluster, the one that sets it apart most first, and whether they are told apart in nats.
fn of_model<F: Float>(model: &dyn Mixture<F>) -> (Vec<Vec<Apart>>, bool) {
    let means = model.means().mapv(F::to_f64);
    let shares = model.proportions();
    let variances = model.variances();
    let table = match Family::of(model) {
        Some(Family::Product(table)) => Some(table),
        _ => None,
    };
    let nats = table.map(ProductMixture::explain);
    let mut clusters: Vec<Vec<Apart>> = means.outer_iter().map(|_| Vec::new()).collect();
    for (column, own) in means.columns().into_iter().enumerate() {
        let overall = own.dot(&shares);
        let inner = variances.column(column);
        let spread = own.iter().zip(&inner).zip(&shares);
        let spread = spread.map(|((mean, v), share)| share * (v + (mean - overall).powi(2)));
        let deviation = spread.sum::<f64>().sqrt();
        let probabilities = table.and_then(|table| table.probabilities(column).ok());
        for (cluster, (all, mean)) in clusters.iter_mut().zip(own).enumerate() {
            let likeliest = probabilities.as_ref().map(|all| {
                let own = all.row(cluster);
                own.fold(0.0, |most: f64, share| most.max(*share))
            });
            let by = match &nats {
                Some(nats) => nats[[cluster, column]],
                // A column of one value sets nothing apart.
                None if deviation > 0.0 => (mean - overall) / deviation,
                None => 0.0,
            };
            all.push(Apart {
                column,
                by,
                mean: *mean,
                other: likeliest.unwrap_or(overall),
                is_category: likeliest.is_some(),
            });
        }
    }
    for all in &mut clusters {
        all.sort_by(|one, other| other.by.abs().total_cmp(&one.by.abs()));
    }
    (clusters, nats.is_some())
}
