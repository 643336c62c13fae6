//! The presets hold the numbers of the published recipe, and the built-in ones are what they say.

use ocelli_config::{
    Dataset, Loss, LrSchedule, Optimizer, PRESET_NAMES, Padding, Pixels, Request, Residual, Resolved, Switch,
    load,
};

fn preset(name: &str, overrides: &[&str]) -> Resolved {
    let overrides = overrides.iter().map(|text| (*text).to_owned()).collect();
    load(&Request { name: Some(name.into()), path: None, overrides }).unwrap()
}

#[test]
fn the_published_presets_hold_the_recipes_numbers() {
    for name in ["coco_train", "csv_train"] {
        let config = preset(name, &[]).config;
        let (model, data, trainer) = (&config.model, &config.data, &config.trainer);
        assert_eq!((model.num_blks, model.n_embd, model.n_head, model.n_layer), (3, 128, 8, 8));
        assert_eq!((model.img_size, model.patch_size, model.image_embed_dim), (96, 16, 512));
        assert_eq!((model.dropout, model.emb_dropout, model.blk_dropout), (0.1, 0.1, 0.1));
        assert_eq!((model.block_size, model.head_size, model.max_positions), (Some(32), Some(16), 1000));
        assert_eq!(model.residual, Residual::Published);
        assert_eq!(
            (data.image_col.as_deref(), data.caption_col.as_deref()),
            (Some("b64string_images"), Some("caption"))
        );
        assert_eq!((data.pixels, data.exif, data.alpha), (Pixels::Pillow, None, None));
        assert_eq!((data.pad_token.as_str(), data.train_split_ratio), ("<pad>", 0.9));
        assert_eq!(data.vocab_file(), Some("vocab.txt".as_ref()));
        assert_eq!(data.loss, Loss::Published);
        assert_eq!((trainer.epochs, trainer.eval_interval, trainer.eval_iters), (1, None, Some(40)));
        assert_eq!((trainer.eval_batch_size, trainer.log_interval, trainer.seed), (8, 10, 1337));
        assert_eq!((trainer.optimizer, trainer.lr_schedule), (Optimizer::Adam, LrSchedule::Constant));
        assert_eq!((trainer.beta1, trainer.beta2, trainer.eps), (0.9, 0.999, 1e-8));
        assert_eq!((trainer.weight_decay, trainer.clip_grad_norm, trainer.warmup_iters), (0.0, None, 0));
        assert!(
            trainer.use_amp == Switch::On && !trainer.compile && !trainer.cuda_graph && !trainer.use_wandb
        );
        assert_eq!((trainer.snapshot_dir.as_str(), trainer.snapshot_load_strategy), ("snapshots", None));
        assert_eq!((trainer.profile_results_dir.as_str(), trainer.profiler_mode), ("profile_results", None));
    }
}

#[test]
fn the_published_presets_differ_where_the_recipe_says() {
    let coco = preset("coco_train", &[]).config;
    assert_eq!((coco.data.dataset, coco.data.data_path.as_deref()), (Dataset::Coco, Some("RIW/small-coco")));
    assert_eq!((coco.data.padding, coco.data.max_seq_length), (Padding::MaxLength, Some(256)));
    assert_eq!((coco.trainer.lr, coco.trainer.train_batch_size, coco.trainer.max_iters), (2e-4, 64, None));
    assert!(coco.trainer.log_verbose && !coco.data.endless);

    let csv = preset("csv_train", &[]).config;
    assert_eq!((csv.data.dataset, csv.data.data_path.as_deref()), (Dataset::Csv, Some("images/inputs.csv")));
    assert_eq!((csv.data.padding, csv.data.max_seq_length), (Padding::Longest, None));
    assert_eq!((csv.trainer.lr, csv.trainer.train_batch_size, csv.trainer.max_iters), (1e-3, 16, Some(100)));
    assert!(!csv.trainer.log_verbose && csv.data.endless);
}

#[test]
fn every_kind_of_data_can_be_trained_on() {
    for name in ["coco_train", "csv_train", "shapes"] {
        preset(name, &[]).for_training().unwrap();
    }
}

#[test]
fn shapes_is_the_default_and_shapes_long_is_the_same_for_longer() {
    let shapes = load(&Request::default()).unwrap();
    assert_eq!(shapes.name, "shapes");
    assert_eq!(shapes.config.data.dataset, Dataset::Shapes);
    assert_eq!(shapes.config.data.train_samples, None);
    assert!(shapes.notices.is_empty(), "{:?}", shapes.notices);
    shapes.for_training().unwrap();

    let mut long = preset("shapes_long", &[]).config;
    assert!(long.trainer.max_iters > shapes.config.trainer.max_iters);
    long.trainer.max_iters = shapes.config.trainer.max_iters;
    assert_eq!(long, shapes.config);
}

