"""Names of PaddlePaddle (1.8 to 3.3) that FleetX does not have: asking for one says so (_refuse.py)."""

ORIGINAL = {
    "paddle": """
        BFloat16Tensor BoolTensor ByteTensor CharTensor CustomPlace DataParallel DoubleTensor Event FloatTensor
        Generator HalfTensor IPUPlace IntTensor LazyGuard LongTensor Model ShortTensor Size Stream XPUPinnedPlace acosh
        adaptive_avg_pool1d amax amin amp angle argwhere as_complex as_real as_strided as_tensor asarray asinh
        async_save atan2 atanh atleast_1d atleast_2d atleast_3d audio autocast autograd baddbmm bartlett_window
        bincount binomial bitwise_and bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
        bitwise_xor blackman_window block_diag broadcast_shape broadcast_shapes broadcast_tensors bucketize callbacks
        cartesian_prod cdist cdouble cfloat cholesky clear_async_save_task_queue column_stack combinations complex
        complex128 complex64 conj copysign count_nonzero cuda cummax cummin cumprod cumulative_trapezoid deg2rad
        device_guard diag_embed diagflat diagonal_scatter diff digamma disable_signal_handler distribution dsplit dstack
        eigvalsh enable_grad erfinv fft finfo float float8_e4m3fn float8_e5m2 flops frac frexp from_dlpack gammainc
        gammaincc gammaln gcd geometric ger get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype
        get_cuda_rng_state get_cudnn_version get_default_device get_device_module get_rng_state grad group_norm
        hamming_window hann_window hapi heaviside histogram histogram_bin_edges histogramdd hsplit hstack hub hypot i0
        i0e i1 i1e iinfo imag index_add index_fill index_put inner int int16 int8 inverse
        is_autocast_enabled is_complex
        is_floating_point is_integer isin isneginf isposinf isreal kaiser_window kthvalue layer_norm lcm ldexp
        lgamma linalg log_normal logaddexp logcumsumexp logit logspace manual_seed masked_scatter         matrix_transpose median mode msort multigammaln nan_to_num nanmean nanmedian nanquantile nansum
        narrow nextafter outer pdist poisson polar polygamma positive put_along_axis quantile
        quantization rad2deg rand_like randint_like randn_like ravel real reduce_as renorm rot90 row_stack
        scatter_add scatter_reduce searchsorted select_scatter set_cuda_rng_state set_default_device set_grad_enabled
        set_rng_state sgn sigmoid signal signbit sinc slice_scatter softmax sparse special standard_gamma summary
        sysconfig take take_along_dim tensor_split text to_dlpack tolist trapezoid tril_indices triu_indices uint16
        uint32 uint64 unflatten unfold unique_consecutive vander vecdot view view_as view_as_complex
        view_as_real vsplit vstack""".split(),
    "paddle.nn": """
        AdaptiveLogSoftmaxWithLoss AlphaDropout         BeamSearchDecoder CTCLoss ChannelShuffle CircularPad1D CircularPad2D CircularPad3D ConstantPad1D
        ConstantPad2D ConstantPad3D Conv1DTranspose Conv3DTranspose Dropout2D Dropout3D FeatureAlphaDropout Fold
        FractionalMaxPool2D FractionalMaxPool3D GLU GaussianNLLLoss HSigmoidLoss HuberLoss InstanceNorm3D
        LPPool1D LPPool2D MaxUnPool1D MaxUnPool2D MaxUnPool3D Module ModuleDict ModuleList
        MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss Pad3D Parameter ParameterDict PixelUnshuffle
        PoissonNLLLoss RNNTLoss RReLU ReflectionPad1D ReflectionPad2D ReflectionPad3D ReplicationPad1D
        ReplicationPad2D ReplicationPad3D SiLU SoftMarginLoss Softmax2D SpectralNorm
        TripletMarginLoss TripletMarginWithDistanceLoss Unflatten ZeroPad1D ZeroPad3D quant
        spectral_norm""".split(),
    "paddle.nn.functional": """
        adaptive_log_softmax_with_loss affine_grid channel_shuffle
        class_center_sample conv1d_transpose conv3d_transpose ctc_loss diag_embed dropout1d feature_alpha_dropout
        flash_attention flash_attention_v3_varlen flash_attn_qkvpacked flash_attn_varlen_qkvpacked flashmask_attention
        fold fractional_max_pool2d fractional_max_pool3d gather_tree gaussian_nll_loss grid_sample gumbel_softmax
        hsigmoid_loss logsigmoid lp_pool1d lp_pool2d margin_cross_entropy max_unpool1d max_unpool2d
        max_unpool3d moe_permute moe_unpermute multi_label_margin_loss multi_label_soft_margin_loss multi_margin_loss
        npair_loss pdist pixel_unshuffle poisson_nll_loss rms_norm rnnt_loss rrelu scaled_dot_product_attention
        sdp_kernel sdpa soft_margin_loss sparse_attention swiglu temporal_shift triplet_margin_loss
        triplet_margin_with_distance_loss zeropad2d""".split(),
    "paddle.nn.initializer": """
        Dirac Orthogonal calculate_gain""".split(),
    "paddle.static": """
        IpuCompiledProgram IpuStrategy Operator Parameter ipu_shard_guard
        is_persistable py_func quantization set_ipu_shard setitem xpu_places""".split(),
    "paddle.static.nn": """
        case cond continuous_value_model conv3d_transpose deform_conv2d py_func row_conv
        sequence_conv sequence_expand sequence_first_step sequence_last_step sequence_pool sequence_softmax
        spectral_norm static_pylayer switch_case""".split(),
    "paddle.io": """
        ConcatDataset SubsetRandomSampler WeightedRandomSampler dataloader""".split(),
    "paddle.optimizer": """
        ASGD LBFGS NAdam RAdam Rprop""".split(),
    "paddle.optimizer.lr": """
        CosineAnnealingWarmRestarts CyclicLR LinearLR autoincreased_step_counter""".split(),
    "paddle.distributed": """
        BoxPSDataset ColWiseParallel ContextParallel ConvParallel DataParallel DistAttr DistModel
        LocalLayer P2POp ParallelMode Partial Placement PrepareContextParallel PrepareLayerInput PrepareLayerOutput
        ProcessMesh ReduceType Replicate RowWiseParallel SequenceParallelBegin SequenceParallelDisable
        SequenceParallelEnable SequenceParallelEnd Shard ShardedStateDict ShardedWeight ShardingStage1 ShardingStage2
        ShardingStage3 SplitPoint Strategy all_gather_object alltoall alltoall_single auto_parallel
        batch_isend_irecv broadcast_object_list build_sharded_state_dict collective communication communicator
        create_nccl_config destroy_process_group dtensor_from_fn enable_auto_dp flex_checkpoint gather
        get_backend get_group get_mesh gloo_barrier gloo_init_parallel_env gloo_release group_sharded_parallel
        in_auto_parallel_align_mode io irecv is_available isend load_merged_state_dict load_state_dict local_map
        new_group parallel parallel_helper parallel_with_gloo parallelize passes ps recv recv_object_list reduce_scatter
        reshard restart_process_group rpc save_group_sharded_model save_state_dict scatter scatter_object_list send
        send_object_list set_mesh shard_dataloader shard_layer shard_op shard_optimizer shard_scaler shard_tensor
        shard_weight sharding shutdown_process_group spawn stream to_distributed to_static unshard_dtensor""".split(),
    "paddle.distributed.fleet": """
        BoxPSDataset CommunicateTopology FileInstantDataset Fleet all_reduce auto
        distributed_scaler elastic get_fl_client init_coordinator is_coordinator
        load_inference_model load_one_table local_device_ids make_fl_strategy
        print_table_stat rank rank_in_node recompute save_cache_table save_dense_params save_one_table set_date
        set_log_level world_device_ids world_size""".split(),
    "paddle.vision": """
        AlexNet BaseTransform BrightnessTransform CenterCrop Cifar10 Cifar100 ColorJitter Compose ContrastTransform
        DatasetFolder DenseNet FashionMNIST Flowers GoogLeNet Grayscale HueTransform ImageFolder InceptionV3 LeNet MNIST
        MobileNetV1 MobileNetV2 MobileNetV3Large MobileNetV3Small Normalize Pad RandomCrop RandomHorizontalFlip
        RandomResizedCrop RandomRotation RandomVerticalFlip ResNet Resize SaturationTransform ShuffleNetV2 SqueezeNet
        ToTensor Transpose VGG VOC2012 adjust_brightness adjust_contrast adjust_hue alexnet center_crop crop datasets
        densenet121 densenet161 densenet169 densenet201 densenet264 googlenet hflip image_load inception_v3 mobilenet_v1
        mobilenet_v2 mobilenet_v3_large mobilenet_v3_small models normalize pad resize resnet101 resnet152 resnet18
        resnet34 resnet50 resnext101_32x4d resnext101_64x4d resnext152_32x4d resnext152_64x4d resnext50_32x4d
        resnext50_64x4d rotate shufflenet_v2_swish shufflenet_v2_x0_25 shufflenet_v2_x0_33 shufflenet_v2_x0_5
        shufflenet_v2_x1_0 shufflenet_v2_x1_5 shufflenet_v2_x2_0 squeezenet1_0 squeezenet1_1 to_grayscale to_tensor
        transforms vflip vgg11 vgg13 vgg16 vgg19 wide_resnet101_2 wide_resnet50_2""".split(),
    "paddle.fluid.layers": """
        Assert BasicDecoder DecodeHelper Decoder GreedyEmbeddingHelper
        SampleEmbeddingHelper TrainingHelper affine_grid anchor_generator bipartite_match box_clip box_coder
        box_decoder_and_assign collect_fpn_proposals conv3d_transpose ctc_greedy_decoder
        deformable_conv deformable_roi_pooling density_prior_box detection_output distribute_fpn_proposals
        edit_distance filter_by_instag gather_tree 
        generate_mask_labels generate_proposal_labels generate_proposals
        grid_sampler hash im2sequence inplace_abn iou_similarity load locality_aware_nms
        lod_rank_table matrix_nms max_sequence_len multi_box_head polygon_box_transform
        prroi_pool psroi_pool random_crop reorder_lod_tensor_by_rank resize_linear resize_trilinear
        retinanet_detection_output retinanet_target_assign roi_perspective_transform roi_pool row_conv
        rpn_target_assign sigmoid_focal_loss similarity_focus ssd_loss target_assign

        yolo_box""".split(),
    "paddle.fluid": """
        ComplexVariable DataFeedDesc communicator device_worker distribute_lookup_table dygraph_grad_clip
        entry_attr inference ir lod_tensor_array memory_analysis net_drawer reader
        trainer_factory""".split(),
    "paddle.fluid.metrics": """
        DetectionMAP""".split(),
}
