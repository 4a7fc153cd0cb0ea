//! Models in the formats of serde: a few readable fields, and the bytes of the file, in which nothing is lost.

use super::{ModelInfo, Save};
use crate::base::float::Float;
use crate::m_step::{DirichletProcessMixture, GaussianMixture};
use crate::model::Mixture;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde::de::{Error as _, Visitor};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// What is written.
#[derive(PartialEq, Serialize, Deserialize)]
struct Saved {
    family: String,
    number_type: String,
    components: usize,
    columns: usize,
    /// The bytes of the file, in Base64 where the format is text.
    model: Bytes,
}

impl Saved {
    fn of(bytes: Vec<u8>) -> crate::Result<Self> {
        let info = ModelInfo::read_from(&bytes[..])?;
        Ok(Self {
            family: info.family,
            number_type: info.number,
            components: info.components,
            columns: info.columns,
            model: Bytes(bytes),
        })
    }
}

#[derive(PartialEq)]
struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.serialize_str(&BASE64_STANDARD.encode(&self.0)),
            false => serializer.serialize_bytes(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.is_human_readable() {
            true => deserializer.deserialize_str(BytesOrText),
            false => deserializer.deserialize_byte_buf(BytesOrText),
        }
    }
}

struct BytesOrText;

impl Visitor<'_> for BytesOrText {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a saved model, or these in Base64")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Bytes, E> {
        BASE64_STANDARD.decode(text).map(Bytes).map_err(E::custom)
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Bytes, E> {
        Ok(Bytes(bytes.to_vec()))
    }

    fn visit_byte_buf<E: serde::de::Error>(self, bytes: Vec<u8>) -> Result<Bytes, E> {
        Ok(Bytes(bytes))
    }
}

fn write<S: Serializer>(bytes: crate::Result<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
    let saved = bytes.and_then(Saved::of);
    saved.map_err(S::Error::custom)?.serialize(serializer)
}

fn read<'de, M: Save, D: Deserializer<'de>>(deserializer: D) -> Result<M, D::Error> {
    let saved = Saved::deserialize(deserializer)?;
    let model = M::from_bytes(&saved.model.0).map_err(D::Error::custom)?;
    match Saved::of(saved.model.0.clone()).is_ok_and(|own| own == saved) {
        true => Ok(model),
        false => Err(D::Error::custom("the fields must be those of the model")),
    }
}

macro_rules! families {
    ($($model:ident),+) => {$(
        impl<F: Float> Serialize for $model<F> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                write(self.to_bytes(&[]), serializer)
            }
        }

        impl<'de, F: Float> Deserialize<'de> for $model<F> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                read(deserializer)
            }
        }
    )+};
}
families!(GaussianMixture, DirichletProcessMixture);

impl<F: Float> Serialize for dyn Mixture<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write(self.saved(&[]), serializer)
    }
}

impl<'de, F: Float> Deserialize<'de> for Box<dyn Mixture<F>> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer)
    }
}