/// Else a run that is killed has lost everything.
#[test]
fn presets_without_end_save_as_they_go() {
    for name in PRESET_NAMES {
        let config = preset(name, &[]).config;
        let endless = config.data.endless || config.data.dataset == Dataset::Shapes;
        let (interval, keep) = (config.trainer.snapshot_interval, config.trainer.keep_last);
        assert_eq!((interval.is_some(), keep.is_some()), (endless, endless), "{name}");
        assert!(interval <= config.trainer.max_iters || !endless, "{name}");
    }
    let own = preset("csv_train", &["trainer_config.snapshot_interval=null"]).notices;
    assert!(own[0].contains("trainer_config.snapshot_interval"), "{own:?}");
    let finite = ["trainer_config.snapshot_interval=null", "data_config.endless=false"];
    assert!(preset("csv_train", &finite).notices.is_empty());
    let tiny = preset("shapes", &["trainer_config.clip_grad_norm=1e-10"]).notices;
    assert_eq!(tiny, ["clip_grad_norm 1e-10 is below eps 1e-8: gradients that small hardly move a weight"]);
}

#[test]
fn notices_name_what_a_user_set_without_effect() {
    // A preset's own keys are none of the user's doing.
    assert!(preset("csv_train", &[]).notices.is_empty());
    let set = ["model_config.head_size=8", "trainer_config.tf32=false", "data_config.pinned_memory=False"];
    let notices = [
        "accepted, but without effect: model_config.head_size (a head's width is the model's width divided by n_head)",
    ];
    assert_eq!(preset("csv_train", &set).notices, notices);
    let gpu = "without effect on the CPU (for GPUs only): data_config.pinned_memory, trainer_config.tf32";
    assert_eq!(preset("csv_train", &set).cpu_notices, [gpu]);
    // The same in a file of the user's, but not in one that a snapshot keeps.
    let text = preset("csv_train", &set).to_yaml();
    let own = ocelli_config::load_text("mine.yaml", &text, &[]).unwrap();
    assert!(
        own.notices.len() == 1 && own.notices[0].contains("model_config.block_size"),
        "{:?}",
        own.notices
    );
    let gpu = gpu.replace("trainer_config.tf32", "trainer_config.cuda_graph, trainer_config.tf32");
    assert!(own.cpu_notices[0] == gpu && own.cpu_notices.len() == 2, "{:?}", own.cpu_notices);
    assert!(ocelli_config::load_stored("kept.yaml", &text, &[]).unwrap().notices.is_empty());
    let short = preset("shapes", &["trainer_config.max_iters=3"]).notices;
    assert_eq!(short, ["max_iters 3 ends within the 100 steps of warmup_iters: lr is never reached"]);
    assert!(ocelli_config::help("block_size").unwrap().contains("no effect: "));
}

#[test]
fn keys_of_other_datasets_are_said() {
    let drawn = preset("shapes", &["data_config.image_col=picture", "data_config.caption_col=text"]).notices;
    assert_eq!(
        drawn,
        [
            "without effect on dataset shapes: data_config.image_col, data_config.caption_col; to train on your own \
          files set data_config.dataset=csv"
        ]
    );
    let files = preset("csv_train", &["data_config.val_samples=9"]).notices;
    assert_eq!(files.len(), 1, "{files:?}");
    assert!(files[0].starts_with("without effect on dataset csv: data_config.val_samples;"), "{files:?}");
    assert!(preset("csv_train", &["data_config.image_col=picture"]).notices.is_empty());
    // The preset's columns mean nothing here, but nobody set them for this.
    assert!(preset("csv_train", &["data_config.dataset=shapes"]).notices.is_empty());
}

#[test]
fn every_preset_loads_again_from_what_it_prints() {
    for name in PRESET_NAMES {
        let resolved = preset(name, &[]);
        for text in [resolved.to_yaml(), resolved.to_yaml_with_sources()] {
            let again = ocelli_config::load_text("printed.yaml", &text, &[]).unwrap();
            assert_eq!(again.config, resolved.config);
            assert_eq!(again.to_yaml(), resolved.to_yaml());
        }
    }
}
