//! The sizes of a model read off the shapes of its parameters, so that a file that does not fit names the keys that
//! differ, whoever wrote it.

use crate::snapshot::{Spec, Tensor};
use ocelli_models::{Model, Shapes};

/// What the vocabulary is called in messages.
const VOCABULARY: &str = "the vocabulary (data_config.vocab_path, data_config.loss)";

/// The sizes that differ between the model, whose parameters are `ours`, and a file, a line each; `None` if none does.
pub(super) fn differences(model: &dyn Model, ours: &[Spec], file: &[Tensor<'_>]) -> Option<String> {
    let here: Shapes<'_> = ours.iter().map(|s| (s.name.as_str(), &s.shape[..])).collect();
    let there: Shapes<'_> = file.iter().map(|t| (t.name.as_str(), &t.shape[..])).collect();
    let there = model.told(&there);
    let lines: Vec<String> = model
        .told(&here)
        .into_iter()
        .filter_map(|(name, here)| Some((name, here, there.iter().find(|(other, _)| *other == name)?.1)))
        .filter(|(_, here, there)| here != there)
        .map(|(name, here, there)| format!("\n  {} is {here} here, {there} in the file", key(name)))
        .collect();
    (!lines.is_empty())
        .then(|| format!("the model in it has other sizes:{}\nSet them as in the file", lines.concat()))
}

/// The key that sets a size.
fn key(name: &str) -> String {
    if name == "vocab_size" { VOCABULARY.into() } else { format!("model_config.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings;
    use crate::snapshot::DType;
    use ocelli_config::{Architecture, ModelConfig};

    fn model(architecture: Architecture) -> Box<dyn Model> {
        settings::model(&ModelConfig { architecture, n_embd: 24, n_head: 4, ..ModelConfig::default() }, 71)
    }

    fn spec(name: &str, shape: &[usize]) -> Spec {
        Spec { name: name.into(), dtype: DType::F32, shape: shape.to_vec() }
    }

    #[test]
    fn every_size_that_shapes_tell_is_named() {
        let of = |n: usize| {
            vec![
                spec("vision_encoder.cls_token", &[1, 1, 16 * n]),
                spec("vision_encoder.patch_embedding.conv.weight", &[16, 3, 4 * n, 4 * n]),
                spec("vision_encoder.pos_embedding", &[1, 10, 16]),
                spec("decoder.token_embedding_table.weight", &[70 + n, 32 * n]),
                spec("decoder.position_embedding_table.weight", &[100 * n, 32]),
                spec(&format!("vision_encoder.blocks.{n}.ln1.weight"), &[16]),
                spec(&format!("decoder.blocks.1{n}.ln1.weight"), &[16]),
            ]
        };
        let file = of(2);
        let tensors: Vec<Tensor<'_>> =
            file.iter().map(|s| Tensor::borrowed(s.name.clone(), s.dtype, &s.shape, &[])).collect();
        let model = model(Architecture::Seemore);
        assert_eq!(differences(&*model, &file, &tensors), None);
        assert_eq!(differences(&*model, &[spec("other", &[1])], &tensors), None);
        let text = differences(&*model, &of(1), &tensors).unwrap();
        for line in [
            "model_config.image_embed_dim is 16 here, 32 in the file",
            "model_config.patch_size is 4 here, 8 in the file",
            "model_config.img_size is 12 here, 24 in the file",
            "data_config.loss) is 71 here, 72 in the file",
            "model_config.n_embd is 32 here, 64 in the file",
            "model_config.max_positions is 100 here, 200 in the file",
            "model_config.num_blks is 2 here, 3 in the file",
            "model_config.n_layer is 12 here, 13 in the file",
        ] {
            assert!(text.contains(line), "{line} not in {text}");
        }
    }

    #[test]
    fn each_architecture_has_names_of_its_own() {
        let of = |n: usize| {
            vec![
                spec("model.vision_model.embeddings.patch_embedding.weight", &[16 * n, 3, 4, 4]),
                spec("model.vision_model.embeddings.position_embedding.weight", &[9 * n * n, 16]),
                spec("model.connector.modality_projection.proj.weight", &[24, 64 * n]),
                spec("model.text_model.embed_tokens.weight", &[71, 24]),
                spec("model.text_model.layers.0.self_attn.k_proj.weight", &[6 * n, 24]),
                spec(&format!("model.text_model.layers.{n}.mlp.gate_proj.weight"), &[32, 24]),
            ]
        };
        let file = of(2);
        let tensors: Vec<Tensor<'_>> =
            file.iter().map(|s| Tensor::borrowed(s.name.clone(), s.dtype, &s.shape, &[])).collect();
        let text = differences(&*model(Architecture::Smol), &of(1), &tensors).unwrap();
        for line in [
            "model_config.image_embed_dim is 16 here, 32 in the file",
            "model_config.img_size is 12 here, 24 in the file",
            "model_config.n_embd / n_head * n_kv_head is 6 here, 12 in the file",
            "model_config.n_layer is 2 here, 3 in the file",
        ] {
            assert!(text.contains(line), "{line} not in {text}");
        }
        assert_eq!(differences(&*model(Architecture::Seemore), &of(1), &tensors), None);
    }

    #[test]
    fn nonsense_in_a_file_is_no_size() {
        let shapes: [&[usize]; 3] = [&[], &[1, 0, usize::MAX], &[usize::MAX, usize::MAX, usize::MAX]];
        for shape in shapes {
            let tensors = [
                "vision_encoder.pos_embedding",
                "vision_encoder.patch_embedding.conv.weight",
                "decoder.blocks.x.y",
            ]
            .map(|name| Tensor::borrowed(name, DType::F32, shape, &[]));
            let ours = [spec("vision_encoder.cls_token", &[1, 1, 4])];
            let _ = differences(&*model(Architecture::Seemore), &ours, &tensors);
            let names = ["embeddings.patch_embedding", "embeddings.position_embedding", "encoder.layers.x.y"]
                .map(|name| format!("model.vision_model.{name}.weight"));
            let proj = "model.connector.modality_projection.proj.weight".to_string();
            let names = names.into_iter().chain([proj]);
            let tensors: Vec<Tensor<'_>> =
                names.map(|name| Tensor::borrowed(name, DType::F32, shape, &[])).collect();
            let _ = differences(&*model(Architecture::Smol), &ours, &tensors);
        }
    }
}
